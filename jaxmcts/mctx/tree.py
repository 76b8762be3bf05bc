"""The search tree under mctx's names, and how each of them is read from ours."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp

import jaxmcts.tree
from jaxmcts.mctx.record import Record
from jaxmcts.model import PyTree
from jaxmcts.tree import NO_CHILD, ROOT, Node, read_node

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSummary(Record):
    """Statistics of the root; values in the view of the player to move there."""

    visit_counts: jax.Array  # [B, A] float
    visit_probs: jax.Array  # [B, A] shares of the visits; uniform where there are none
    value: jax.Array  # [B]
    qvalues: jax.Array  # [B, A] 0 where unvisited


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree(Record, Generic[T]):
    """A batch of search trees of N nodes, or one of them without the batch axis; slot 0 is the root."""

    node_visits: jax.Array  # [B, N] int32, the node's own evaluation counted; 0 where there is no node
    raw_values: jax.Array  # [B, N] before search
    node_values: jax.Array  # [B, N] search values, view of the player to move at the node
    parents: jax.Array  # [B, N] int32, NO_PARENT at the root and where there is no node
    action_from_parent: jax.Array  # [B, N] int32, likewise
    children_index: jax.Array  # [B, N, A] int32, UNVISITED where the edge leads nowhere yet
    children_prior_logits: jax.Array  # [B, N, A] as the model gave them; at the root with noise and mask
    children_visits: jax.Array  # [B, N, A] int32
    children_rewards: jax.Array  # [B, N, A] view of the player who moves; 0 where unvisited, as the next two
    children_discounts: jax.Array  # [B, N, A] signed
    children_values: jax.Array  # [B, N, A] of the child, view of the player to move there
    embeddings: PyTree  # [B, N, ...]
    root_invalid_actions: jax.Array  # [B, A] ones where invalid
    extra_data: T  # [B, ...]

    ROOT_INDEX: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    UNVISITED: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        return self.children_index.shape[-1]

    @property
    def num_simulations(self) -> int:
        return self.node_visits.shape[-1] - 1

    def qvalues(self, indices: Any) -> jax.Array:
        """Return the values of a node's edges, 0 where unvisited: `[A]` of a tree without batch axis, or `[B, A]` for
        one index a row."""
        if jnp.ndim(indices) > 0:
            return jax.vmap(lambda row, index: row.qvalues(index))(self, jnp.asarray(indices))
        return self.children_rewards[indices] + self.children_discounts[indices] * self.children_values[indices]

    def summary(self) -> SearchSummary:
        """Summarise the roots of a batch."""
        if self.node_values.ndim != 2:
            raise ValueError(
                f"`node_values` has shape {self.node_values.shape}, expected (batch, nodes): "
                "`summary` is of a batch; add an axis of length 1 to every array."
            )
        value = self.node_values[:, self.ROOT_INDEX]
        visits = self.children_visits[:, self.ROOT_INDEX]
        return SearchSummary(
            visit_counts=visits.astype(value.dtype),
            visit_probs=visit_shares(visits),
            value=value,
            qvalues=self.qvalues(jnp.zeros(value.shape, jnp.int32)),
        )


def visit_shares(visits: jax.Array) -> jax.Array:
    """Return the shares of the visits `[..., A]`, uniform where there are none."""
    total = jnp.sum(visits, axis=-1, keepdims=True)
    return jnp.where(total > 0, visits / jnp.maximum(total, 1), 1 / visits.shape[-1])


class Row(Tree[T]):
    """One row of our tree as an mctx tree without batch axis, for selection functions: arrays are made when read.

    Reading one node of `raw_values`, `node_values`, `children_visits` or `children_prior_logits` and `qvalues` costs
    that node alone. Passed through a JAX transformation it becomes a `Tree`.
    """

    def __init__(self, source: jaxmcts.tree.Tree, root_invalid_actions: jax.Array, extra_data: T, *, cut: bool) -> None:
        """`source` has no batch axis, and holds the model's own logits as `extras`.

        `cut` says that descents may stop at the depth limit: visits of a node there are on the edge into it alone.
        """
        vars(self).update(source=source, _cut=cut, root_invalid_actions=root_invalid_actions, extra_data=extra_data)

    source: jaxmcts.tree.Tree
    _cut: bool

    @property
    def node_visits(self) -> jax.Array:
        visits = self.source.total_visits
        if not self._cut:
            return visits
        into = self.source.visits[self.source.parent, self.source.action]
        return jnp.where(self._is_child, into, visits)

    @property
    def raw_values(self) -> jax.Array:
        return self.source.raw_value

    @property
    def node_values(self) -> jax.Array:
        return self.source.value

    @property
    def parents(self) -> jax.Array:
        return jnp.where(self._is_child, self.source.parent, self.NO_PARENT)

    @property
    def action_from_parent(self) -> jax.Array:
        return jnp.where(self._is_child, self.source.action, self.NO_PARENT)

    @property
    def children_index(self) -> jax.Array:
        return jnp.where(self._has_child, self.source.child, self.UNVISITED)

    @property
    def children_prior_logits(self) -> jax.Array:
        return self.source.extras

    @property
    def children_visits(self) -> jax.Array:
        return self.source.visits

    @property
    def children_rewards(self) -> jax.Array:
        return self._of_children(self.source.reward)

    @property
    def children_discounts(self) -> jax.Array:
        return self._of_children(self.source.discount)

    @property
    def children_values(self) -> jax.Array:
        return self._of_children(self.source.value)

    @property
    def embeddings(self) -> PyTree:
        embedding, _ = self.source.state
        return embedding

    def qvalues(self, indices: Any) -> jax.Array:
        return self.source.q[indices]

    def replace(self, **changes: Any) -> Any:
        return self.whole().replace(**changes)

    def whole(self) -> Tree[T]:
        """Make all arrays."""
        return Tree(**self)

    @property
    def _is_child(self) -> jax.Array:
        visits = self.source.total_visits
        return (visits > 0) & (jnp.arange(visits.shape[0]) != ROOT)

    @property
    def _has_child(self) -> jax.Array:
        return self.source.child > NO_CHILD

    def _of_children(self, numbers: jax.Array) -> jax.Array:
        return jnp.where(self._has_child, numbers[self.source.child], 0)


def _unflatten(_: None, fields: Any) -> Any:
    return Tree.from_tuple(tuple(fields))


jax.tree_util.register_pytree_node(Row, lambda row: (row.to_tuple(), None), _unflatten)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """A batch of our trees with what mctx keeps beside them."""

    tree: jaxmcts.tree.Tree
    root_invalid_actions: jax.Array  # [B, A]
    extra_data: Any  # [B, ...]
    cut: bool  # see `Row`

    def map(self, fn: Callable[[Row], PyTree]) -> PyTree:
        """Apply `fn` to each row."""
        return jax.vmap(lambda *row: fn(Row(*row, cut=self.cut)))(self.tree, self.root_invalid_actions, self.extra_data)


def node_of(tree: Tree, index: Any) -> Node:
    """Read a node of a tree without batch axis as the record that our rules see; all actions are legal.

    The depth of a node is known of a `Row` alone, else it reads 0. (Descents do not go on from the nodes whose visits a
    row stores elsewhere.)
    """
    if isinstance(tree, Row):
        return read_node(tree.source, index)
    logits = tree.children_prior_logits[index]
    return Node(
        prior=jax.nn.softmax(logits),
        prior_logits=jax.nn.log_softmax(logits),
        visits=tree.children_visits[index],
        q=tree.qvalues(index),
        legal_action_mask=jnp.ones(logits.shape, bool),
        total_visits=tree.node_visits[index],
        value=tree.node_values[index],
        raw_value=tree.raw_values[index],
        depth=jnp.zeros((), jnp.int32),
    )
