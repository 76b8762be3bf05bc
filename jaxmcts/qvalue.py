"""The value of an edge as a rule sees it: first-play urgency, completion, and maps to the rule's range.

The order is always complete, then transform: an unvisited edge first gets a value in raw units, then one affine
map is applied to all edges, so FPU never depends on the map and never enters a node's own value. Everything
here works on the record of one node; values are in the view of the player to move at it. Formulas are those of
the papers named; vectors in tests/jaxmcts/test_rules.py.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.tree import Node

Fpu = Callable[[Node], jax.Array]


def fpu_constant(node: Node, *, value: Number) -> jax.Array:
    """First-play urgency: unvisited edges are worth `value`, in raw units."""
    return jnp.full_like(node.value, value)


def fpu_zero(node: Node) -> jax.Array:
    """First-play urgency: unvisited edges are worth 0, a draw on [-1, 1]."""
    return fpu_constant(node, value=0)


def fpu_lose(node: Node) -> jax.Array:
    """First-play urgency: unvisited edges lose (-1). The published AlphaZero pseudocode, which reads 0 on [0, 1]."""
    return fpu_constant(node, value=-1)


def fpu_win(node: Node) -> jax.Array:
    """First-play urgency: unvisited edges win (+1)."""
    return fpu_constant(node, value=1)


def fpu_parent(node: Node) -> jax.Array:
    """First-play urgency: unvisited edges are worth the search value of this node."""
    return node.value


def fpu_reduction(node: Node, *, k: Number = 0.2) -> jax.Array:
    """First-play urgency: V(s) - k sqrt(prior mass of the visited edges). KataGo 0.2, Leela Zero 0.25 of winrate."""
    visited_mass = jnp.sum(jnp.where(node.visits > 0, node.prior, 0))
    return node.value - k * jnp.sqrt(visited_mass)


def complete(node: Node, unvisited: Number) -> jax.Array:
    """Return q `[A]` with the value `unvisited` (raw units) where an edge has no visits."""
    return jnp.where(node.visits > 0, node.q, unvisited)


def unit_interval(q: jax.Array) -> jax.Array:
    """Map values on [-1, 1] to [0, 1], the range that AlphaZero's published constants belong to."""
    return (q + 1) / 2


def mixed_value(node: Node) -> jax.Array:
    """Mix the raw value with the visited edges' q, weighted by prior (Danihelka et al. 2022, appendix D, eq. 33).

    v_mix = (v + S sum_visited(P q) / sum_visited(P)) / (1 + S), S the child visits; v itself if S = 0.
    """
    visited = node.visits > 0
    num_visits = jnp.sum(node.visits)
    # An edge can be visited although its prior rounds to 0; the tiny floor keeps the weighted mean defined.
    weight = jnp.where(visited, jnp.maximum(node.prior, jnp.finfo(node.prior.dtype).tiny), 0)
    total = jnp.sum(weight)
    weighted_q = jnp.sum(weight / jnp.where(total > 0, total, 1) * node.q)
    return (node.raw_value + num_visits * weighted_q) / (1 + num_visits)


def completed_q(node: Node) -> jax.Array:
    """Return q `[A]` with the mixed value where an edge has no visits."""
    return complete(node, mixed_value(node))


def rescale(q: jax.Array, epsilon: Number = 1e-8) -> jax.Array:
    """Map completed q `[A]` to [0, 1] by its own smallest and largest entry, at least `epsilon` apart.

    An illegal edge is never visited, so it holds the mixed value: the range covers the q of the visited edges and,
    if any edge is unvisited, the mixed value. mctx computes the same, and visits agree with it.
    """
    low, high = jnp.min(q), jnp.max(q)
    return (q - low) / jnp.maximum(high - low, epsilon)
