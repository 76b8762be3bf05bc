"""The one place where batches are shaped: row keys, constants by row, and a caller's own `vmap`.

A search runs a whole batch in lockstep under loops with one scalar predicate. `jax.vmap` around it would make the
predicate a vector, and JAX would then copy whole trees at every step. `fold_vmap` instead folds the extra axis into
the batch: V lanes of B rows become V * B rows, so the caller's `vmap` costs nothing.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.model import Model, PyTree


def row_keys(key: Any, batch_size: int, alike: PyTree) -> jax.Array:
    """Return `[B]` typed keys: `fold_in(key, row)` of one key, or the `[B]` keys given. Legacy keys are accepted.

    Inside `jax.shard_map` a row's number is its number in the whole batch, which is split as `alike` is.
    """
    key = checks.key(key)
    if key.ndim == 0:
        row = jnp.arange(batch_size)
        split = [axis for axis in jax.sharding.get_abstract_mesh().axis_names if axis in _axes(alike) - _axes(key)]
        if split:
            row = jax.lax.axis_index(tuple(split)) * batch_size + row
        return fold_in(jnp.broadcast_to(key, (batch_size,)), row)
    if key.shape != (batch_size,):
        raise ValueError(
            f"`key` has shape {key.shape}, expected one key or one per row, ({batch_size},): "
            "pass a single `jax.random.key(seed)` or split it once per row."
        )
    return key


def fold_in(keys: jax.Array, data: jax.Array | int) -> jax.Array:
    """Fold a number, or one a row, into `[B]` keys."""
    return jax.vmap(jax.random.fold_in)(keys, jnp.broadcast_to(jnp.asarray(data, jnp.uint32), keys.shape))


def as_partial(name: str, fn: Callable[..., Any], *arguments: str) -> Partial:
    """Make a function to be called with `arguments` a pytree of its constants.

    Nested functions become static, numbers become arrays.
    `Partial(puct, fpu=fpu_lose, c_init=1.25)` has a function among its leaves, which cannot enter a compiled call
    as an argument; wrapped in a `Partial` of its own it is part of the tree's structure instead.
    """
    checks.function(name, fn, *arguments)
    # Partial is a functools.partial; a plain one is as good.
    rule = Partial(fn.func, *fn.args, **fn.keywords) if isinstance(fn, functools.partial) else Partial(fn)

    def leaf(x: Any) -> Any:
        if callable(x):
            return Partial(x)
        try:
            return jnp.asarray(x, jnp.result_type(x))  # never weakly typed: a Python number retraces nothing
        except TypeError as error:
            called = getattr(rule.func, "__name__", rule.func)
            raise TypeError(f"a constant of `{called}` is {x!r}, expected a number, an array or a function.") from error

    return jax.tree.map(leaf, rule)


def for_row(constants: PyTree, row: jax.Array) -> PyTree:
    """Take one row's share of a rule's constants, each of which is `[]` or has a leading B axis."""
    return jax.tree.map(lambda x: x if x.ndim == 0 else x[row], constants)


def detach(tree: PyTree) -> PyTree:
    """Stop gradients, so that `jax.grad` around a search gives zeros instead of meeting a while loop."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x, tree)


def vary_alike(tree: PyTree, *others: PyTree) -> PyTree:
    """Let every leaf of `tree` vary over the mesh axes that any leaf here varies over.

    Inside `jax.shard_map` a loop's carry must vary before the loop as it does after; zeros and a model's constants do
    not by themselves. Elsewhere this does nothing.
    """
    axes = _axes((tree, *others))

    def vary(leaf: jax.Array) -> jax.Array:
        missing = tuple(sorted(axes - _axes(leaf)))
        return jax.lax.pcast(leaf, missing, to="varying") if missing else leaf

    return jax.tree.map(vary, tree)


def _axes(tree: PyTree) -> frozenset[str]:
    """The mesh axes that any leaf varies over."""
    leaves = jax.tree.leaves(tree)
    return frozenset().union(*(jax.typeof(leaf).manual_axis_type.varying for leaf in leaves))


def fold_vmap(
    run: Callable[[Model, PyTree, PyTree, PyTree], PyTree],
    model: Model,
    params: PyTree,
    rows: PyTree,
    rules: PyTree,
) -> PyTree:
    """Call `run(model, params, rows, rules)` so that `jax.vmap` around it folds into the batch.

    Leaves of `rows` and of the result have a leading B axis; leaves of `rules` have one or are scalars.
    """

    @custom_vmap
    def call(params: PyTree, rows: PyTree, rules: PyTree) -> PyTree:
        return run(model, params, rows, rules)

    @call.def_vmap
    def rule(lanes: int, batched: list[PyTree], params: PyTree, rows: PyTree, rules: PyTree) -> tuple[PyTree, PyTree]:
        params_batched, rows_batched, rules_batched = batched
        in_lanes = jax.tree.map(lambda x, is_batched: _to_lanes(x, is_batched, lanes), rows, rows_batched)
        batch_size = jax.tree.leaves(in_lanes)[0].shape[1]
        folded_rules = jax.tree.map(
            lambda x, is_batched: _fold_constant(x, is_batched, lanes, batch_size), rules, rules_batched
        )
        folded_model = _with_lanes(model, lanes, params_batched)
        out = fold_vmap(run, folded_model, params, jax.tree.map(_merge, in_lanes), folded_rules)
        out = jax.tree.map(lambda x: _split(x, lanes), out)
        return out, jax.tree.map(lambda _: True, out)

    return call(params, rows, rules)


def _to_lanes(x: jax.Array, is_batched: bool, lanes: int) -> jax.Array:
    return x if is_batched else jnp.broadcast_to(x[None], (lanes, *x.shape))


def _merge(x: jax.Array) -> jax.Array:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _split(x: jax.Array, lanes: int) -> jax.Array:
    return x.reshape(lanes, x.shape[0] // lanes, *x.shape[1:])


def _fold_constant(x: jax.Array, is_batched: bool, lanes: int, batch_size: int) -> jax.Array:
    if not is_batched and x.ndim == 0:
        return x
    in_lanes = _to_lanes(x, is_batched, lanes)
    return jnp.repeat(in_lanes, batch_size) if in_lanes.ndim == 1 else _merge(in_lanes)


def _with_lanes(model: Model, lanes: int, params_batched: PyTree) -> Model:
    """Let a model take `[V * B]` rows and parameters of which some leaves have a leading V axis."""
    if not any(jax.tree.leaves(params_batched)):
        return model
    params_axes = jax.tree.map(lambda is_batched: 0 if is_batched else None, params_batched)

    def in_lanes(fn: Callable[..., PyTree]) -> Callable[..., PyTree]:
        def call(params: PyTree, *rows: PyTree) -> PyTree:
            mapped = jax.vmap(fn, (params_axes, *(0 for _ in rows)))
            return jax.tree.map(_merge, mapped(params, *jax.tree.map(lambda x: _split(x, lanes), rows)))

        return call

    return Model(step=in_lanes(model.step), evaluate=in_lanes(model.evaluate))
