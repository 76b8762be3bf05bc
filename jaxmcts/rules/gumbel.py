"""Gumbel AlphaZero: sequential halving at the root, a deterministic policy below (Danihelka et al. 2022).

sigma(q) = (c_visit + max_b N(b)) c_scale q          completed q, rescaled to [0, 1] by default
pi'      = softmax(logits + sigma(q))                the improved policy
root     : argmax of gumbel + logits + sigma(q) over the edges that halving considers now
interior : argmax of pi'(a) - N(a) / (1 + sum N)
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import completed_q, rescale
from jaxmcts.rules.pick import best, pick
from jaxmcts.tree import Node, legal_log_softmax


def sigma(node: Node, *, c_visit: Number = 50.0, c_scale: Number = 0.1, rescale_q: Number = True) -> jax.Array:
    """Return sigma(completed q) `[A]`, the advantage to add to the logits (section 4 and appendix D)."""
    q = completed_q(node)
    q = jnp.where(rescale_q, rescale(q), q)
    return (c_visit + jnp.max(node.visits)) * c_scale * q


def improved_policy(node: Node, **constants: Number) -> jax.Array:
    """Return pi' = softmax(logits + sigma(completed q)) `[A]`, 0 where illegal (equation 11)."""
    logits = jnp.where(node.legal_action_mask, node.prior_logits, 0) + sigma(node, **constants)
    return jnp.exp(legal_log_softmax(logits, node.legal_action_mask))


def interior_scores(node: Node, **constants: Number) -> jax.Array:
    """Score the edges `[A]` by pi'(a) - N(a) / (1 + sum N), the visits owed to the improved policy (equation 14)."""
    return improved_policy(node, **constants) - node.visits / (1 + jnp.sum(node.visits))


def gumbel_interior(node: Node, **constants: Number) -> jax.Array:
    """Select the edge that is furthest behind the improved policy."""
    return best(node, interior_scores(node, **constants))


def root_scores(node: Node, *, gumbel: jax.Array, **constants: Number) -> jax.Array:
    """Score root edges `[A]` by gumbel + logits + sigma(completed q); `gumbel [A]` is drawn once per search."""
    return gumbel + node.prior_logits + sigma(node, **constants)


def gumbel_root(node: Node, *, gumbel: jax.Array, considered_visits: jax.Array, **constants: Number) -> jax.Array:
    """Select the best root edge among those with the visit count that halving asks for now.

    `considered_visits [n]` is this root's row of `halving.considered_visits_table`, indexed by the simulations done.
    """
    due = considered_visits[jnp.minimum(jnp.sum(node.visits), considered_visits.shape[0] - 1)]
    allowed = node.legal_action_mask & (node.visits == due)
    return pick(root_scores(node, gumbel=gumbel, **constants), node.prior, allowed)


def gumbel_action(node: Node, *, gumbel: jax.Array, **constants: Number) -> jax.Array:
    """Choose the action to play: the best root score among the most visited edges (section 3)."""
    most = jnp.max(jnp.where(node.legal_action_mask, node.visits, -1))
    allowed = node.legal_action_mask & (node.visits == most)
    return pick(root_scores(node, gumbel=gumbel, **constants), node.prior, allowed)
