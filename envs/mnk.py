"""Games of stones in a row on an empty board: Gomoku by default, any size, length and two or three players by option.

Action r * columns + c puts a stone on the cell in row r, counted from the top, and column c. `board` is
uint32 [players * W]: the stones of the player to move, then of who comes next and so on, as the W words of a
`bitboard.Grid`. Its columns are this board's rows, so that the cells of a row, whose actions follow each other, are
bits that follow each other.
"""

import dataclasses
import functools
import operator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, bitboard, symmetry
from envs.moves import ActionLayout


@dataclasses.dataclass(frozen=True)
class MNK(base.BoardGame):
    """`connect` or more in a row, upright, across or diagonally, on `rows` x `columns`; full without is a draw.

    Longer lines win, too, as in free Gomoku. Of three `players`, who take turns, the winner gets 1 and each of the
    others -1, so their rewards do not sum to 0.
    """

    rows: int = 15
    columns: int = 15
    connect: int = 5
    players: int = 2

    name: ClassVar[str] = "mnk"
    action_layout: ClassVar[ActionLayout] = ActionLayout(on="cells")

    def __post_init__(self) -> None:
        for option, least, most in (("rows", 1, 19), ("columns", 1, 19), ("connect", 1, 19), ("players", 2, 3)):
            arguments.check_integer(option, getattr(self, option), least, most)

    @property
    def num_players(self) -> int:
        return self.players

    @property
    def num_actions(self) -> int:
        return self.rows * self.columns

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, self.players)

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The turns and flips of the board, eight if it is square and else four, the identity first."""
        return symmetry.board_symmetries(self.rows, self.columns)

    @functools.cached_property
    def grid(self) -> bitboard.Grid:
        """The layout of the bits of `State.board`: its columns are the rows of the game."""
        return bitboard.Grid(rows=self.columns, columns=self.rows)

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [rows, columns, players].

        The planes are own stones, then those of who comes next and so on.
        """
        planes = self.grid.planes(state.board.reshape(self.players, -1))
        return planes.T.astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(jnp.zeros(self.players * self.grid.num_words, jnp.uint32), self.players)

    def _legal(self, state: base.State) -> jax.Array:
        (taken,) = self.grid.planes(jnp.stack(bitboard.union(*self._sides(state)))[None])
        return ~taken.T.reshape(-1)

    def _allows(self, state: base.State, action: jax.Array) -> jax.Array:
        taken = bitboard.union(*self._sides(state))
        return ~bitboard.is_any(bitboard.each(operator.and_, taken, self._cell(action)))

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        mine, *others = self._sides(state)
        return self._moved(bitboard.union(mine, self._cell(action)), others, state.to_play)

    def _moved(self, mine: bitboard.Words, others: list[bitboard.Words], mover: jax.Array) -> base.State:
        # The state after `mover`, whose stones are `mine`, has played; `others` are in the order of their turns.
        won = base.once(self.grid.has_line(mine, self.connect))
        sides = [*others, mine]
        return base.State(
            board=jnp.stack([word for side in sides for word in side]),
            to_play=(mover + 1) % self.players,
            terminated=won | self.grid.is_full(bitboard.union(*sides)),
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(mover, self.players), 0),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        *others, last = (tuple(words) for words in jnp.asarray(self.grid.pack(planes.T)))
        return self._moved(last, others, jnp.int32((to_play - 1) % self.players))

    def _cell(self, action: jax.Array) -> bitboard.Words:
        row, column = jnp.divmod(action, self.columns)
        return self.grid.cell(column, row)

    def _sides(self, state: base.State) -> list[bitboard.Words]:
        count = self.grid.num_words
        words = bitboard.words_of(state.board)
        return [words[begin : begin + count] for begin in range(0, len(words), count)]
