"""The search loop: simulate, expand, back up, for a whole batch in lockstep.

No loop here carries a tree under a batched predicate, so the cost of a simulation does not grow with the budget.
Every node caches the choice of its rule; a descent follows these choices, one integer a level. The nodes it passed
are written, packed, into one flat list for the whole batch, and after the backup the rule is evaluated again for
just those, in chunks. This is exact for every rule whose choice depends on the node's own record; a rule that needs
more is `Live` and is evaluated during the descent.

In a loop body, a read of a buffer that is also written must feed that write, or XLA copies the whole buffer in every
iteration. Hence reads come first, and the index of a write depends on what was computed from them.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.backup import Backup, Update
from jaxmcts.batching import as_partial, detach, fold_vmap, for_row, row_keys, vary_alike
from jaxmcts.model import Evaluation, Model, PyTree, Transition
from jaxmcts.tree import (
    FINISHED_CHOICE,
    NO_CHILD,
    ROOT,
    Flags,
    Node,
    Tree,
    allocate,
    clean,
    edge,
    node,
    read,
    unset_choice,
)

Select = Callable[[Node], jax.Array]

_DESCENT, _STEP, _EVALUATE = range(3)  # what the keys of one simulation are for
_ROOT_EVALUATION = 2**31  # folded into a row key; simulations fold in 0, 1, 2, ...


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Live:
    """A rule to evaluate during the descent: `fn(key, tree, index) -> action` over one row's tree.

    For rules that need a key, statistics of the whole tree or of their ancestors. `tree` has no batch axis and
    `index` is a slot; `jaxmcts.tree.node(tree, index)` reads its record.
    """

    fn: Callable[[jax.Array, Tree, jax.Array], jax.Array]


Rule = Select | Live


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rules:
    """The caller's functions as pytrees of their constants."""

    select: Partial | Live
    root_select: Partial | Live
    backup: Partial


def init(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    *,
    capacity: int,
    root_evaluation: Evaluation | None = None,
    rule_state: PyTree = (),
) -> Tree:
    """Allocate a tree for every row of `state [B, ...]` and evaluate its root.

    `key` is one key or `[B]` keys. `capacity` is the number of nodes a tree can hold: one more than the simulations
    to come. Without `root_evaluation` the model evaluates `state`; with it, the state is stored as given.
    `rule_state` holds arrays `[B, capacity, ...]` that a rule or backup owns. Raises `ValueError` or `TypeError`
    that name the argument at fault.
    """
    batch_size = checks.batch_size(state)
    checks.positive("capacity", capacity)
    keys = row_keys(jnp.asarray(key), batch_size)
    params, state, rule_state = detach(checks.arrays((params, state, () if rule_state is None else rule_state)))
    checks.rule_state(rule_state, batch_size, capacity)
    return _init(params, keys, state, root_evaluation, rule_state, model=model, capacity=capacity)


@functools.partial(jax.jit, static_argnames=("model", "capacity"))
def _init(
    params: PyTree,
    keys: jax.Array,
    state: PyTree,
    root_evaluation: Evaluation | None,
    rule_state: PyTree,
    *,
    model: Model,
    capacity: int,
) -> Tree:
    name = "root_evaluation"
    if root_evaluation is None:
        root_evaluation, state = model.evaluate(params, _for_purpose(keys, _ROOT_EVALUATION), state)
        name = "evaluate"
    evaluation = checks.evaluation(root_evaluation, keys.shape[0], name=name)
    return allocate(detach(evaluation), state, keys, rule_state, capacity=capacity)


