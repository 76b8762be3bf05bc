"""One simulation for a whole batch in lockstep: simulate, expand, back up, refresh.

Every node caches the choice of its rule; a descent follows these choices (`jaxmcts.choices`), one integer a level. The
nodes it passed are listed, packed, for the whole batch, and after the backup the rule is asked again at just those, in
chunks. Inside, all rows' nodes lie in one line (`jaxmcts.line`).

In a loop body, a read of a buffer that is also written must feed that write, or XLA copies the whole buffer in every
iteration. Hence reads come first, and the index of a write depends on what was computed from them.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks, choices
from jaxmcts.backup import Added, AtEdge, Relay, Update, checked
from jaxmcts.batching import fold_in, for_row, vary_alike
from jaxmcts.choices import Live
from jaxmcts.line import Line
from jaxmcts.model import Model, PyTree, Transition
from jaxmcts.tree import (
    FINISHED_CHOICE,
    NO_CHILD,
    Flags,
    Scalars,
    Tree,
    clean,
    read,
    read_edge,
    read_node,
    read_scalars,
    unset_choice,
)

Written = dict[str, PyTree]  # the arrays of a tree that a backup writes
_DESCENT, _STEP, _EVALUATE = range(3)  # what the keys of one simulation are for


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """The caller's functions as pytrees of their constants."""

    select: Partial | Live
    root_select: Partial | Live
    backup: Relay


def simulations(
    model: Model, params: PyTree, tree: Tree, rules: Rules, *, num_simulations: int, max_depth: int, refill: bool
) -> Tree:
    """Run simulations on every row. `refill` asks `select` at all nodes first, for a cache that another rule left."""
    if num_simulations == 0:
        return tree
    chunk = choices.chunk_size(tree.batch_size, tree.num_actions)
    longest = tree.batch_size * min(max_depth, tree.capacity - 1)
    path = jnp.broadcast_to(tree.flags[:1] * 0, (longest + chunk,))  # a chunk may begin at the last place
    line = Line.of(tree)
    if refill and not isinstance(rules.select, Live):
        line = choices.refill(line, rules.select)

    def simulation(_: int, carry: tuple[Line, jax.Array]) -> tuple[Line, jax.Array]:
        line, path = carry
        keys = fold_in(line.tree.keys, line.tree.num_simulations)
        stop = _simulate(line, rules, fold_in(keys, _DESCENT), max_depth)
        line, leaf = _expand(line, model, params, keys, stop)
        line, path, length = _back_up(line, path, leaf, rules.backup)
        if not isinstance(rules.select, Live):
            line = choices.refresh(line, rules.select, path, length, chunk)
        return line, path

    line, _ = jax.lax.fori_loop(0, num_simulations, simulation, (line, path))
    return line.in_rows


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Stop:
    """Where a descent ended, `[B]` each. A row that takes no part stops at the root and expands nothing."""

    place: jax.Array  # the last node reached
    node: Scalars  # of that node
    action: jax.Array  # the edge to expand there, where `expands`
    expands: jax.Array  # False at a finished state, at the depth limit and in a row without a free slot


