"""2048: slide the tiles, equal ones that meet merge, and a new tile comes up. One player, other sizes are options.

Actions are the way the tiles slide: 0 left, 1 up, 2 right, 3 down. Each slides as far as it can; two equal ones that
meet become one of twice the number, nearest to the wall first, and a merged tile merges no more in that move. The
reward is the sum of the tiles made. Then a tile comes up on an empty cell, all equally likely: a 2 with probability
0.9, else a 4. A game begins with two such tiles and ends when nothing can move. (Rules of Cirulli's game of 2014.)

`board` is uint32 [R], one word a row, 5 bits a cell with column 0 in the lowest; a cell holds the exponent of its
tile, 0 if empty. On n cells no tile beyond 2^(n + 1) can come about, so boards of up to 30 cells never overflow.

All moves are one move. Rows, or for left and right columns, are handed over as lines, the one at the wall first, and
slide toward line 0: cells of a line are side by side in a word and move at once, by masks.
"""

import dataclasses
import functools
import itertools
import operator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, symmetry
from envs.bitboard import Words, each, is_any, words_of
from envs.chance import ChanceGame
from envs.moves import ActionLayout

_BITS = 5
_CELL = np.uint32(2**_BITS - 1)
_LOWS = np.uint32(sum(1 << _BITS * i for i in range(6)))  # the lowest bit of every cell