def run(
    params: PyTree,
    tree: Tree,
    model: Model,
    *,
    select: Rule,
    root_select: Rule,
    backup: Backup,
    num_simulations: int,
    max_depth: int | None = None,
) -> Tree:
    """Run `num_simulations` more simulations on every row; n, then m, equals n + m.

    `select(node) -> action` is the rule below the root, `root_select` the one at it (either may be `Live`);
    `backup` is described in `jaxmcts.backup`. Constants are bound with `jax.tree_util.Partial`, scalars or `[B, ...]`
    arrays, and new ones do not retrace. No node lies deeper than `max_depth`; a simulation that reaches a
    finished state or that depth backs up the raw value found there again. Rows without a slot left stop with `FULL`.
    Donate the tree to update it in place.
    """
    return advance(
        params, tree, model, select=select, root_select=root_select, backup=backup,
        num_simulations=num_simulations, max_depth=max_depth, refill=True,
    )  # fmt: skip


def search(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    *,
    select: Rule,
    root_select: Rule,
    backup: Backup,
    num_simulations: int,
    max_depth: int | None = None,
    root_evaluation: Evaluation | None = None,
    rule_state: PyTree = (),
) -> Tree:
    """Search every row of `state [B, ...]` from a new tree: `init`, then `run`."""
    checks.count("num_simulations", num_simulations)
    tree = init(
        params, key, state, model,
        capacity=num_simulations + 1, root_evaluation=root_evaluation, rule_state=rule_state,
    )  # fmt: skip
    return advance(
        params, tree, model, select=select, root_select=root_select, backup=backup,
        num_simulations=num_simulations, max_depth=max_depth,
    )  # fmt: skip


def advance(
    params: PyTree,
    tree: Tree,
    model: Model,
    *,
    select: Rule,
    root_select: Rule,
    backup: Backup,
    num_simulations: int,
    max_depth: int | None,
    refill: bool = False,
) -> Tree:
    """Do what `run` says. Without `refill`, the tree must be new or come from a run with the same `select`."""
    checks.count("num_simulations", num_simulations)
    checks.fits(num_simulations, tree.capacity)
    if max_depth is not None:
        checks.positive("max_depth", max_depth)
    depth_limit = min(max_depth or tree.capacity, max(tree.capacity - 1, 1))
    rules = _Rules(select=_as_rule(select), root_select=_as_rule(root_select), backup=as_partial(backup))
    checks.constants(rules, tree.batch_size)
    arguments = detach((checks.arrays(params), tree, rules))
    return _compiled(*arguments, model=model, num_simulations=num_simulations, max_depth=depth_limit, refill=refill)


@functools.partial(jax.jit, static_argnames=("model", "num_simulations", "max_depth", "refill"))
def _compiled(
    params: PyTree, tree: Tree, rules: _Rules, *, model: Model, num_simulations: int, max_depth: int, refill: bool
) -> Tree:
    loop = functools.partial(_loop, num_simulations=num_simulations, max_depth=max_depth, refill=refill)
    return fold_vmap(loop, model, params, vary_alike(tree, params, rules), rules)


def _as_rule(rule: Rule) -> Partial | Live:
    return Live(as_partial(rule.fn)) if isinstance(rule, Live) else as_partial(rule)


