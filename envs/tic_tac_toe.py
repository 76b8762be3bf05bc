"""Tic-tac-toe: three in a row on 3 x 3.

Cells and actions are the same numbers, row by row, and a cell's number is its bit:

    0 | 1 | 2
    3 | 4 | 5
    6 | 7 | 8

`board` is one uint32: the stones of the player to move in bits 0-8, the other's in bits 16-24, so that
changing sides swaps the halves.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import base, symmetry
from envs.moves import ActionLayout

_HALF = 16
_FULL = np.uint32(0b111_111_111)
_CELL = np.uint32(1) << np.arange(9, dtype=np.uint32)
# In octal a digit is a row: three rows, three columns, two diagonals.
_LINES = np.array([0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124])
# By the stones of one player.
_HAS_LINE = (np.arange(512)[:, None] & _LINES == _LINES).any(axis=1)


@dataclasses.dataclass(frozen=True)
class TicTacToe(base.BoardGame):
    """Three in a row on a 3 x 3 board."""

    name: ClassVar[str] = "tic_tac_toe"
    num_players: ClassVar[int] = 2
    num_actions: ClassVar[int] = 9
    observation_shape: ClassVar[tuple[int, ...]] = (3, 3, 2)
    action_layout: ClassVar[ActionLayout] = ActionLayout(on="cells")

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The eight turns and flips of the square, the identity first."""
        return _SYMMETRIES

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [3, 3, 2], own stones, then the other's."""
        planes = state.board & (_CELL[:, None] << np.array([0, _HALF], np.uint32))
        return (planes != 0).astype(jnp.float32).reshape(3, 3, 2)

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(jnp.zeros((), jnp.uint32))

    def _legal(self, state: base.State) -> jax.Array:
        return (_stones(state) & _CELL) == 0

    def _allows(self, state: base.State, action: jax.Array) -> jax.Array:
        return (_stones(state) & _bit(action)) == 0

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        mine = (state.board & _FULL) | _bit(action)
        return self._moved(mine, state.board >> _HALF, state.to_play)

    def _moved(self, mine: jax.Array, theirs: jax.Array, mover: jax.Array) -> base.State:
        # The state after `mover`, whose stones are `mine`, has played.
        won = jnp.asarray(_HAS_LINE).at[mine].get(mode="promise_in_bounds")
        return base.State(
            board=(mine << _HALF) | theirs,
            to_play=1 - mover,
            terminated=won | ((mine | theirs) == _FULL),
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(mover), 0),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        mine, theirs = np.where(planes.reshape(9, 2), _CELL[:, None], 0).sum(axis=0, dtype=np.uint32)
        return self._moved(jnp.uint32(theirs), jnp.uint32(mine), jnp.int32(1 - to_play))


def _stones(state: base.State) -> jax.Array:
    return (state.board | (state.board >> _HALF)) & _FULL


def _bit(action: jax.Array) -> jax.Array:
    return jnp.uint32(1) << action.astype(jnp.uint32)


_SYMMETRIES = symmetry.square_symmetries(3)
