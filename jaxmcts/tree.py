"""The search tree: fixed-size arrays, one row a tree, and the record of one node that rules see.

Slot 0 is the root; the node made by simulation i lies in slot i + 1 of every row. A simulation that makes no
node (it stopped at a finished state or at the depth limit) leaves a hole with 0 visits. `child` 0 means none,
and writes that must not happen go to index N with `mode="drop"`, never to -1, which would wrap around.

Statistics of an edge are stored once, 16 bytes an edge; what belongs to the edge *into* a node (action, reward,
discount) is stored at that node. A node's scalars lie side by side in one row of floats, where integers are exact up
to `MOST_SLOTS`: a level of a backup is one gather and one scatter of such rows instead of a dozen of single numbers.

`choice` is the cache that makes descents cheap: what the node's rule would choose now, as a slot when that edge already
leads to a node, as `-1 - action` when it does not, and 0 at a finished state, where there is nothing to choose.
"""

import dataclasses
import enum
import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts.model import Evaluation, PyTree

ROOT = 0
NO_CHILD = 0
FINISHED_CHOICE = 0
UNSET_CHOICE = -1
MOST_SLOTS = 2**24


class Flags(enum.IntFlag):
    """Bits of `flags [B]`: what happened to a row that only the device can know."""

    FINISHED = 1  # the root has no legal action: action 0, weights and visits 0, value the evaluation's
    NOT_FINITE = 2  # NaN or infinity: logits became uniform over the legal, numbers 0, a backup's update was dropped
    FULL = 4  # no slot was left: the row stopped, its earlier statistics stand