@dataclasses.dataclass(frozen=True)
class Twenty48(ChanceGame):
    """2048 on a board of `rows` x `columns`, each 2 to 6 and 30 cells at most.

    Outcome 2 * cell is a 2 on that cell, 2 * cell + 1 a 4; cells are numbered row by row. An illegal action, one that
    moves nothing, ends the game with reward -1.
    """

    rows: int = 4
    columns: int = 4

    name: ClassVar[str] = "2048"
    num_players: ClassVar[int] = 1
    has_stones: ClassVar[bool] = False
    num_actions: ClassVar[int] = 4
    action_layout: ClassVar[ActionLayout] = ActionLayout(others=("left", "up", "right", "down"))

    def __post_init__(self) -> None:
        for option in ("rows", "columns"):
            arguments.check_integer(option, getattr(self, option), 2, 6)
        if self._num_cells > 30:
            raise ValueError(f"`rows` x `columns` is {self._num_cells} cells, expected at most 30, such as 5 x 6.")

    @property
    def _num_cells(self) -> int:
        return self.rows * self.columns

    @property
    def num_outcomes(self) -> int:
        return 2 * self._num_cells

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns, self._num_cells + 2)

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The turns and flips of the board, eight of a square and else four, the identity first."""
        swaps = (False, True) if self.rows == self.columns else (False,)
        return tuple(
            symmetry.Symmetry(
                observation=functools.partial(symmetry.turn, flips=flips),
                policy=functools.partial(_turn_policy, flips=flips),
            )
            for flips in itertools.product(swaps, (False, True), (False, True))
        )

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board: float32 [rows, columns, cells + 2], plane e is 1 where the tile is 2^e, plane 0 if empty."""
        planes = np.arange(self._num_cells + 2, dtype=np.uint32)[None, None]
        return (self._exponents(state)[..., None] == planes).astype(jnp.float32)

    def labels(self, state: base.State, /) -> jax.Array:
        """Tell the numbers on the tiles: [rows, columns] uint32, 0 where empty."""
        exponents = self._exponents(state)
        return jnp.where(exponents > 0, jnp.uint32(1) << exponents, jnp.uint32(0))

    def arrange(self, labels: np.ndarray, to_play: int = 0) -> base.State:
        """Set up a position of the numbers on its tiles, [rows, columns], 0 where empty.

        Raises `ValueError` for a board without tiles, what is no tile and tiles too large to come about together.
        """
        if not labels.any():
            raise ValueError("There is no tile: a game of 2048 begins with two.")
        exponents = np.where(labels > 0, np.log2(np.maximum(labels, 1)), 0).astype(np.uint32)
        wrong = (labels != 0) & ((labels < 2) | (labels != 2 ** exponents.astype(np.int64)))
        if wrong.any():
            raise ValueError(f"{labels[wrong][0]} is no tile of 2048: they are powers of two from 2 on.")
        # To make a tile of 2^e takes e - 1 cells, those under larger tiles apart: on n cells the largest is 2^(n + 1)
        # at most, the next 2^n, and so on.
        largest = np.arange(self._num_cells + 1, 1, -1)
        if (np.sort(exponents, axis=None)[::-1] > largest).any():
            raise ValueError(f"Tiles as large as {labels.max()} cannot lie so on {self._num_cells} cells.")
        board = (exponents << self._shifts).sum(axis=1, dtype=np.uint32)
        state = base.opening(jnp.asarray(board), num_players=1)
        return dataclasses.replace(state, terminated=~self._legal(state).any())

    def _start(self, key: jax.Array | None) -> base.State:
        state = base.opening(jnp.zeros(self.rows, jnp.uint32), num_players=1)
        for tile_key in jax.random.split(arguments.need_key(self, "init", key)):
            state = self._happen(state, self._draw(state, tile_key))
        return state

    def _legal(self, state: base.State) -> jax.Array:
        return (self._movable(words_of(state.board)) >> np.arange(4, dtype=np.int32)) & 1 != 0

    def _attempt(self, state: base.State, action: jax.Array, key: jax.Array | None) -> tuple[jax.Array, base.State]:
        before = words_of(state.board)
        rows, reward = self._slid(before, action)
        moves = is_any(each(operator.xor, before, rows))
        return moves, dataclasses.replace(state, board=_board(rows), rewards=reward[None])

    def _decide(self, state: base.State, action: jax.Array) -> base.State:
        return self._attempt(state, action, None)[1]

    def _odds(self, afterstate: base.State) -> jax.Array:
        empty = (self._exponents(afterstate) == 0).reshape(-1, 1)
        of_each = jnp.where(empty, np.array([[0.9, 0.1]], np.float32), jnp.float32(0))
        return (of_each / jnp.maximum(empty.sum(), 1).astype(jnp.float32)).reshape(-1)

    def _happen(self, afterstate: base.State, outcome: jax.Array) -> base.State:
        cell, four = outcome >> 1, outcome & 1
        row, column = cell // self.columns, cell % self.columns
        tile = (1 + four).astype(jnp.uint32) << (_BITS * column).astype(jnp.uint32)
        words = enumerate(words_of(afterstate.board))
        rows = tuple(word | jnp.where(row == i, tile, jnp.uint32(0)) for i, word in words)
        return dataclasses.replace(afterstate, board=_board(rows), terminated=self._movable(rows) == 0)

    def _draw(self, afterstate: base.State, key: jax.Array) -> jax.Array:
        # A number from 0 to 10 * (empty cells) - 1: its tens choose the cell, and a last digit of 0 a 4. What the bits
        # leave uneven is of the order of 1e-7.
        holes = [~_filled(word) & self._inside for word in words_of(afterstate.board)]
        *before, total = itertools.accumulate(map(jax.lax.population_count, holes), initial=jnp.uint32(0))
        k, digit = jnp.divmod(_below(10 * total, jax.random.bits(key, (), jnp.uint32)), 10)
        row, word, rest = jnp.int32(0), holes[0], k
        for below, first in zip(holes[1:], before[1:], strict=True):
            row = jnp.where(k >= first, row + 1, row)
            word, rest = jnp.where(k >= first, below, word), jnp.where(k >= first, k - first, rest)
        for skipped in range(1, self.columns):
            word = jnp.where(rest >= skipped, word & (word - 1), word)  # without its lowest hole
        column = jax.lax.population_count((word & -word) - 1).astype(jnp.int32) // _BITS
        return base.once(2 * (row * self.columns + column) + (digit == 0).astype(jnp.int32), self.num_outcomes)

    @property
    def _shifts(self) -> np.ndarray:
        return _BITS * np.arange(self.columns, dtype=np.uint32)

    @property
    def _inside(self) -> np.uint32:
        """The lowest bits of the cells of a row."""
        return _LOWS & np.uint32(2 ** (_BITS * self.columns) - 1)

    def _exponents(self, state: base.State) -> jax.Array:
        """[rows, columns] uint32."""
        return (state.board[:, None] >> self._shifts[None]) & _CELL

    def _movable(self, rows: Words) -> jax.Array:
        """Tell whether anything moves left, up, right, down: [] int32, bit a for action a."""
        but_one = self._inside >> np.uint32(_BITS)
        left, right = zip(*(_pulls(word, word >> _BITS, but_one) for word in rows), strict=True)
        up, down = zip(*(_pulls(*pair, self._inside) for pair in itertools.pairwise(rows)), strict=True)
        moves = (is_any(words).astype(jnp.int32) << action for action, words in enumerate((left, up, right, down)))
        return base.once(functools.reduce(jnp.bitwise_or, moves), limit=16)

    def _slid(self, rows: Words, action: jax.Array) -> tuple[Words, jax.Array]:
        """Slide and merge; gives the sum of the tiles made, [] float32, too."""
        upright, backward = (action & 1) == 1, action >= 2
        down, across = _turned(rows, backward), _turned(_transposed(rows, self.columns), backward)
        lines = tuple(jnp.where(upright, a, b) for a, b in itertools.zip_longest(down, across, fillvalue=jnp.uint32(0)))
        lines, made = _merged(_packed(lines))
        reward = functools.reduce(jnp.add, map(_sum_of_tiles, lines, made))
        down = _turned(lines[: self.rows], backward)
        across = _transposed(_turned(lines[: self.columns], backward), self.rows)
        return tuple(jnp.where(upright, a, b) for a, b in zip(down, across, strict=True)), reward.astype(jnp.float32)


