"""What one visit writes on its path, written for one edge.

`backup(parent, edge, child, value) -> (Update, value)`. `value` is what the level below passed up (at the bottom
the leaf's raw value), in the view of the player to move at `child`; what is returned goes to the next level, in
the view of the player to move at `parent`. The search walks the path bottom-up and calls it once per edge.
"""

import dataclasses
from collections.abc import Callable

import jax

from jaxmcts.model import PyTree
from jaxmcts.tree import Edge, Node


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """What a backup writes: new statistics of the edge and of its parent node."""

    visits: jax.Array  # [] int32, new visits of the edge
    q: jax.Array  # [] new value of the edge, view of the player who moves
    value: jax.Array  # [] new value of the parent
    rule_state: PyTree = ()  # the parent's new share of `rule_state`


Backup = Callable[[Node, Edge, Node, jax.Array], tuple[Update, jax.Array]]


def mean_backup(parent: Node, edge: Edge, child: Node, value: jax.Array) -> tuple[Update, jax.Array]:
    """Average returns: x = r + g x', V(s) is the mean of x over the visits, the node's own evaluation counted.

    q = r + g V(child) equals the mean of the edge's returns; reading it from the child keeps the two from drifting.
    """
    returns = edge.reward + edge.discount * value
    update = Update(
        visits=edge.visits + 1,
        q=edge.reward + edge.discount * child.value,
        value=parent.value + (returns - parent.value) / (parent.total_visits + 1),
        rule_state=parent.rule_state,
    )
    return update, returns
