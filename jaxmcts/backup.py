"""What one visit writes on its path, written for one edge.

`backup(parent, edge, child, value) -> (Update, value)`. `value` is what the level below passed up (at the bottom
the leaf's raw value), in the view of the player to move at `child`; what is returned goes to the next level, in
the view of the player to move at `parent`. The search walks the path bottom-up and calls it once per edge. A backup
that has more to tell the next level is a `Relay`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.model import Number, PyTree
from jaxmcts.tree import Edge, Node


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """What a backup writes: new values of the edge and of its parent node. The search counts the visit itself."""

    q: jax.Array  # [] of the edge, view of the player who moves
    value: jax.Array  # [] of the parent
    rule_state: PyTree = ()  # the parent's new share of `rule_state`; instead of an array: `AtEdge`, `Added`


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Added:
    """What to add to an array of `rule_state`, of its shape and dtype. A write without a read."""

    amount: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AtEdge:
    """The new entry `[...]` of this edge in an array `[A, ...]` of `rule_state`, or what is `Added` to the old one."""

    entry: jax.Array | Added


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Relay:
    """A backup that passes up more than a value: `fn(parent, edge, child, message) -> (Update, message)`.

    A message is any pytree of arrays. `start(leaf: Node) -> message` makes the first one, from the node where the
    simulation ended; for a plain backup it is the leaf's raw value.
    """

    fn: Callable[[Node, Edge, Node, PyTree], tuple[Update, PyTree]]
    start: Callable[[Node], PyTree]


Backup = Callable[[Node, Edge, Node, jax.Array], tuple[Update, jax.Array]] | Relay


def mean_backup(parent: Node, edge: Edge, child: Node, value: jax.Array) -> tuple[Update, jax.Array]:
    """Average returns: x = r + g x', V(s) is the mean of x over the visits, the node's own evaluation counted.

    q = r + g V(child) equals the mean of the edge's returns; reading it from the child keeps the two from drifting.
    """
    returns = edge.reward + edge.discount * value
    update = Update(
        q=edge.reward + edge.discount * child.value,
        value=parent.value + (returns - parent.value) / (parent.total_visits + 1),
        rule_state=parent.rule_state,
    )
    return update, returns


def recompute_backup(
    parent: Node, edge: Edge, child: Node, value: jax.Array, *, raw_weight: Number = 1.0
) -> tuple[Update, jax.Array]:
    """Recompute V(s) from what the edges are worth now: (w v + sum N Q) / (w + S), w = `raw_weight`.

    Equal to `mean_backup` for w = 1; another weight trusts the node's own evaluation more or less than one visit.
    """
    del value

    def mean(q: jax.Array, visits: jax.Array) -> jax.Array:
        return (raw_weight * parent.raw_value + jnp.sum(visits * q)) / (raw_weight + parent.total_visits)

    return _recomputed(parent, edge, child, mean)


def max_backup(parent: Node, edge: Edge, child: Node, value: jax.Array) -> tuple[Update, jax.Array]:
    """Let V(s) be the highest Q of the visited edges, as minimax does; v(s) no longer counts once there is one.

    Right for exact evaluations; with noisy ones it is too high (Coulom 2006 compares it with the mean).
    """
    del value
    return _recomputed(parent, edge, child, highest_value)


def max_mean_backup(
    parent: Node, edge: Edge, child: Node, value: jax.Array, *, max_weight: Number = 0.5
) -> tuple[Update, jax.Array]:
    """Let V(s) be `max_weight` times the highest Q plus the rest times the mean Q of the visited edges."""
    del value

    def mixed(q: jax.Array, visits: jax.Array) -> jax.Array:
        return (1 - max_weight) * mean_value(q, visits, parent.total_visits) + max_weight * highest_value(q, visits)

    return _recomputed(parent, edge, child, mixed)


def power_mean_backup(
    parent: Node,
    edge: Edge,
    child: Node,
    value: jax.Array,
    *,
    power: Number = 2.0,
    low: Number = -1.0,
    high: Number = 1.0,
) -> tuple[Update, jax.Array]:
    """Let V(s) be the power mean of the edges' Q, weighted by visits (Dam et al. 2019, Power-UCT).

    `power`, above 0, is the mean at 1 and the highest at infinity. Values are mapped from [`low`, `high`] to [0, 1] and
    back.
    """
    del value

    def mean(q: jax.Array, visits: jax.Array) -> jax.Array:
        x = jnp.clip((q - low) / (high - low), 0, 1)
        return low + (high - low) * power_mean(x, visits, parent.total_visits, power)

    return _recomputed(parent, edge, child, mean)


def _recomputed(
    parent: Node, edge: Edge, child: Node, value_of: Callable[[jax.Array, jax.Array], jax.Array]
) -> tuple[Update, jax.Array]:
    """Let V(s) be `value_of(q [A], visits [A])` as both are after this visit; the level above reads it at its child.

    `parent.total_visits`, 1 more than the sum of the visits before, is their sum then.
    """
    here = _one_hot(edge, parent)
    q = edge.reward + edge.discount * child.value
    value = value_of(jnp.where(here, q, parent.q), parent.visits + here)
    return Update(q=q, value=value, rule_state=parent.rule_state), value


def _one_hot(edge: Edge, parent: Node) -> jax.Array:
    return jnp.arange(parent.q.shape[0], dtype=edge.action.dtype) == edge.action


def mean_value(q: jax.Array, visits: jax.Array, num_visits: Number) -> jax.Array:
    """Return the mean `[]` of `q [A]` weighted by `visits [A]`, whose sum is `num_visits` > 0."""
    return jnp.sum(visits * q) / num_visits


def highest_value(q: jax.Array, visits: jax.Array) -> jax.Array:
    """Return the highest `q [A]` `[]` where there are visits."""
    return jnp.max(jnp.where(visits > 0, q, -jnp.inf))


def power_mean(x: jax.Array, visits: jax.Array, num_visits: Number, power: Number) -> jax.Array:
    """Return (sum N x^power / sum N)^(1 / power) `[]` for `x [A]` in [0, 1] and `num_visits` = sum N.

    By the largest x, so that a high power neither overflows nor underflows.
    """
    top = highest_value(x, visits)
    shares = jnp.where(visits > 0, x / jnp.where(top > 0, top, 1), 0)
    return top * mean_value(shares**power, visits, num_visits) ** (1 / power)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """Sums of squared deviations of the returns from their mean: what `variance_backup` keeps of nodes."""

    edges: jax.Array  # [..., A] of those through each edge
    node: jax.Array  # [...] of those that V(s) is the mean of, the node's own evaluation among them


def no_spread(batch_size: int, capacity: int, num_actions: int) -> Spread:
    """Return the `rule_state` of trees without simulations, `[B, capacity, ...]`."""
    dtype = jnp.result_type(float)
    shape = batch_size, capacity
    return Spread(edges=jnp.zeros((*shape, num_actions), dtype), node=jnp.zeros(shape, dtype))


def variance_backup(parent: Node, edge: Edge, child: Node, value: jax.Array) -> tuple[Update, jax.Array]:
    """Average returns, and keep how far each edge's and each node's are spread about their mean.

    Start with `rule_state=no_spread(B, capacity, A)`; read with `qvalue.edge_variance` and `qvalue.node_variance`.
    Welford's form, which does not lose small variances next to large means.
    """
    spread(parent)  # is there
    update, returns = mean_backup(parent, edge, child, value)
    of_edge = (returns - edge.q) * (returns - update.q)  # 0 at the first visit, where q is the return
    of_node = (returns - parent.value) * (returns - update.value)
    more = Spread(edges=AtEdge(Added(of_edge)), node=Added(of_node))  # type: ignore[arg-type]  # instead of arrays
    return dataclasses.replace(update, rule_state=more), returns


def spread(node: Node) -> Spread:
    """Return the sums of squared deviations of a node's returns; needs `variance_backup`."""
    return checks.kept(node.rule_state, Spread, backup="variance_backup", start="no_spread(B, capacity, A)")


