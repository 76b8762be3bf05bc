"""What games demand of options, states, actions and keys, with a sentence that says what to do."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")


def check_integer(option: str, value: Any, least: int, most: int) -> None:
    """Demand an integer from `least` to `most` of an option; raise `ValueError` otherwise, also for a bool."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"`{option}` is {value!r}, expected an integer from {least} to {most}.")


def check_flag(option: str, value: Any) -> None:
    """Demand True or False of an option; raise `ValueError` otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"`{option}` is {value!r}, expected True or False.")


def need_key(env: Any, function: str, key: jax.Array | None) -> jax.Array:
    """Return `key`. Raises `TypeError` if there is none: `function` of `env` draws by it."""
    if key is None:
        raise TypeError(
            f"`{function}` of {env.name!r} came without a `key`, expected one such as `jax.random.key(0)`: "
            "chance has a part in it."
        )
    return key


def check_single(state: Any) -> None:
    """Raise `TypeError` for a batch of states where one is expected."""
    if jnp.ndim(state.to_play):
        raise TypeError(
            f"`state` is a batch of shape {jnp.shape(state.to_play)}, expected one game: batch the call with "
            "`jax.vmap`, or take one with `jax.tree.map(lambda x: x[0], state)`."
        )


def of_single(look: Callable[[Any, Any], T]) -> Callable[[Any, Any], T]:
    """Let a method that looks at one state refuse a batch of them."""

    @functools.wraps(look)
    def checked(env: Any, state: Any, /) -> T:
        check_single(state)
        return look(env, state)

    return checked


def as_index(name: str, index: Any) -> jax.Array:
    """Take an action or an outcome as int32. Raises `TypeError` for what is not one integer."""
    # Outside of JAX integers have 64 bits and more, of which `jnp.asarray` would keep the low ones.
    index = index if isinstance(index, jax.Array) else np.asarray(index)
    if index.shape != ():
        raise TypeError(f"`{name}` has shape {index.shape}, expected one {name}: batch the call with `jax.vmap`.")
    if not jnp.issubdtype(index.dtype, jnp.integer):
        raise TypeError(f"`{name}` has dtype {index.dtype}, expected an integer: pass the {name}'s index.")
    if index.dtype.itemsize > 4:
        # Only the low 32 bits survive the cast: keep what lies beyond them from turning into a legal action.
        limit = 2**31 - 1
        xp = jnp if isinstance(index, jax.Array) else np
        index = xp.where((index >= 0) & (index < limit), index, limit)
    return jnp.asarray(index, jnp.int32)
