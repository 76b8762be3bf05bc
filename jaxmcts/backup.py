"""What one visit writes on its path, written for one edge.

`backup(parent, edge, child, value) -> (Update, value)`. `value` is what the level below passed up (at the bottom
the leaf's raw value), in the view of the player to move at `child`; what is returned goes to the next level, in
the view of the player to move at `parent`. The search walks the path bottom-up and calls it once per edge.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.model import PyTree
from jaxmcts.tree import Edge, Node


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """What a backup writes: new values of the edge and of its parent node. The search counts the visit itself."""

    q: jax.Array  # [] of the edge, view of the player who moves
    value: jax.Array  # [] of the parent
    rule_state: PyTree = ()  # the parent's new share of `rule_state`


Backup = Callable[[Node, Edge, Node, jax.Array], tuple[Update, jax.Array]]


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


def checked(given: Any, rule_state: PyTree) -> tuple[Update, jax.Array]:
    """Demand `(Update, value)` from a backup, of scalars, with the parent's `rule_state` in the form it has."""
    new, value = checks.pair(given, "backup", "Update, value")
    if not isinstance(new, Update):
        raise TypeError(f"`backup` gave a {type(new).__name__}, expected a `jaxmcts.Update`.")
    dtype = jnp.result_type(float)
    new = Update(
        q=jnp.asarray(new.q, dtype),
        value=jnp.asarray(new.value, dtype),
        rule_state=checks.arrays(new.rule_state, "rule_state"),
    )
    value = jnp.asarray(value, dtype)
    for field, array in (("q", new.q), ("value", new.value), ("value to pass up", value)):
        if array.shape != ():
            raise ValueError(f"`backup` gave `{field}` of shape {array.shape}, expected a scalar: it sees one edge.")
    checks.same_form("rule_state", new.rule_state, rule_state)
    return new, value
