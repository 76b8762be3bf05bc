"""The search: allocate trees, run simulations on them.

`search` is `init` followed by `run`. The rules come as arguments; what one simulation does is in `simulation.py`.
"""

import functools
from collections.abc import Callable

import jax
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.backup import Backup, Relay, as_relay
from jaxmcts.batching import as_partial, detach, fold_in, fold_vmap, row_keys, vary_alike
from jaxmcts.choices import Live
from jaxmcts.model import Evaluation, Model, PyTree
from jaxmcts.simulation import Rules, simulations
from jaxmcts.tree import MOST_SLOTS, Node, Tree, allocate

Select = Callable[[Node], jax.Array]
Rule = Select | Live

_ROOT_EVALUATION = 2**31  # folded into a row key; simulations fold in 0, 1, 2, ...


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

    `key` is one key or `[B]` keys; row b of one key draws from `fold_in(key, b)`, also when `jax.shard_map` splits the
    batch, while under `jax.vmap` lanes that share a key draw alike. `capacity` is the number of nodes a tree can
    hold, at most 2**24: one more than the simulations to come. Without `root_evaluation` the model evaluates `state`;
    with it, the state is stored as given. `rule_state` holds arrays `[B, capacity, ...]` that a rule or backup owns.
    Raises `ValueError` or `TypeError` that name the argument at fault.
    """
    checks.model(model)
    checks.positive("capacity", capacity, most=MOST_SLOTS)
    batch_size = checks.batch_size(state)
    keys = row_keys(key, batch_size, alike=state)
    params, state = checks.arrays(params, "params"), checks.arrays(state, "state")
    rule_state = checks.arrays(() if rule_state is None else rule_state, "rule_state")
    checks.rule_state(rule_state, batch_size, capacity)
    params, state, rule_state = detach((params, state, rule_state))
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
        judged = model.evaluate(params, fold_in(keys, _ROOT_EVALUATION), state)
        root_evaluation, state = checks.pair(judged, "evaluate", "Evaluation, state")
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
    arrays, and new ones do not retrace; what an outer `vmap` or `grad` varies comes through `params`, the tree or such
    constants, never by closure. No node lies deeper than `max_depth`; a simulation that reaches a
    finished state or that depth backs up the raw value found there again. Gradients are 0: no derivative passes through
    a search. Rows without a slot left stop with `FULL`.
    To update the tree in place, donate it: `jax.jit(functools.partial(run, model=..., ...), donate_argnums=1)`.
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
    checks.model(model)
    if not isinstance(tree, Tree):
        raise TypeError(f"`tree` is a {type(tree).__name__}, expected a `jaxmcts.Tree`: make one with `init`.")
    checks.count("num_simulations", num_simulations)
    checks.fits(num_simulations, tree.capacity)
    if max_depth is not None:
        checks.positive("max_depth", max_depth)
    depth_limit = min(max_depth or tree.capacity, max(tree.capacity - 1, 1))
    rules = Rules(
        select=_as_rule("select", select),
        root_select=_as_rule("root_select", root_select),
        backup=_as_relay(backup),
    )
    checks.constants(rules, tree.batch_size)
    arguments = detach((checks.arrays(params, "params"), tree, rules))
    return _compiled(*arguments, model=model, num_simulations=num_simulations, max_depth=depth_limit, refill=refill)


@functools.partial(jax.jit, static_argnames=("model", "num_simulations", "max_depth", "refill"))
def _compiled(
    params: PyTree, tree: Tree, rules: Rules, *, model: Model, num_simulations: int, max_depth: int, refill: bool
) -> Tree:
    loop = functools.partial(simulations, num_simulations=num_simulations, max_depth=max_depth, refill=refill)
    return fold_vmap(loop, model, params, vary_alike(tree, params, rules), rules)


def _as_rule(name: str, rule: Rule) -> Partial | Live:
    if not isinstance(rule, Live):
        return as_partial(name, rule, "node")
    if rule.start is None:
        return Live(as_partial(name, rule.fn, "key", "tree", "index"))
    fn = as_partial(name, rule.fn, "key", "tree", "index", "message")
    return Live(fn, start=as_partial("start", rule.start, "tree"))


def _as_relay(backup: Backup) -> Relay:
    relay = as_relay(backup)
    fn = as_partial("backup", relay.fn, "parent", "edge", "child", "message")
    return Relay(fn=fn, start=as_partial("start", relay.start, "leaf"))