def _simulate(line: Line, rules: Rules, keys: jax.Array, max_depth: int) -> _Stop:
    """Descend from the root by the rules' choices until an edge that leads nowhere yet."""
    tree, bases = line.tree, line.bases

    def descend(
        carry: tuple[jax.Array, jax.Array, jax.Array, PyTree],
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:
        depth, place, choice, message = carry
        going = choice > NO_CHILD
        depth, place = depth + 1, jnp.where(going, bases + choice, place)
        if isinstance(rules.select, Live):
            following, message = choices.ask(line, rules.select, fold_in(keys, depth), place, message)
        else:
            following = read(tree.choice, place)
        return depth, place, jnp.where(going, following, choice), message

    message = choices.first_message(line, rules.select, rules.root_select)
    root_choice, message = choices.ask(line, rules.root_select, fold_in(keys, 0), bases, message)
    start = (jnp.int32(0), bases, jnp.where(line.full, FINISHED_CHOICE, root_choice), message)
    _, place, choice, _ = jax.lax.while_loop(
        lambda carry: (carry[0] < max_depth) & jnp.any(carry[2] > NO_CHILD), descend, start
    )
    node = read_scalars(tree, place)
    expands = (choice < NO_CHILD) & (node.depth < max_depth)
    return _Stop(place=place, node=node, action=-1 - choice, expands=expands)


def _expand(line: Line, model: Model, params: PyTree, keys: jax.Array, stop: _Stop) -> tuple[Line, jax.Array]:
    """Step and evaluate where a descent found a new edge; returns the place `[B]` to back up from.

    The model sees every row. One that expands nothing repeats the step into the node where it stopped, which is
    harmless, and nothing of it is written.
    """
    tree, bases = line.tree, line.bases
    source = jnp.where(stop.expands, stop.place, bases + stop.node.parent)
    action = jnp.where(stop.expands, stop.action, stop.node.action)
    before, extras = jax.tree.map(lambda x: read(x, source), (tree.state, tree.extras))

    moved = model.step(params, fold_in(keys, _STEP), before, action)
    transition, pending = checks.pair(moved, "step", "Transition, pending")
    judged = model.evaluate(params, fold_in(keys, _EVALUATE), pending)
    evaluation, state = checks.pair(judged, "evaluate", "Evaluation, state")
    transition, step_flags = _clean_transition(checks.transition(transition, bases.shape[0]))
    evaluation, flags = clean(checks.evaluation(evaluation, bases.shape[0], num_actions=tree.num_actions))
    checks.same_form("state", state, before)
    checks.same_form("extras", evaluation.extras, extras)

    flags = flags | step_flags
    # Flags are small numbers; comparing makes the place, and so every write, depend on the evaluation.
    writes = stop.expands & (flags <= max(Flags) * 2)
    slot = tree.num_simulations + 1
    place = jnp.where(writes, bases + slot, line.end)
    link = jnp.where(writes, stop.place, line.end)
    put = functools.partial(_put, place)
    scalars = Scalars.of(
        parent=stop.place - bases, action=action, depth=stop.node.depth + 1, total_visits=jnp.ones_like(slot),
        reward=transition.reward, discount=transition.discount, value=evaluation.value, raw_value=evaluation.value,
    )  # fmt: skip
    new_flags = jnp.where(stop.expands, flags, 0) | jnp.where(line.full, Flags.FULL.value, 0)
    line = line.replace(
        prior_logits=put(tree.prior_logits, evaluation.prior_logits),
        child=tree.child.at[link, action].set(slot, mode="drop", unique_indices=True),
        choice=put(tree.choice, unset_choice(evaluation)),
        packed=put(tree.packed, scalars.packed),
        state=jax.tree.map(put, tree.state, state),
        extras=jax.tree.map(put, tree.extras, evaluation.extras),
        num_simulations=jnp.where(line.full, tree.num_simulations, slot),
        flags=tree.flags | new_flags,
    )
    return line, jnp.where(stop.expands, bases + slot, stop.place)


def _clean_transition(transition: Transition) -> tuple[Transition, jax.Array]:
    """Cast a transition to the tree's dtype and replace what is not finite by 0; returns `NOT_FINITE` bits `[B]`."""
    dtype = jnp.result_type(float)
    reward, discount = transition.reward.astype(dtype), transition.discount.astype(dtype)
    good = jnp.isfinite(reward) & jnp.isfinite(discount)
    cleaned = Transition(reward=jnp.where(good, reward, 0), discount=jnp.where(good, discount, 0))
    return cleaned, jnp.where(good, 0, Flags.NOT_FINITE.value).astype(jnp.int32)


def _back_up(line: Line, path: jax.Array, leaf: jax.Array, backup: Relay) -> tuple[Line, jax.Array, jax.Array]:
    """Walk every row from its `leaf [B]` to its root, writing what `backup` says of each edge.

    The places passed, roots left out, are listed in `path`, row after row; returns their number too.
    """
    bases = line.bases
    below = read_scalars(line.tree, leaf)

    def start(row: jax.Array, place: jax.Array, below: Scalars) -> PyTree:
        return checks.arrays(for_row(backup.start, row)(read_node(line.tree, place, scalars=below)), "start")

    message = vary_alike(jax.vmap(start)(line.rows, leaf, below), below)
    ends = jnp.cumsum(below.depth, dtype=jnp.int32)  # a row's places end here in `path`

    def climb(carry: tuple[jax.Array, jax.Array, Scalars, PyTree, jax.Array, jax.Array, Written]) -> Any:
        level, place, below, message, flags, path, written = carry
        tree = dataclasses.replace(line.tree, **written)
        active, parent = place > bases, bases + below.parent
        above = read_scalars(tree, parent)

        def visit(
            row: jax.Array, parent: jax.Array, above: Scalars, place: jax.Array, below: Scalars, message: PyTree
        ) -> tuple[Update, PyTree]:
            node, child = read_node(tree, parent, scalars=above), read_node(tree, place, scalars=below)
            given = for_row(backup.fn, row)(node, read_edge(tree, parent, below), child, message)
            return checked(given, node, message)

        update, passed = jax.vmap(visit)(line.rows, parent, above, place, below, message)
        is_finite = jax.vmap(_is_finite)(update)
        flags = flags | jnp.where(active & ~is_finite, Flags.NOT_FINITE.value, 0)
        position = jnp.where(active, ends - 1 - level, path.shape[0])
        path = path.at[position].set(place, mode="drop", unique_indices=True)
        counted = above.replace(value=update.value, total_visits=above.total_visits + 1)
        above = Scalars(packed=jnp.where(is_finite[:, None], counted.packed, above.packed))
        target = jnp.where(active & is_finite, parent, line.end)

        def put(array: jax.Array, new: jax.Array | AtEdge | Added) -> jax.Array:
            place: Any = target
            if isinstance(new, AtEdge):
                place, new = (target, below.action), new.entry
            if isinstance(new, Added):
                return array.at[place].add(new.amount, mode="drop", unique_indices=True)
            return _put(place, array, new)

        written = {
            "visits": put(tree.visits, AtEdge(Added(jnp.int32(1)))),
            "q": put(tree.q, AtEdge(update.q)),
            "packed": put(tree.packed, above.packed),
            "rule_state": jax.tree.map(put, tree.rule_state, update.rule_state),
        }
        return level + 1, parent, above, passed, flags, path, written  # at a root nobody listens any more

    written = {name: getattr(line.tree, name) for name in ("visits", "q", "packed", "rule_state")}
    carry = (jnp.int32(0), leaf, below, message, line.tree.flags, path, written)
    *_, flags, path, written = jax.lax.while_loop(lambda carry: jnp.any(carry[1] > bases), climb, carry)
    return line.replace(**written, flags=flags), path, ends[-1]


def _put(place: jax.Array | tuple[jax.Array, ...], array: jax.Array, new: jax.Array) -> jax.Array:
    """Write `new [B, ...]` at the places `place [B]`; one out of range writes nothing."""
    return array.at[place].set(new.astype(array.dtype), mode="drop", unique_indices=True)


def _is_finite(update: Update) -> jax.Array:
    """True if the numbers of an update are finite. It also ties every write to all that the backup read."""
    tied = sum((_tie(leaf) for leaf in jax.tree.leaves(update.rule_state)), jnp.float32(0))
    return jnp.isfinite(update.q) & jnp.isfinite(update.value) & jnp.isfinite(tied)


def _tie(leaf: jax.Array) -> jax.Array:
    """Make a finite number of an array of any kind, also of one that is not finite: a rule may keep infinity.

    One element is enough, for XLA reads rows whole; a sum of all of them can take longer than the write.
    """
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    first = leaf.reshape(-1)[:1]
    if jnp.issubdtype(leaf.dtype, jnp.inexact):
        first = first != first
    return jnp.sum(first.astype(jnp.float32))  # 0 of an array without elements
