"""Position hashes: each byte of a position has a random number for each of its values, and XOR joins them.

This is Zobrist's method (Technical Report 88, University of Wisconsin, 1970) with bytes of the packed board in the
place of cells, a few lookups a position. Two different positions have equal hashes with probability 2^-64. The numbers
are fixed for good: hashes may be stored.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

_KEY = 1970
_VALUES = 256  # of a byte


def hash_arrays(*arrays: jax.Array) -> jax.Array:
    """Hash arrays of integers of any width, bools or floats by all of their bytes, in order: [2] uint32."""
    values = jnp.concatenate([_bytes(array) for array in arrays])
    rows = values.astype(jnp.int32) + _VALUES * np.arange(len(values), dtype=np.int32)
    return jnp.bitwise_xor.reduce(jnp.asarray(_numbers(len(values))).at[rows].get(mode="promise_in_bounds"), axis=0)


def _bytes(array: jax.Array) -> jax.Array:
    array = array.astype(jnp.uint8) if array.dtype == jnp.bool_ else array
    return jax.lax.bitcast_convert_type(array, jnp.uint8).reshape(-1)


@functools.cache
def _numbers(count: int) -> np.ndarray:
    """Draw the numbers of `count` bytes: [count * 256, 2] uint32, the beginning of every longer table."""
    # NumPy promises that the raw stream of a generator stays as it is.
    drawn = np.random.Philox(key=_KEY).random_raw(count * _VALUES)
    return np.stack([drawn & 0xFFFFFFFF, drawn >> 32], axis=-1).astype(np.uint32)
