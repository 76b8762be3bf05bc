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
from jaxmcts.rules.pick import best, has_most_visits, owed, pick
from jaxmcts.tree import Node, legal_log_softmax


def sigma(node: Node, *, c_visit: Number = 50.0, c_scale: Number = 0.1, rescale_q: Number = True) -> jax.Array:
    """Return sigma(completed q) `[A]`, the advantage to add to the logits (section 4 and appendix D)."""
    return advantage(node, completed_q(node), c_visit=c_visit, c_scale=c_scale, rescale_q=rescale_q)


def advantage(
    node: Node, q: jax.Array, *, c_visit: Number, c_scale: Number, rescale_q: Number, epsilon: Number = 1e-8
) -> jax.Array:
    """Return sigma of any completed `q [A]`; `epsilon` is the smallest range that is rescaled to [0, 1]."""
    q = jnp.where(rescale_q, rescale(q, epsilon), q)
    return (c_visit + jnp.max(node.visits)) * c_scale * q


def improved_policy(node: Node, **constants: Number) -> jax.Array:
    """Return pi' = softmax(logits + sigma(completed q)) `[A]`, 0 where illegal (equation 11)."""
    logits = jnp.where(node.legal_action_mask, node.prior_logits, 0) + sigma(node, **constants)
    return jnp.exp(legal_log_softmax(logits, node.legal_action_mask))


def interior_scores(node: Node, **constants: Number) -> jax.Array:
    """Score the edges `[A]` by what they are owed by the improved policy, pi'(a) - N(a) / (1 + sum N) (equation 14)."""
    return owed(node, improved_policy(node, **constants))


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
    return pick(root_scores(node, gumbel=gumbel, **constants), node.prior, is_due(node, considered_visits))


def is_due(node: Node, considered_visits: jax.Array) -> jax.Array:
    """Return the legal edges `[A]` with the visit count that halving asks for now; `considered_visits [n]` as above."""
    due = considered_visits[jnp.minimum(node.child_visits, considered_visits.shape[0] - 1)]
    return node.legal_action_mask & (node.visits == due)


def gumbel_action(node: Node, *, gumbel: jax.Array, **constants: Number) -> jax.Array:
    """Choose the action to play: the best root score among the most visited edges (section 3)."""
    return pick(root_scores(node, gumbel=gumbel, **constants), node.prior, has_most_visits(node))