def _loop(
    model: Model,
    params: PyTree,
    tree: Tree,
    rules: _Rules,
    *,
    num_simulations: int,
    max_depth: int,
    refill: bool,
) -> Tree:
    if refill and not isinstance(rules.select, Live):
        tree = _refill(tree, rules.select)
    chunk = _chunk_size(tree.batch_size, tree.num_actions)
    longest = tree.batch_size * min(max_depth, tree.capacity - 1)
    path = jnp.broadcast_to(tree.flags[:1] * 0, (-(-longest // chunk) * chunk,))

    def simulation(_: int, carry: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
        tree, path = carry
        keys = jax.vmap(jax.random.fold_in)(tree.keys, tree.num_simulations)
        stop = _simulate(tree, rules, _for_purpose(keys, _DESCENT), max_depth)
        tree, leaf = _expand(model, params, tree, keys, stop)
        tree, path, length = _back_up(tree, path, leaf, rules.backup)
        if not isinstance(rules.select, Live):
            tree = _refresh(tree, rules.select, path, length, chunk)
        return tree, path

    return jax.lax.fori_loop(0, num_simulations, simulation, (tree, path))[0]


def _for_purpose(keys: jax.Array, purpose: int) -> jax.Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, purpose))(keys)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Stop:
    """Where a descent ended, `[B]` each. A row that takes no part stops at the root and expands nothing."""

    slot: jax.Array  # the last node reached
    action: jax.Array  # the edge to expand there, where `expands`
    expands: jax.Array  # False at a finished state, at the depth limit and in a row without a free slot


def _simulate(tree: Tree, rules: _Rules, keys: jax.Array, max_depth: int) -> _Stop:
    """Descend from the root by the rules' choices until an edge that leads nowhere yet."""
    row = _rows(tree)

    def choose(rule: Partial | Live, depth: jax.Array, slot: jax.Array) -> jax.Array:
        if not isinstance(rule, Live):
            return _choices(tree, rule, row, slot)
        return _live_choices(tree, rule, jax.vmap(jax.random.fold_in, (0, None))(keys, depth), slot)

    def descend(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        depth, slot, choice = carry
        going = choice > NO_CHILD
        slot, depth = jnp.where(going, choice, slot), depth + 1
        live = isinstance(rules.select, Live)
        next_choice = choose(rules.select, depth, slot) if live else read(tree.choice, row, slot)
        return depth, slot, jnp.where(going, next_choice, choice)

    root_choice = choose(rules.root_select, jnp.int32(0), row * ROOT)
    start = (jnp.int32(0), row * ROOT, jnp.where(_is_full(tree), FINISHED_CHOICE, root_choice))
    _, slot, choice = jax.lax.while_loop(
        lambda carry: (carry[0] < max_depth) & jnp.any(carry[2] > NO_CHILD), descend, start
    )
    expands = (choice < NO_CHILD) & (read(tree.depth, row, slot) < max_depth)
    return _Stop(slot=slot, action=-1 - choice, expands=expands)


def _choices(tree: Tree, select: Partial, rows: jax.Array, slots: jax.Array) -> jax.Array:
    """Evaluate a rule at the nodes `(rows, slots) [P]` and encode what it chose as in `Tree.choice`."""

    def choice(row: jax.Array, slot: jax.Array) -> jax.Array:
        record = node(tree, row, slot)
        action = for_row(select, row)(record).astype(jnp.int32)
        return _encode(action, read(tree.child, row, slot, action), read(tree.choice, row, slot))

    return jax.vmap(choice)(rows, slots)


def _live_choices(tree: Tree, rule: Live, keys: jax.Array, slots: jax.Array) -> jax.Array:
    """Evaluate a live rule at one node a row, `slots [B]`, and encode what it chose as in `Tree.choice`."""

    def choice(row: jax.Array, key: jax.Array, tree: Tree, slot: jax.Array) -> jax.Array:
        action = for_row(rule.fn, row)(key, tree, slot).astype(jnp.int32)
        return _encode(action, read(tree.child, slot, action), read(tree.choice, slot))

    return jax.vmap(choice)(_rows(tree), keys, tree, slots)


def _encode(action: jax.Array, child: jax.Array, old_choice: jax.Array) -> jax.Array:
    choice = jnp.where(child > NO_CHILD, child, -1 - action)
    return jnp.where(old_choice == FINISHED_CHOICE, FINISHED_CHOICE, choice)


def _expand(model: Model, params: PyTree, tree: Tree, keys: jax.Array, stop: _Stop) -> tuple[Tree, jax.Array]:
    """Step and evaluate where a descent found a new edge; returns the tree and the slot `[B]` to back up from.

    The model sees every row. One that expands nothing repeats the step into the node where it stopped, which is
    harmless, and nothing of it is written.
    """
    row, full = _rows(tree), _is_full(tree)
    source = jnp.where(stop.expands, stop.slot, read(tree.parent, row, stop.slot))
    action = jnp.where(stop.expands, stop.action, read(tree.action, row, stop.slot))
    state = jax.tree.map(lambda x: read(x, row, source), tree.state)

    transition, pending = model.step(params, _for_purpose(keys, _STEP), state, action)
    evaluation, state = model.evaluate(params, _for_purpose(keys, _EVALUATE), pending)
    transition, step_flags = _clean_transition(checks.transition(transition, tree.batch_size))
    evaluation, flags = clean(checks.evaluation(evaluation, tree.batch_size, num_actions=tree.num_actions))
    checks.same_form("state", state, tree.state)
    checks.same_form("extras", evaluation.extras, tree.extras)

    flags = flags | step_flags
    # A flag has small values only; comparing makes the index, and so every write, depend on the evaluation.
    slot = jnp.where(stop.expands & (flags <= max(Flags) * 2), tree.num_simulations + 1, tree.capacity)
    link = jnp.where(slot < tree.capacity, stop.slot, tree.capacity)

    def put(array: jax.Array, new: jax.Array) -> jax.Array:
        return array.at[row, slot].set(new, mode="drop")

    new_flags = jnp.where(stop.expands, flags, 0) | jnp.where(full, Flags.FULL.value, 0)
    tree = dataclasses.replace(
        tree,
        prior_logits=put(tree.prior_logits, evaluation.prior_logits),
        child=tree.child.at[row, link, action].set(slot, mode="drop"),
        parent=put(tree.parent, stop.slot),
        action=put(tree.action, action),
        reward=put(tree.reward, transition.reward),
        choice=put(tree.choice, unset_choice(evaluation)),
        discount=put(tree.discount, transition.discount),
        value=put(tree.value, evaluation.value),
        raw_value=put(tree.raw_value, evaluation.value),
        total_visits=put(tree.total_visits, jnp.ones_like(slot)),
        depth=put(tree.depth, read(tree.depth, row, stop.slot) + 1),
        state=jax.tree.map(put, tree.state, state),
        extras=jax.tree.map(put, tree.extras, evaluation.extras),
        num_simulations=jnp.where(full, tree.num_simulations, tree.num_simulations + 1),
        flags=tree.flags | new_flags,
    )
    return tree, jnp.where(stop.expands, slot, stop.slot)


def _clean_transition(transition: Transition) -> tuple[Transition, jax.Array]:
    """Cast a transition to the tree's dtype and replace what is not finite by 0; returns `NOT_FINITE` bits `[B]`."""
    dtype = jnp.result_type(float)
    reward, discount = transition.reward.astype(dtype), transition.discount.astype(dtype)
    good = jnp.isfinite(reward) & jnp.isfinite(discount)
    cleaned = Transition(reward=jnp.where(good, reward, 0), discount=jnp.where(good, discount, 0))
    return cleaned, jnp.where(good, 0, Flags.NOT_FINITE.value).astype(jnp.int32)


def _back_up(tree: Tree, path: jax.Array, leaf: jax.Array, backup: Partial) -> tuple[Tree, jax.Array, jax.Array]:
    """Walk every row from `leaf [B]` to its root, writing what `backup` says of each edge.

    The nodes passed, roots left out, are listed in `path` as `row * N + slot`, row after row; returns their number too.
    """
    row = _rows(tree)
    ends = jnp.cumsum(read(tree.depth, row, leaf), dtype=jnp.int32)  # a row's nodes end here in `path`

    def climb(carry: tuple[jax.Array, jax.Array, jax.Array, jax.Array, _Statistics]) -> Any:
        level, slot, value, path, statistics = carry
        at = statistics.within(tree)
        parent, active = read(tree.parent, row, slot), slot > ROOT

        def visit(row: jax.Array, parent: jax.Array, slot: jax.Array, value: jax.Array) -> tuple[Update, jax.Array]:
            rule = for_row(backup, row)
            return rule(node(at, row, parent), edge(at, row, parent, slot), node(at, row, slot), value)

        update, passed = jax.vmap(visit)(row, parent, slot, value)
        target = jnp.where(active & _is_number(update), parent, tree.capacity)
        position = jnp.where(active, ends - 1 - level, path.shape[0])
        path = path.at[position].set(row * tree.capacity + slot, mode="drop", unique_indices=True)
        statistics = statistics.write(update, row, target, read(tree.action, row, slot))
        return level + 1, parent, jnp.where(active, passed, value), path, statistics

    value = read(tree.raw_value, row, leaf)
    start = (jnp.int32(0), leaf, value, path, _Statistics.of(tree))
    *_, path, statistics = jax.lax.while_loop(lambda carry: jnp.any(carry[1] > ROOT), climb, start)
    return statistics.within(tree), path, ends[-1]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Statistics:
    """The arrays of a tree that a backup writes: what its loop carries."""

    visits: jax.Array
    q: jax.Array
    value: jax.Array
    total_visits: jax.Array
    rule_state: PyTree

    @classmethod
    def of(cls, tree: Tree) -> "_Statistics":
        return cls(**{field.name: getattr(tree, field.name) for field in dataclasses.fields(cls)})

    def within(self, tree: Tree) -> Tree:
        return dataclasses.replace(
            tree, **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        )

    def write(self, update: Update, row: jax.Array, target: jax.Array, action: jax.Array) -> "_Statistics":
        """Write an update of the edge `action` at slot `target`, each `[B]`; a target out of range writes nothing."""

        def put(array: jax.Array, new: jax.Array) -> jax.Array:
            return array.at[row, target].set(new.astype(array.dtype), mode="drop", unique_indices=True)

        edge = (row, target, action)
        return _Statistics(
            visits=self.visits.at[edge].set(update.visits, mode="drop", unique_indices=True),
            q=self.q.at[edge].set(update.q, mode="drop", unique_indices=True),
            value=put(self.value, update.value),
            total_visits=self.total_visits.at[row, target].add(1, mode="drop", unique_indices=True),
            rule_state=jax.tree.map(put, self.rule_state, update.rule_state),
        )


def _is_number(update: Update) -> jax.Array:
    """True where an update holds no NaN `[B]`. It also ties every write to all that the backup read."""
    total = update.value + update.q + update.visits
    return total == total


def _refresh(tree: Tree, select: Partial, path: jax.Array, length: jax.Array, chunk: int) -> Tree:
    """Evaluate the rule again at the first `length` nodes of `path`, `chunk` at a time, and cache what it chooses."""

    def refresh(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        start, choice = carry
        place = jax.lax.dynamic_slice(path, (start,), (chunk,))
        row, slot = place // tree.capacity, place % tree.capacity
        used = start + jnp.arange(chunk, dtype=jnp.int32) < length
        choices = _choices(dataclasses.replace(tree, choice=choice), select, row, slot)
        target = jnp.where(used, slot, tree.capacity)
        return start + chunk, choice.at[row, target].set(choices, mode="drop", unique_indices=True)

    _, choice = jax.lax.while_loop(lambda carry: carry[0] < length, refresh, (jnp.int32(0), tree.choice))
    return dataclasses.replace(tree, choice=choice)


def _refill(tree: Tree, select: Partial) -> Tree:
    """Evaluate the rule at every node in use: the cache may come from a run with another rule or other constants."""
    row = _rows(tree)
    last = jnp.max(tree.num_simulations)

    def refill(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        slot, choice = carry
        slots = jnp.broadcast_to(slot, row.shape)
        choices = _choices(dataclasses.replace(tree, choice=choice), select, row, slots)
        return slot + 1, choice.at[row, slots].set(choices)

    _, choice = jax.lax.while_loop(lambda carry: carry[0] <= last, refill, (jnp.int32(1), tree.choice))
    return dataclasses.replace(tree, choice=choice)


def _rows(tree: Tree) -> jax.Array:
    return vary_alike(jnp.arange(tree.batch_size, dtype=jnp.int32), tree.num_simulations)


def _is_full(tree: Tree) -> jax.Array:
    return tree.num_simulations + 1 >= tree.capacity


def _chunk_size(batch_size: int, num_actions: int) -> int:
    """Nodes evaluated at once by `_refresh`: enough to pay for an iteration, few enough to stay in the cache."""
    return max(16, min(2 * batch_size, max(128, 8192 // num_actions)))
