"""Connect Four: stones fall down a column, four in a row win; other sizes and lengths are options.

Action c drops a stone into column c, counted from the left; row 0 is the bottom one. `board` is
uint32 [2 * W]: the stones of the player to move, then the other's, as the W words of a `bitboard.Grid`. On
the standard board columns 0-3 are in the first word and 4-6 in the second:

    row 5    5 12 19 26 |  5 12 19
    ...                 |             bits 6, 13, 20, 27 guard the tops and stay empty
    row 1    1  8 15 22 |  1  8 15
    row 0    0  7 14 21 |  0  7 14

Adding a column's lowest bit to its stones carries to the lowest free cell, where the next stone lands, or
to the guard bit when the column is full.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, bitboard, symmetry
from envs.moves import ActionLayout


@dataclasses.dataclass(frozen=True)
class ConnectFour(base.BoardGame):
    """`connect` in a row on a board of `rows` x `columns` with gravity; full without a line is a draw."""

    rows: int = 6
    columns: int = 7
    connect: int = 4

    name: ClassVar[str] = "connect_four"
    num_players: ClassVar[int] = 2
    bottom_up: ClassVar[bool] = True
    action_layout: ClassVar[ActionLayout] = ActionLayout(on="columns")

    def __post_init__(self) -> None:
        for option, most in (("rows", 31), ("columns", 64), ("connect", 64)):
            arguments.check_integer(option, getattr(self, option), 1, most)

    @property
    def num_actions(self) -> int:
        return self.columns

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, 2)

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The identity and the mirror, left for right."""
        return (symmetry.IDENTITY, _MIRROR)

    @functools.cached_property
    def grid(self) -> bitboard.Grid:
        """The layout of the bits of `State.board`."""
        return bitboard.Grid(self.rows, self.columns)

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [rows, columns, 2], own stones, then the other's.

        Row 0 is the bottom row.
        """
        planes = self.grid.planes(state.board.reshape(2, -1))
        return jnp.moveaxis(planes, 0, -1).astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(jnp.zeros(2 * self.grid.num_words, jnp.uint32))

    def _legal(self, state: base.State) -> jax.Array:
        tops = self.grid.cells[:, -1]  # [W, C]
        return functools.reduce(jnp.bitwise_or, map(jnp.bitwise_and, self._taken(state), tops)) == 0

    def _allows(self, state: base.State, action: jax.Array) -> jax.Array:
        return bitboard.is_any(self._landing(state, action))

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        mine, theirs = self._sides(state)
        return self._moved(bitboard.union(mine, self._landing(state, action)), theirs, state.to_play)

    def _moved(self, mine: bitboard.Words, theirs: bitboard.Words, mover: jax.Array) -> base.State:
        # The state after `mover`, whose stones are `mine`, has played.
        won = base.once(self.grid.has_line(mine, self.connect))
        return base.State(
            board=jnp.stack([*theirs, *mine]),
            to_play=1 - mover,
            terminated=won | self.grid.is_full(bitboard.union(mine, theirs)),
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(mover), 0),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        taken = planes[..., 0] | planes[..., 1]
        if (taken[1:] & ~taken[:-1]).any():
            raise ValueError("A stone hangs in the air: every cell below a stone must be taken.")
        mine, theirs = jnp.asarray(self.grid.pack(np.moveaxis(planes, -1, 0)))
        return self._moved(tuple(theirs), tuple(mine), jnp.int32(1 - to_play))

    def _landing(self, state: base.State, action: jax.Array) -> bitboard.Words:
        # The cell a stone dropped into column `action` lands on; no bit at all if the column is full.
        columns = self.grid.column(action)
        return tuple((t + f) & c for t, f, c in zip(self._taken(state), self.grid.floors, columns, strict=True))

    def _taken(self, state: base.State) -> bitboard.Words:
        return bitboard.union(*self._sides(state))

    def _sides(self, state: base.State) -> tuple[bitboard.Words, bitboard.Words]:
        words = bitboard.words_of(state.board)
        return words[: self.grid.num_words], words[self.grid.num_words :]


def _mirror_observation(observation: Any) -> Any:
    return observation[..., ::-1, :]


def _mirror_policy(policy: Any) -> Any:
    return policy[..., ::-1]


_MIRROR = symmetry.Symmetry(observation=_mirror_observation, policy=_mirror_policy)