class _Column:
    """A column of `packed`, so that it can be read by name."""

    def __init__(self, index: int, dtype: Any = None) -> None:
        self._index, self._dtype = index, dtype

    def __get__(self, record: Any, kind: type) -> jax.Array:
        if record is None:
            raise AttributeError(f"{kind.__name__} has no scalars, its instances have.")
        column: jax.Array = record.packed[..., self._index]
        return column if self._dtype is None else column.astype(self._dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Packed:
    """The names of a node's scalars."""

    packed: jax.Array  # [..., 8] floats, the columns below

    parent = _Column(0, jnp.int32)  # [...] slot of the parent, 0 at the root
    action = _Column(1, jnp.int32)  # [...] taken at the parent
    depth = _Column(2, jnp.int32)  # [...] edges from the root
    total_visits = _Column(3, jnp.int32)  # [...] the node's own evaluation counted; 0 in a hole
    reward = _Column(4)  # [...] of the edge into the node, view of the player who moved
    discount = _Column(5)  # [...] signed, of the edge into the node
    value = _Column(6)  # [...] search value
    raw_value = _Column(7)  # [...] value before search


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Scalars(_Packed):
    """The scalars of nodes of any shape, `[...]` each."""

    @classmethod
    def of(cls, **scalars: jax.Array) -> "Scalars":
        """Pack scalars `[...]`, all of them by name."""
        dtype = scalars["value"].dtype
        return cls(packed=jnp.stack([scalars[name].astype(dtype) for name in _SCALARS], axis=-1))

    def replace(self, **scalars: jax.Array) -> "Scalars":
        """Return them with some replaced."""
        return self.of(**{name: scalars.get(name, getattr(self, name)) for name in _SCALARS})


_SCALARS = tuple(name for name, column in vars(_Packed).items() if isinstance(column, _Column))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree(_Packed):
    """A batch of search trees. Values are in the view of the player to move at their node.

    A node's scalars are read by name, `[B, N]` each: `parent`, `action`, `depth`, `total_visits`, `reward`, `discount`,
    `value` and `raw_value`. They are stored in `packed [B, N, 8]`.
    """

    prior_logits: jax.Array  # [B, N, A] log-softmax over the legal actions, -inf where illegal
    visits: jax.Array  # [B, N, A] int32, of each edge
    q: jax.Array  # [B, N, A] value of each edge for the player who moves, 0 where unvisited
    child: jax.Array  # [B, N, A] int32 slot the edge leads to, 0 where none
    choice: jax.Array  # [B, N] int32 cached choice of the node's rule, see above
    state: PyTree  # [B, N, ...] the model's states
    extras: PyTree  # [B, N, ...] the model's extras
    rule_state: PyTree  # [B, N, ...] arrays that a rule or backup owns
    keys: jax.Array  # [B] row keys
    num_simulations: jax.Array  # [B] int32 simulations run so far
    flags: jax.Array  # [B] int32 bits of `Flags`

    @property
    def batch_size(self) -> int:
        return self.visits.shape[0]

    @property
    def capacity(self) -> int:
        return self.visits.shape[1]

    @property
    def num_actions(self) -> int:
        return self.visits.shape[-1]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """The record of one node that selection rules and backups see. Values: view of the player to move."""

    prior: jax.Array  # [A] probabilities, 0 where illegal
    prior_logits: jax.Array  # [A] log-softmax over the legal actions, -inf where illegal
    visits: jax.Array  # [A] int32
    q: jax.Array  # [A] 0 where unvisited
    legal_action_mask: jax.Array  # [A] bool
    total_visits: jax.Array  # [] int32, 1 + sum of visits
    value: jax.Array  # [] V(s), search value
    raw_value: jax.Array  # [] value before search
    depth: jax.Array  # [] int32
    extras: PyTree = ()  # what the model's evaluation gave beside value and prior
    rule_state: PyTree = ()

    @property
    def child_visits(self) -> jax.Array:
        """The sum of `visits`, S(s), `[]`; without adding them up."""
        return self.total_visits - 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Edge:
    """The record of one edge that backups see. `q` and `reward`: view of the player who moved."""

    action: jax.Array  # [] int32
    visits: jax.Array  # [] int32 before this visit
    q: jax.Array  # [] before this visit, 0 if it is the first
    reward: jax.Array  # []
    discount: jax.Array  # [] signed


def demand_tree(given: Any) -> None:
    """Raise `TypeError` for what is no tree."""
    if not isinstance(given, Tree):
        raise TypeError(f"`tree` is a {type(given).__name__}, expected a `jaxmcts.Tree`: a policy gives `out.tree`.")


def read(array: jax.Array, *index: jax.Array | int) -> jax.Array:
    """Read `array[index]` for indices known to be in range: no clamping, no wrapping of negative ones."""
    return array.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def read_scalars(tree: Tree, *index: jax.Array | int) -> Scalars:
    """Read the scalars of nodes at an index as in `read_node`, or of several at an array of slots."""
    return Scalars(packed=read(tree.packed, *index))


def read_node(tree: Tree, *index: jax.Array | int, scalars: Scalars | None = None) -> Node:
    """Read one node: `read_node(tree, row, slot)`, or `read_node(tree_of_one_row, slot)`.

    `scalars` are its scalars if they are at hand already.
    """
    logits = read(tree.prior_logits, *index)
    scalars = scalars or read_scalars(tree, *index)
    return Node(
        prior=jnp.exp(logits),
        prior_logits=logits,
        visits=read(tree.visits, *index),
        q=read(tree.q, *index),
        legal_action_mask=logits > -jnp.inf,
        total_visits=scalars.total_visits,
        value=scalars.value,
        raw_value=scalars.raw_value,
        depth=scalars.depth,
        extras=jax.tree.map(lambda x: read(x, *index), tree.extras),
        rule_state=jax.tree.map(lambda x: read(x, *index), tree.rule_state),
    )


def read_edge(tree: Tree, parent: jax.Array, child: Scalars) -> Edge:
    """Read the edge that leads from slot `parent` to the node with the scalars `child`, in a tree of one row."""
    return Edge(
        action=child.action,
        visits=read(tree.visits, parent, child.action),
        q=read(tree.q, parent, child.action),
        reward=child.reward,
        discount=child.discount,
    )


def legal_log_softmax(logits: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    """Log-softmax of `logits [..., A]` over the legal actions; -inf where illegal, all -inf in a row without any.

    The lowest finite value stands for -inf until after the reduction, so a row without a legal action makes no NaN.
    """
    low = jnp.finfo(logits.dtype).min
    masked = jnp.where(legal_action_mask, logits, low)
    shifted = masked - jnp.max(masked, axis=-1, keepdims=True)
    mass = jnp.sum(jnp.where(legal_action_mask, jnp.exp(shifted), 0), axis=-1, keepdims=True)
    return jnp.where(legal_action_mask, shifted - jnp.log(jnp.maximum(mass, 1)), -jnp.inf)


def clean(evaluation: Evaluation) -> tuple[Evaluation, jax.Array]:
    """Cast an evaluation to the tree's dtype and replace what is not finite.

    Returns the evaluation with `prior_logits` normalised over the legal actions, and `NOT_FINITE` bits `[B]`.
    An infinite logit of a legal action counts as not finite except -inf, which is a prior of 0.
    """
    dtype = jnp.result_type(float)
    legal = evaluation.legal_action_mask
    logits, value = evaluation.prior_logits.astype(dtype), evaluation.value.astype(dtype)
    usable = jnp.where(legal, logits, 0) < jnp.inf  # False for NaN and +inf
    good_row = jnp.all(usable, axis=-1)
    floor = jnp.finfo(dtype).min / 4  # keeps differences of logits finite
    logits = jnp.where(good_row[:, None], jnp.clip(logits, floor, -floor), 0)
    good_value = jnp.isfinite(value)
    cleaned = dataclasses.replace(
        evaluation,
        prior_logits=legal_log_softmax(logits, legal),
        value=jnp.where(good_value, value, 0),
    )
    return cleaned, jnp.where(good_row & good_value, 0, Flags.NOT_FINITE.value).astype(jnp.int32)


def unset_choice(evaluation: Evaluation) -> jax.Array:
    """Return the `choice [B]` of new nodes, before any rule was asked: all that is known is who is finished."""
    finished = ~jnp.any(evaluation.legal_action_mask, axis=-1)
    return jnp.where(finished, FINISHED_CHOICE, UNSET_CHOICE).astype(jnp.int32)


def allocate(evaluation: Evaluation, state: PyTree, keys: jax.Array, rule_state: PyTree, *, capacity: int) -> Tree:
    """Allocate trees of `capacity` slots around a root of `state [B, ...]` and its `evaluation`, not yet cleaned."""
    root, flags = clean(evaluation)
    choice = unset_choice(root)
    zero = jnp.zeros_like(flags)  # [B] int32

    def slots(first: jax.Array) -> jax.Array:
        rest = jnp.broadcast_to(jnp.zeros_like(first)[:, None], (first.shape[0], capacity, *first.shape[1:]))
        return rest.at[:, ROOT].set(first)

    edge_integers = slots(jnp.zeros_like(root.prior_logits, dtype=jnp.int32))
    scalars = Scalars.of(
        parent=zero, action=zero, depth=zero, total_visits=zero + 1,
        reward=jnp.zeros_like(root.value), discount=jnp.zeros_like(root.value),
        value=root.value, raw_value=root.value,
    )  # fmt: skip
    return Tree(
        packed=slots(scalars.packed),
        prior_logits=slots(root.prior_logits),
        visits=edge_integers,
        q=slots(jnp.zeros_like(root.prior_logits)),
        child=edge_integers,
        choice=slots(choice),
        state=jax.tree.map(slots, state),
        extras=jax.tree.map(slots, evaluation.extras),
        rule_state=rule_state,
        keys=keys,
        num_simulations=zero,
        flags=flags | jnp.where(choice == FINISHED_CHOICE, Flags.FINISHED.value, 0),
    )


def memory(
    *, batch_size: int, num_actions: int, capacity: int, state: Any, extras: Any = (), rule_state: Any = ()
) -> int:
    """Estimate the bytes that a search of these sizes takes, tree and working memory together.

    `state` and `extras` are one state and one node's extras without batch axis (arrays or `jax.ShapeDtypeStruct`),
    `rule_state` one node's share of it. A search of n simulations needs `capacity` n + 1. It holds inside `jax.jit` and
    for a donated `run`; a plain call holds the tree twice. Network activations are not counted.
    """
    if min(batch_size, num_actions, capacity) < 1:
        raise ValueError(f"sizes are {batch_size}, {num_actions} and {capacity}, expected 1 or more of each.")
    number, integer = jnp.dtype(jnp.result_type(float)).itemsize, 4
    per_edge = 2 * number + 2 * integer
    per_node = (
        len(_SCALARS) * number
        + integer
        + sum(_num_bytes(leaf) for leaf in jax.tree.leaves((state, extras, rule_state)))
    )
    path = 4  # the flat list of visited nodes, at worst every node of every tree
    return batch_size * capacity * (num_actions * per_edge + per_node + path)


def _num_bytes(leaf: Any) -> int:
    return math.prod(jnp.shape(leaf)) * jnp.dtype(jnp.result_type(leaf)).itemsize