def bounds_backup(parent: Node, edge: Edge, child: Node, value: jax.Array) -> tuple[Update, jax.Array]:
    """Average returns, and keep the lowest and highest q ever seen below each node, `rule_state [2]`.

    The root's are the tree's. Each q in the view of the player who moved there. Start with
    `rule_state=no_bounds(B, capacity)`; `rules.muzero.muzero_tree` reads it.
    """
    update, returns = mean_backup(parent, edge, child, value)
    (low, high), (lower, higher) = bounds(parent), bounds(child)
    low = jnp.minimum(jnp.minimum(low, lower), update.q)
    high = jnp.maximum(jnp.maximum(high, higher), update.q)
    return dataclasses.replace(update, rule_state=jnp.stack([low, high])), returns


def no_bounds(batch_size: int, capacity: int) -> jax.Array:
    """Return `[B, capacity, 2]`: the bounds of nodes below which nothing was seen, (inf, -inf)."""
    return jnp.broadcast_to(jnp.array([jnp.inf, -jnp.inf]), (batch_size, capacity, 2))


def bounds(node: Node) -> jax.Array:
    """Return the lowest and highest q ever seen below a node, `[2]`; needs `bounds_backup`."""
    return checks.kept_array(node.rule_state, (2,), backup="bounds_backup", start="no_bounds(B, capacity)")


