"""The contract (`envs.check`) as far as tracing tells: what a game declares, the shapes and dtypes of its functions."""

import copy
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import keystr

from envs.moves import check_names

PyTree = Any


def breaches_traced(env: Any, key: jax.Array) -> list[str]:
    """List what is wrong with declarations, or else with shapes and dtypes; no game is played."""
    try:
        return list(_declarations(env)) or list(_signatures(env, key))
    except Exception as error:  # whatever a user's property may raise is the finding
        return [f"What the game declares cannot be read: {type(error).__name__}: {error}"]


def _declarations(env: Any) -> Iterator[str]:
    counts = ["num_actions", "num_players"] + ["num_outcomes"] * hasattr(env, "num_outcomes")
    for attribute in counts:
        value = getattr(env, attribute, None)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            yield f"`{attribute}` is {value!r}, expected an int of at least 1."
    shape = getattr(env, "observation_shape", None)
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        yield f"`observation_shape` is {shape!r}, expected a tuple of ints."
    if not isinstance(getattr(env, "name", None), str):
        yield f"`name` is {getattr(env, 'name', None)!r}, expected a string."
    try:
        twin = copy.copy(env)
        if twin != env or hash(twin) != hash(env):
            yield "Two games of the same options differ: make the class a frozen dataclass, or jit retraces."
    except TypeError:
        yield "The game is not hashable: make the class a frozen dataclass of hashable options."


def _signatures(env: Any, key: jax.Array) -> Iterator[str]:
    action = jax.ShapeDtypeStruct((), jnp.int32)
    try:
        state = jax.eval_shape(env.init, key)
        after = jax.eval_shape(env.step, state, action, key)
        seen = jax.eval_shape(env.observe, state)
        mask = jax.eval_shape(env.legal_action_mask, state)
    except Exception as error:  # whatever a user's game may raise is the finding
        yield f"Tracing `init`, `step`, `observe`, `legal_action_mask` raises {type(error).__name__}: {error}"
        return
    yield from _state_types(state, env.num_players)
    yield from _symmetry_types(env)
    yield from _unlike("`step`", after, "`init`", state)
    if hasattr(env, "num_outcomes"):
        yield from _chance_signatures(env, state)
    try:
        check_names(env)
    except ValueError as error:
        yield str(error)
    if (mask.shape, mask.dtype) != ((env.num_actions,), jnp.bool_):
        yield f"`legal_action_mask` is {_type(mask)}, expected bool[{env.num_actions}], True where allowed."
    if not hasattr(seen, "shape") or seen.shape != env.observation_shape:
        yield f"`observe` gives {seen}, expected one array of `observation_shape` {env.observation_shape}."
    elif seen.weak_type:
        yield f"`observe` gives {_type(seen)}, expected a dtype of its own: name it where the array is made."
    elif seen.dtype != jnp.float32:
        yield f"`observe` gives {_type(seen)}, expected float32: end it with `.astype(jnp.float32)`."
    try:
        inspect.signature(env.step).bind(state, action)
    except TypeError:
        yield "`step` cannot be called without a key: give the third argument the default None."


def _chance_signatures(env: Any, state: Any) -> Iterator[str]:
    index, count = jax.ShapeDtypeStruct((), jnp.int32), env.num_outcomes
    try:
        afterstate = jax.eval_shape(env.decide, state, index)
        odds = jax.eval_shape(env.odds, afterstate)
        happened = jax.eval_shape(env.happen, afterstate, index)
    except Exception as error:  # as above
        yield f"Tracing `decide`, `odds`, `happen` raises {type(error).__name__}: {error}"
        return
    yield from _unlike("`decide`", afterstate, "`init`", state)
    yield from _unlike("`happen`", happened, "`init`", state)
    if _type(odds) != f"float32[{count}]":
        yield f"`odds` is {_type(odds)}, expected float32[{count}]."


def _state_types(state: Any, num_players: int) -> Iterator[str]:
    expected = {
        "to_play": ((), jnp.int32),
        "terminated": ((), jnp.bool_),
        "truncated": ((), jnp.bool_),
        "rewards": ((num_players,), jnp.float32),
    }
    for field, (shape, dtype) in expected.items():
        value = getattr(state, field, None)
        if value is None:
            yield f"The state has no `{field}`."
        elif (value.shape, value.dtype) != (shape, dtype):
            yield f"`state.{field}` is {_type(value)}, expected {jnp.dtype(dtype).name}{list(shape)}."
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if leaf.weak_type:
            yield f"`init` gives `state{keystr(path)}` weakly typed: name the dtype where the array is made."


def _symmetry_types(env: Any) -> Iterator[str]:
    symmetries = getattr(env, "symmetries", None)
    if symmetries is None:
        return
    if not isinstance(symmetries, tuple) or not symmetries:
        yield f"`symmetries` is {symmetries!r}, expected a tuple that begins with `envs.symmetry.IDENTITY`."
        return
    observation = jax.ShapeDtypeStruct((2, *env.observation_shape), jnp.float32)
    mask = jax.ShapeDtypeStruct((2, env.num_actions), jnp.bool_)
    for (index, symmetry), (part, given) in itertools.product(
        enumerate(symmetries), (("observation", observation), ("policy", mask))
    ):
        try:
            came = jax.eval_shape(getattr(symmetry, part), given)
        except Exception as error:
            yield f"Symmetry {index} cannot be traced: its `{part}` raises {type(error).__name__}: {error}"
            continue
        if _type(came) != _type(given):
            yield f"The `{part}` of symmetry {index} turns {_type(given)} into {_type(came)}, expected the same."


def _unlike(what: str, tree: PyTree, other_what: str, other: PyTree) -> Iterator[str]:
    structure, expected = str(jax.tree.structure(tree)), str(jax.tree.structure(other))
    if structure != expected:
        yield f"{what} returns {structure}, {other_what} {expected}: both must be of one structure."
        return
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    for (path, leaf), other_leaf in zip(leaves, jax.tree.leaves(other), strict=True):
        if _type(leaf) != _type(other_leaf):
            yield f"{what} gives `state{keystr(path)}` as {_type(leaf)}, {other_what} as {_type(other_leaf)}."


def _type(array: Any) -> str:
    weak = "weak " if getattr(array, "weak_type", False) else ""
    return f"{weak}{jnp.dtype(array.dtype).name}{list(array.shape)}"
