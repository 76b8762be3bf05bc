"""The value of an edge as a rule sees it: first-play urgency, completion, and maps to the rule's range.

The order is always complete, then transform: an unvisited edge first gets a value in raw units, then one affine
map is applied to all edges, so FPU never depends on the map and never enters a node's own value. Everything
here works on the record of one node; values are in the view of the player to move at it. Formulas are those of
the papers named; vectors in tests/jaxmcts/test_rules.py.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxmcts.backup import spread
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


def fpu_infinite(node: Node) -> jax.Array:
    """First-play urgency: unvisited edges come first, the fully-expanded rule of UCT. Not for rules that map values."""
    return fpu_constant(node, value=jnp.inf)


def fpu_parent(node: Node, *, minus: Number = 0.0) -> jax.Array:
    """First-play urgency: V(s) - `minus`, the search value of this node less a constant (0.2, say)."""
    return node.value - minus


def fpu_reduction(node: Node, *, k: Number = 0.2) -> jax.Array:
    """First-play urgency: V(s) - k sqrt(prior mass of the visited edges).

    KataGo 0.2 (0.1 at the root, 0 under noise), Leela Zero 0.25 of winrate (0.5 here), lc0 0.33.
    """
    return node.value - k * jnp.sqrt(visited_mass(node))


def fpu_blended(node: Node, *, k: Number = 0.2, power: Number = 2.0) -> jax.Array:
    """First-play urgency: w V(s) + (1 - w) v(s) - k sqrt(m), w = m^power, m the prior mass of the visited edges.

    KataGo's (`fpuParentWeightByVisitedPolicy`): little has been searched yet, so the raw value still counts.
    """
    mass = visited_mass(node)
    weight = jnp.minimum(mass**power, 1)
    return weight * node.value + (1 - weight) * node.raw_value - k * jnp.sqrt(mass)


def visited_mass(node: Node) -> jax.Array:
    """Return the prior mass of the visited edges, `[]`."""
    return jnp.sum(jnp.where(node.visits > 0, node.prior, 0))


def complete(node: Node, unvisited: Number) -> jax.Array:
    """Return q `[A]` with the value `unvisited` (raw units) where an edge has no visits."""
    return jnp.where(node.visits > 0, node.q, unvisited)


def unit_interval(q: jax.Array) -> jax.Array:
    """Map values on [-1, 1] to [0, 1], the range that AlphaZero's published constants belong to."""
    return (q + 1) / 2


def shrunk_q(node: Node) -> jax.Array:
    """Return W / (N + 1) `[A]`: the mean with one more visit of value 0; an unvisited edge is worth 0.

    It is in widely read articles and in some programs. It is neither AlphaGo Zero's W / N nor virtual loss.
    """
    return node.q * node.visits / (node.visits + 1)


def between(q: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Map `low` to 0 and `high` to 1; where they do not span a range, leave `q` as it is (MuZero's pseudocode)."""
    spans = high > low
    return jnp.where(spans, (q - jnp.where(spans, low, 0)) / jnp.where(spans, high - low, 1), q)


def by_siblings(node: Node, *, epsilon: Number = 1e-8) -> jax.Array:
    """Map q `[A]` to [0, 1] by the range of the visited edges' q and V(s), at least `epsilon`; unvisited edges read 0.

    mctx's form of MuZero's normalisation (`qtransform_by_parent_and_siblings`): it needs no other node, but makes every
    node look equally decisive, for a range of 1e-6 is stretched to [0, 1] too.
    """
    low, high = sibling_range(node)
    return (complete(node, low) - low) / jnp.maximum(high - low, epsilon)


def sibling_range(node: Node) -> tuple[jax.Array, jax.Array]:
    """Return the lowest and the highest of V(s) and the visited edges' q, `[]` each."""
    q = complete(node, node.value)
    return jnp.minimum(jnp.min(q), node.value), jnp.maximum(jnp.max(q), node.value)


def edge_variance(node: Node) -> jax.Array:
    """Return the variance of each edge's returns `[A]`, 0 where unvisited; needs `variance_backup`."""
    return spread(node).edges / jnp.maximum(node.visits, 1)


def node_variance(node: Node) -> jax.Array:
    """Return the variance `[]` of all that V(s) is the mean of; needs `variance_backup`."""
    return spread(node).node / node.total_visits


def mixed_value(node: Node) -> jax.Array:
    """Mix the raw value with the visited edges' q, weighted by prior (Danihelka et al. 2022, appendix D, eq. 33).

    v_mix = (v + S sum_visited(P q) / sum_visited(P)) / (1 + S), S the child visits; v itself if S = 0.
    """
    visited = node.visits > 0
    num_visits = node.child_visits
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
