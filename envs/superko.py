"""No position may come again: hashes of positions, and the list of those that a game has been through.

A hash is the sum of random numbers, one for each stone by colour and point, in two words of 32 bits, each modulo 2^32:
Zobrist's hashing with a sum in place of his exclusive or, since XLA can add up the stones of every group at once. Two
boards of one game have the same hash by chance with a probability of 2^-64; all else is exact.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

# Hashes of a list that are compared at once. On a CPU the reduction that follows is slow, and XLA works out the hashes
# to look for anew for every so many.
AT_ONCE = 21


@dataclasses.dataclass(frozen=True)
class Keys:
    """The random numbers of a board with `num_points` points; index `num_points` is no point, and its number is 0."""

    num_points: int

    @functools.cached_property
    def stones(self) -> np.ndarray:
        """Of a stone of either player on each point: [2 players, 2 words, num_points + 1] uint32."""
        numbers = _random(2 * self.num_points).reshape(2, self.num_points, 2).swapaxes(1, 2)
        return np.pad(numbers, ((0, 0), (0, 0), (0, 1)))

    @functools.cached_property
    def turn(self) -> np.ndarray:
        """Of player 1 being to move: [2 words] uint32."""
        return _random(2 * self.num_points + 1)[-1]

    def of(self, stones: jax.Array, player: jax.Array | int) -> jax.Array:
        """Hash the stones of one player: [num_points + 1] bool to [2] uint32."""
        return jnp.where(stones, jnp.asarray(self.stones)[player], np.uint32(0)).sum(axis=1, dtype=jnp.uint32)


def is_among(hashes: jax.Array, earlier: jax.Array) -> jax.Array:
    """Tell which of the hashes [2, N] are in the list [2, T]: [N] bool. T is a multiple of `AT_ONCE`."""
    lists = earlier.reshape(2, AT_ONCE, -1)
    same = [(low[:, None] == hashes[0][None, :]) & (high[:, None] == hashes[1][None, :]) for low, high in zip(*lists)]
    return functools.reduce(jnp.logical_or, same).any(axis=0)


def _random(count: int) -> np.ndarray:
    """Draw numbers that are the same everywhere and always, by SplitMix64: [count, 2] uint32."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z = z ^ z >> np.uint64(31)
    return np.stack([z & np.uint64(0xFFFFFFFF), z >> np.uint64(32)], axis=-1).astype(np.uint32)