def _board(words: Words) -> jax.Array:
    # Of `jnp.stack` XLA's CPU backend would make one loop that chooses a word's program element by element, where
    # nothing vectorises. Written one after another, each word is a loop of its own.
    board = jnp.zeros(len(words), jnp.uint32)
    for i, word in enumerate(words):
        board = jax.lax.dynamic_update_index_in_dim(board, word, i, axis=0)
    return board


def _filled(word: jax.Array) -> jax.Array:
    """Mark the cells that are not 0 by their lowest bits."""
    return functools.reduce(jnp.bitwise_or, (word >> i for i in range(_BITS))) & _LOWS


def _pulls(near: jax.Array, far: jax.Array, pairs: np.uint32) -> tuple[jax.Array, jax.Array]:
    """Mark the `pairs` of cells where the far one moves toward the near one, and where the near one toward the far."""
    is_near, is_far = _filled(near), _filled(far)
    merges = is_near & ~_filled(near ^ far)
    return ((is_far & ~is_near) | merges) & pairs, ((is_near & ~is_far) | merges) & pairs


def _turned(lines: Words, backward: jax.Array) -> Words:
    return tuple(jnp.where(backward, b, a) for a, b in zip(lines, lines[::-1], strict=True))


def _transposed(lines: Words, length: int) -> Words:
    """Make lines of the first `length` cells of each word."""
    return tuple(
        functools.reduce(jnp.bitwise_or, (((word >> _BITS * j) & _CELL) << _BITS * i for i, word in enumerate(lines)))
        for j in range(length)
    )


def _packed(lines: Words) -> Words:
    """Close the holes: what lies beyond one moves up."""
    for line in reversed(range(len(lines) - 1)):
        lines = _closed(lines, line, _LOWS & ~_filled(lines[line]))
    return lines


def _merged(lines: Words) -> tuple[Words, Words]:
    """Merge packed lines; marks the tiles made by their lowest bits, too."""
    made = []
    for line in range(len(lines) - 1):
        near, far = lines[line : line + 2]
        same = _filled(near) & ~_filled(near ^ far)
        lines = _closed((*lines[:line], near + same, *lines[line + 1 :]), line + 1, same)
        made.append(same)
    return lines, (*made, jnp.zeros_like(made[0]))


def _closed(lines: Words, line: int, holes: jax.Array) -> Words:
    """Drop the cells of `line` whose lowest bits are in `holes`: those of the next line come there, and so on."""
    mask = holes * _CELL
    moved = [
        (here & ~mask) | (beyond & mask)
        for here, beyond in zip(lines[line:], (*lines[line + 1 :], jnp.uint32(0)), strict=True)
    ]
    return (*lines[:line], *moved)


def _sum_of_tiles(word: jax.Array, marks: jax.Array) -> jax.Array:
    """Add up the marked tiles of a word: [] uint32, enough for all a board can hold."""
    shifts = range(0, 6 * _BITS, _BITS)
    return functools.reduce(jnp.add, (((marks >> i) & 1) << ((word >> i) & _CELL) for i in shifts))


def _below(limit: jax.Array, bits: jax.Array) -> jax.Array:
    """Make 32 random bits a number from 0 to `limit` - 1, `limit` at most 2^16: the high word of their product."""
    return ((bits >> 16) * limit + ((bits & 0xFFFF) * limit >> 16)) >> 16


def _turn_policy(policy: Any, *, flips: tuple[bool, bool, bool]) -> Any:
    for flipped, order in zip(flips, ([1, 0, 3, 2], [0, 3, 2, 1], [2, 1, 0, 3]), strict=True):
        policy = policy[..., order] if flipped else policy
    return policy
