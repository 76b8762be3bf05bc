"""Helpers of these tests: games from move lists, random games, and every position of a game ply by ply."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

CHUNK = 2048


def play(env: Any, moves: Sequence[int]) -> Any:
    """Play `moves` from the start and return the last state."""
    return jax.tree.map(lambda x: x[-1], history(env, moves))


def history(env: Any, moves: Sequence[int]) -> Any:
    """Play `moves` from the start and return every state, the first one included: [T + 1, ...]."""
    padded = np.zeros(64, np.int32)
    padded[: len(moves)] = moves
    return jax.tree.map(lambda x: x[: len(moves) + 1], _history(env, padded))


@functools.partial(jax.jit, static_argnums=0)
def _history(env: Any, moves: jax.Array) -> Any:
    def ply(state: Any, action: jax.Array) -> tuple[Any, Any]:
        after = env.step(state, action)
        return after, after

    start = env.init(jax.random.key(0))
    _, rest = jax.lax.scan(ply, start, moves)
    return jax.tree.map(lambda first, x: jnp.concatenate([first[None], x]), start, rest)


def random_moves(env: Any, games: int, plies: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Play random games side by side: states [T + 1, G, ...], masks [T + 1, G, A] and moves [T, G]."""
    states, masks, moves = _random_moves(env, games, plies, jax.random.key(seed))
    return jax.device_get(states), np.asarray(masks), np.asarray(moves)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _random_moves(env: Any, games: int, plies: int, key: jax.Array) -> Any:
    def ply(states: Any, key: jax.Array) -> tuple[Any, Any]:
        masks = jax.vmap(env.legal_action_mask)(states)
        moves = draw(masks, key)
        step_keys = jax.random.split(jax.random.fold_in(key, 1), games)
        return jax.vmap(env.step)(states, moves, step_keys), (states, masks, moves)

    start = jax.vmap(env.init)(jax.random.split(key, games))
    last, (states, masks, moves) = jax.lax.scan(ply, start, jax.random.split(key, plies))
    join = functools.partial(jax.tree.map, lambda x, y: jnp.concatenate([x, y[None]]))
    return join(states, last), join(masks, jax.vmap(env.legal_action_mask)(last)), moves


def draw(masks: jax.Array, key: jax.Array, *, shy: Any = 0) -> jax.Array:
    """Draw one of the moves marked in `masks` [..., A]: [...] int32, all equally likely.

    `shy` [A], from 0 to 1, makes moves less likely than others: by 1 one is played where there is no other.
    """
    luck = jax.random.uniform(key, masks.shape) - jnp.broadcast_to(jnp.asarray(shy, jnp.float32), masks.shape)
    return jnp.where(masks, luck, -2).argmax(axis=-1).astype(jnp.int32)


@functools.cache
def pgx_program(env: Any) -> Any:
    """Compile the playing of given moves [T, G] on a game of pgx: all states, the first ones included."""

    @jax.jit
    def games(moves: jax.Array) -> Any:
        start = jax.vmap(env.init)(jax.random.split(jax.random.key(3), moves.shape[1]))
        step = jax.vmap(env.step)
        _, rest = jax.lax.scan(lambda states, actions: (step(states, actions),) * 2, start, moves)
        return jax.tree.map(lambda first, x: jnp.concatenate([first[None], x]), start, rest)

    return games


@dataclasses.dataclass(frozen=True)
class Layer:
    """The distinct positions after some number of plies, as NumPy arrays."""

    states: Any  # [N, ...]
    paths: np.ndarray  # [N] move sequences that lead to each
    children: np.ndarray  # [N, A] row in the next layer, -1 where the move is illegal

    def __len__(self) -> int:
        return len(self.paths)


def layers(env: Any, plies: int) -> Iterator[Layer]:
    """Enumerate the positions after 0 to `plies` plies; positions are equal if board and mover are."""
    states = jax.tree.map(lambda x: np.asarray(x)[None], env.init(jax.random.key(0)))
    paths = np.ones(1, np.int64)
    for _ in range(plies + 1):
        masks, after = in_chunks(functools.partial(_step_all, env), states)
        parent, action = np.nonzero(masks)
        after = jax.tree.map(lambda x: x[parent, action], after)  # noqa: B023
        first, same = _distinct(after.board)
        children = np.full(masks.shape, -1)
        children[parent, action] = same
        yield Layer(states, paths, children)
        states = jax.tree.map(lambda x: x[first], after)  # noqa: B023
        paths = np.bincount(same, weights=paths[parent], minlength=len(first)).astype(np.int64)


def _distinct(boards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Where each distinct board comes first, and for every board which distinct one it is.
    if not len(boards):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    flat = boards.reshape(len(boards), -1)
    _, first, same = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    return first, same.reshape(-1)


@functools.partial(jax.jit, static_argnums=0)
def _step_all(env: Any, states: Any) -> tuple[jax.Array, Any]:
    every = jnp.arange(env.num_actions, dtype=jnp.int32)
    one = jax.vmap(env.step, in_axes=(None, 0))
    return jax.vmap(env.legal_action_mask)(states), jax.vmap(one, in_axes=(0, None))(states, every)


def in_chunks(function: Any, *arrays: Any, size: int = CHUNK) -> Any:
    """Call a batched function on rows of any number, with one program, for chunks of `size`."""
    count = len(jax.tree.leaves(arrays)[0])
    pieces = []
    for begin in range(0, count, size):
        chunk = jax.tree.map(lambda x: np.resize(x[begin : begin + size], (size, *x.shape[1:])), arrays)  # noqa: B023
        pieces.append(jax.device_get(function(*chunk)))
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *pieces)
