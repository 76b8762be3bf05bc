"""PUCT: value plus an exploration bonus in proportion to the prior.

    score(a) = Q(a) + C(s) P(a) sqrt(N(s)) / (1 + N(a))

N(s) counts the node's own evaluation, so the first choice at a new node follows the prior.
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import Fpu, complete, fpu_lose, unit_interval
from jaxmcts.rules.pick import pick
from jaxmcts.tree import Node


def exploration_bonus(node: Node, c: Number) -> jax.Array:
    """Return c P(a) sqrt(N(s)) / (1 + N(a)) `[A]` (Rosin 2011; Silver et al. 2017)."""
    return c * jnp.sqrt(node.total_visits.astype(node.prior.dtype)) * node.prior / (1 + node.visits)


def alphazero_c(node: Node, c_init: Number, c_base: Number) -> jax.Array:
    """Return C(s) = ln((1 + N(s) + c_base) / c_base) + c_init, which grows with the visits (Silver et al. 2018)."""
    return jnp.log1p((1 + node.total_visits) / c_base) + c_init


def alphazero_scores(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0, fpu: Fpu = fpu_lose) -> jax.Array:
    """Score the edges `[A]` as the published AlphaZero pseudocode does: values on [-1, 1] are mapped to [0, 1].

    `fpu` gives the raw value of unvisited edges. Illegal edges get a score too; `pick` rules them out.
    """
    q = unit_interval(complete(node, fpu(node)))
    return q + exploration_bonus(node, alphazero_c(node, c_init, c_base))


def alphazero(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0, fpu: Fpu = fpu_lose) -> jax.Array:
    """Select the edge of the highest AlphaZero score."""
    scores = alphazero_scores(node, c_init=c_init, c_base=c_base, fpu=fpu)
    return pick(scores, node.prior, node.legal_action_mask)