def as_relay(backup: Backup) -> Relay:
    """Take a plain backup as one that relays a value."""
    return backup if isinstance(backup, Relay) else Relay(fn=backup, start=_raw_value)


def _raw_value(leaf: Node) -> jax.Array:
    return leaf.raw_value


def checked(given: Any, parent: Node, message: PyTree) -> tuple[Update, PyTree]:
    """Demand `(Update, message)` from a backup: scalars, and `rule_state` and `message` in the forms they have."""
    new, passed = checks.pair(given, "backup", "Update, value")
    if not isinstance(new, Update):
        raise TypeError(f"`backup` gave a {type(new).__name__}, expected a `jaxmcts.Update`.")
    update = Update(
        q=_scalar("q", new.q),
        value=_scalar("value", new.value),
        rule_state=checks.arrays(new.rule_state, "rule_state"),
    )
    checks.same_form("rule_state", _whole(update.rule_state, parent), parent.rule_state)
    if isinstance(message, jax.Array) and message.shape == ():
        return update, _scalar("value to pass up", passed)
    passed = checks.arrays(passed, "value to pass up")
    checks.same_form("value to pass up", passed, message, holder="`start` gave")
    return update, passed


def _scalar(field: str, given: Any) -> jax.Array:
    array = jnp.asarray(given, jnp.result_type(float))
    if array.shape != ():
        raise ValueError(f"`backup` gave `{field}` of shape {array.shape}, expected a scalar: it sees one edge.")
    return array


def _whole(rule_state: PyTree, parent: Node) -> PyTree:
    """Give what stands for an array of `rule_state` the form of that array."""

    def whole(leaf: Any) -> Any:
        if isinstance(leaf, AtEdge):
            entry = one(leaf.entry.amount if isinstance(leaf.entry, Added) else leaf.entry)
            return jnp.broadcast_to(entry, (*parent.q.shape, *entry.shape))
        return one(leaf.amount) if isinstance(leaf, Added) else leaf

    def one(array: Any) -> jax.Array:
        if not isinstance(array, jax.Array):
            raise TypeError(
                f"`backup` gave an `AtEdge` or `Added` that holds a {type(array).__name__}, expected one array: each "
                "stands for one array of `rule_state`."
            )
        return array

    return jax.tree.map(whole, rule_state, is_leaf=lambda leaf: isinstance(leaf, AtEdge | Added))
