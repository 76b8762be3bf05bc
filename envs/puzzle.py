"""The sliding puzzle: numbered tiles and one hole; put them in order, the hole last. One player.

Actions are the way a tile slides into the hole: 0 left, 1 up, 2 right, 3 down. Solved is

    1 2 3
    4 5 6
    7 8 .

and ends the game with reward 1; every other move gives 0. With a discount below 1 (`gamma` of
`jaxmcts.model_from_env`) the value of a position is gamma^(moves - 1), which lies in [0, 1], never needs rescaling, and
is larger the shorter the way; without a discount every way is as good. After `max_moves` the game is cut short:
truncated, so that its value goes on counting.

`board` is uint8 [R * C], the tiles row by row, 0 for the hole.
"""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base
from envs.moves import ActionLayout


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PuzzleState(base.State):
    """A position and the number of moves that led to it."""

    moves: jax.Array  # [] int32


@dataclasses.dataclass(frozen=True)
class SlidingPuzzle(base.BoardGame):
    """The puzzle on `rows` x `columns` cells, each 2 to 8; 3 x 3 is the eight-puzzle, whose hardest take 31 moves.

    A game starts from any solvable position but the solved one, all equally likely; or, with `scramble`, from where
    that many random moves lead from the solved one (moves may undo each other), so that it is no further away. A slide
    of no tile, at an edge, is illegal: it ends the game with reward -1.
    """

    rows: int = 3
    columns: int = 3
    scramble: int | None = None
    max_moves: int = 200

    name: ClassVar[str] = "sliding_puzzle"
    num_players: ClassVar[int] = 1
    has_stones: ClassVar[bool] = False
    num_actions: ClassVar[int] = 4
    action_layout: ClassVar[ActionLayout] = ActionLayout(others=("left", "up", "right", "down"))

    def __post_init__(self) -> None:
        for option, least, most in (("rows", 2, 8), ("columns", 2, 8), ("scramble", 1, 10**6), ("max_moves", 1, 10**6)):
            if (value := getattr(self, option)) is not None or option != "scramble":
                arguments.check_integer(option, value, least, most)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, self._num_cells)

    @property
    def _num_cells(self) -> int:
        return self.rows * self.columns

    @property
    def _goal(self) -> np.ndarray:
        return np.roll(np.arange(self._num_cells, dtype=np.uint8), -1)

    def observe(self, state: base.State, /) -> jax.Array:
        """See the tiles: float32 [rows, columns, cells], plane t is 1 where tile t lies, plane 0 at the hole."""
        planes = state.board[:, None] == np.arange(self._num_cells, dtype=np.uint8)[None]
        return planes.astype(jnp.float32).reshape(self.observation_shape)

    def labels(self, state: base.State, /) -> jax.Array:
        """Tell the numbers on the tiles: [rows, columns] uint8, 0 at the hole."""
        return state.board.reshape(*state.board.shape[:-1], self.rows, self.columns)

    def arrange(self, labels: np.ndarray, to_play: int = 0) -> PuzzleState:
        """Set up a position of the numbers on its tiles, [rows, columns], 0 at the hole; no moves are made yet.

        Raises `ValueError` unless each number is there once and the position can be solved.
        """
        board = labels.reshape(-1).astype(np.int64)
        if sorted(board) != list(range(self._num_cells)):
            raise ValueError(
                f"The tiles are {board.tolist()}, expected each from 0, the hole, to {len(board) - 1} once."
            )
        if not self._is_solvable(jnp.asarray(board, jnp.uint8)):
            raise ValueError("The position cannot be solved: two of its tiles would have to be exchanged.")
        return self._state(jnp.asarray(board, jnp.uint8), jnp.zeros((), jnp.int32))

    def _start(self, key: jax.Array | None) -> PuzzleState:
        def draw(key: jax.Array) -> jax.Array:
            return self._permutation(key) if self.scramble is None else self._scrambled(key, self.scramble)

        def again(drawn: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, draw_key = jax.random.split(drawn[0])
            return key, draw(draw_key)

        solved = (arguments.need_key(self, "init", key), jnp.asarray(self._goal))
        board = jax.lax.while_loop(lambda drawn: self._is_solved(drawn[1]), again, solved)[1]
        return self._state(board, jnp.zeros((), jnp.int32))

    def _permutation(self, key: jax.Array) -> jax.Array:
        # Exchanging two tiles makes a position solvable or unsolvable, so this maps two draws on each.
        board = jax.random.permutation(key, jnp.asarray(self._goal))
        exchanged = jnp.where(board == 1, 2, jnp.where(board == 2, 1, board)).astype(jnp.uint8)
        return jnp.where(self._is_solvable(board), board, exchanged)

    def _scrambled(self, key: jax.Array, count: int) -> jax.Array:
        def move(board: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            weights = jnp.where(self._movable(board), jnp.float32(0), -jnp.inf)
            return self._slid(board, jax.random.categorical(key, weights)), None

        return jax.lax.scan(move, jnp.asarray(self._goal), jax.random.split(key, count))[0]

    def _legal(self, state: base.State) -> jax.Array:
        return self._movable(state.board)

    def _play(self, state: PuzzleState, action: jax.Array, key: jax.Array | None) -> PuzzleState:  # type: ignore[override]
        return self._state(self._slid(state.board, action), state.moves + 1)

    def _state(self, board: jax.Array, moves: jax.Array) -> PuzzleState:
        solved = self._is_solved(board)
        return PuzzleState(
            board=board,
            to_play=jnp.zeros((), jnp.int32),
            terminated=solved,
            truncated=~solved & (moves >= self.max_moves),
            rewards=solved.astype(jnp.float32)[None],
            moves=moves,
        )

    def _is_solved(self, board: jax.Array) -> jax.Array:
        return (board == self._goal).all()

    def _movable(self, board: jax.Array) -> jax.Array:
        """Tell which way a tile can slide, which is where it has the hole on that side: [4] bool."""
        row, column = jnp.divmod(_hole(board), self.columns)
        return jnp.stack([column < self.columns - 1, row < self.rows - 1, column > 0, row > 0])

    def _slid(self, board: jax.Array, action: jax.Array) -> jax.Array:
        hole = _hole(board)
        # The tile that slides left lies to the right of the hole, and so on.
        tile = hole + jnp.asarray(np.array([1, self.columns, -1, -self.columns], np.int32))[action]
        cells = jnp.arange(self._num_cells, dtype=jnp.int32)
        # By a sum, since a lookup would cost more than the few cells.
        number = jnp.where(cells == tile, board, 0).sum(dtype=jnp.uint8)
        return jnp.where(cells == hole, number, jnp.where(cells == tile, 0, board)).astype(jnp.uint8)

    def _is_solvable(self, board: jax.Array) -> jax.Array:
        # A slide exchanges the hole with a tile and moves it by one: the parity of the permutation goes with the
        # parity of the hole's way to the last cell (Johnson and Story 1879).
        later = np.triu(np.ones((self._num_cells, self._num_cells), bool), k=1)
        numbers = jnp.where(board == 0, self._num_cells, board.astype(jnp.int32))
        inversions = (later & (numbers[:, None] > numbers[None])).sum(dtype=jnp.int32)
        row, column = jnp.divmod(_hole(board), self.columns)
        return (inversions + (self.rows - 1 - row) + (self.columns - 1 - column)) % 2 == 0


def _hole(board: jax.Array) -> jax.Array:
    return jnp.argmin(board).astype(jnp.int32)
