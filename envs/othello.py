"""Othello: a disc turns over what it encloses in a straight line; who has more discs at the end wins.

Action r * size + c puts a disc on the cell in row r, counted from the top, and column c; the last action passes. Black
is player 0, X in drawings, and moves first.

`board` is uint32 [4]: the discs of the player to move, then the other's, two words each. A word has the cells of half
the rows, upper half first, in the order of their actions: on 8 x 8 a1 is bit 0 of the first word and h8 bit 31 of the
second. So a step on the board is a shift of the two by a fixed distance, 1 to the right and `size` down. What steps
over the side edge comes out on the other side in another row; only discs of the inner columns can be enclosed across,
so lines are followed over these alone.

There are two conventions for the end. By the rules a game is over with the move after which nobody can move: this is
the default, as in OpenSpiel and in engines. With `double_pass`, as in pgx, it is over when both have passed one after
the other, a ply each, when the board is full or when a player has no discs; one more number follows on the board then,
1 after a pass and else 0. Every game has the same result in both.
"""

import dataclasses
import functools
import operator
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, symmetry
from envs.bitboard import Words, count, each, is_any, union
from envs.moves import ActionLayout


@dataclasses.dataclass(frozen=True)
class Othello(base.BoardGame):
    """Enclose the other's discs on `size` x `size` cells, of which there are 4, 6 or 8 on a side.

    Passing is legal when no disc can be placed, and then it is the only move. Whose discs are more wins, empty cells
    count for nobody. With `double_pass` a game in which nobody can move goes on until both have passed, if there are
    empty cells and discs of both.
    """

    size: int = 8
    double_pass: bool = False

    name: ClassVar[str] = "othello"
    num_players: ClassVar[int] = 2
    turns_by_count: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size not in (4, 6, 8):
            raise ValueError(f"`size` is {self.size!r}, expected 4, 6 or 8.")
        arguments.check_flag("double_pass", self.double_pass)

    @property
    def num_cells(self) -> int:
        return self.size**2

    @property
    def num_actions(self) -> int:
        return self.num_cells + 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 2)

    @property
    def action_layout(self) -> ActionLayout:
        """Cells row by row, then the pass."""
        return ActionLayout(on="cells", others=("pass",))

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The eight turns and flips of the square, the identity first; the pass stays the last.

        All keep the rules. Four of them keep the start, too; the others exchange its colours.
        """
        return symmetry.square_symmetries(self.size, extra=1)

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [size, size, 2], own discs, then the other's."""
        planes = [self._cells(side) for side in _sides(state)]
        return jnp.stack(planes, axis=-1).astype(jnp.float32).reshape(self.observation_shape)

    def _start(self, key: jax.Array | None) -> base.State:
        high = self.size // 2
        black, white = np.zeros((2, self.size, self.size), bool)
        black[[high - 1, high], [high, high - 1]] = True
        white[[high - 1, high], [high - 1, high]] = True
        return base.opening(self._board(self._pack(black), self._pack(white), jnp.zeros((), jnp.bool_)))

    def _legal(self, state: base.State) -> jax.Array:
        cells = self._cells(self._moves(*_sides(state)))
        return jnp.append(cells, ~cells.any())

    def _allows(self, state: base.State, action: jax.Array) -> jax.Array:
        mine, theirs = _sides(state)
        disc = self._disc(action)
        is_free = is_any(each(operator.and_, disc, self._free(mine, theirs)))
        turns = is_free & is_any(self._turned(mine, theirs, disc))
        return jnp.where(action == self.num_cells, ~is_any(self._moves(mine, theirs)), turns)

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        mine, theirs = _sides(state)
        disc = self._disc(action)
        turned = self._turned(mine, theirs, disc)
        mine = each(lambda m, d, t: m | d | t, mine, disc, turned)
        theirs = each(operator.xor, theirs, turned)
        passed = action == self.num_cells
        over = self._is_decided(mine, theirs)
        if self.double_pass:
            over |= passed & (state.board[4] != 0)
        return self._moved(mine, theirs, passed, base.once(over), state.to_play)

    def _is_decided(self, mine: Words, theirs: Words) -> jax.Array:
        """Tell whether a board ends the game, after a move that has left discs of `mine`."""
        if self.double_pass:
            return ~is_any(theirs) | ~is_any(self._free(mine, theirs))
        return ~self._can_anybody_move(mine, theirs)

    def _moved(self, mine: Words, theirs: Words, passed: jax.Array, over: jax.Array, mover: jax.Array) -> base.State:
        # The state after `mover`, whose discs are `mine`, has played.
        lead = jnp.sign(count(mine) - count(theirs)).astype(jnp.float32)
        return base.State(
            board=self._board(theirs, mine, passed),
            to_play=1 - mover,
            terminated=over,
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(over & (lead != 0), lead * base.win_rewards(mover), 0),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        """Set up a position; it is finished if its discs alone end a game, and no pass has come before it.

        Raises `ValueError` for a board without discs on the four cells in the middle, where every game has them.
        """
        middle = planes[self.size // 2 - 1 :, self.size // 2 - 1 :][:2, :2]
        if not middle.any(axis=-1).all():
            raise ValueError("The four cells in the middle must be taken: every game begins with discs there.")
        mine, theirs = (self._pack(planes[..., player]) for player in (0, 1))
        return self._arranged(theirs, mine, jnp.int32(1 - to_play))

    @functools.partial(jax.jit, static_argnums=0)
    def _arranged(self, mine: Words, theirs: Words, mover: jax.Array) -> base.State:
        return self._moved(mine, theirs, jnp.zeros((), jnp.bool_), self._is_decided(mine, theirs), mover)

    def ended(self, state: base.State) -> base.State:
        """Let both players pass, which ends a game with `double_pass`, if nobody can move."""
        passed = jax.lax.fori_loop(0, 2, lambda _, state: self.step(state, self.num_cells), state)
        return base.select(self._can_anybody_move(*_sides(state)), state, passed)

    def _board(self, mine: Words, theirs: Words, passed: jax.Array) -> jax.Array:
        words = [*mine, *theirs]
        return jnp.stack([*words, passed.astype(jnp.uint32)] if self.double_pass else words)

    # --- Sets of cells

    @property
    def _half(self) -> int:
        """Bits of a word."""
        return self.num_cells // 2

    def _cells(self, words: Words) -> jax.Array:
        """Unpack a set of cells: [size * size] bool."""
        # Each row is looked up among all there are. XLA's CPU backend computes what a lookup needs, which may be all
        # of `_moves`, once for each row, where of shifts it would do so again for every cell.
        starts = self.size * np.arange(self.size // 2, dtype=np.uint32)
        rows = (jnp.stack(words)[:, None] >> starts[None]) & np.uint32(2**self.size - 1)
        every_row = (np.arange(2**self.size)[:, None] >> np.arange(self.size)) & 1 != 0
        return jnp.asarray(every_row).at[rows.astype(jnp.int32)].get(mode="promise_in_bounds").reshape(-1)

    def _pack(self, cells: np.ndarray) -> Words:
        """Pack a set of cells on the host: [size, size] bool."""
        bits = np.uint32(1) << np.arange(self._half, dtype=np.uint32)
        upper, lower = np.where(cells.reshape(2, -1), bits, np.uint32(0)).sum(axis=1, dtype=np.uint32)
        return jnp.asarray(upper), jnp.asarray(lower)

    def _disc(self, action: jax.Array) -> Words:
        # The cell of an action; none for a pass.
        return self._bit(action), self._bit(action - self._half)

    def _bit(self, place: jax.Array) -> jax.Array:
        inside = (place >= 0) & (place < self._half)
        return jnp.where(inside, np.uint32(1) << jnp.where(inside, place, 0).astype(jnp.uint32), np.uint32(0))

    def _free(self, mine: Words, theirs: Words) -> Words:
        full = np.uint32(2**self._half - 1)
        return each(lambda m, t: ~(m | t) & full, mine, theirs)

    def _can_anybody_move(self, one: Words, other: Words) -> jax.Array:
        return is_any(self._moves(one, other)) | is_any(self._moves(other, one))

    def _moves(self, mine: Words, theirs: Words) -> Words:
        """The empty cells from which a line over the other's discs leads to an own one."""
        ends = [self._shift(run, step) for step, run in self._runs(mine, theirs).items()]
        return each(operator.and_, union(*ends), self._free(mine, theirs))

    def _turned(self, mine: Words, theirs: Words, disc: Words) -> Words:
        """The discs that a new one encloses: they follow on it in one direction and on an own one in the opposite."""
        back = self._runs(mine, theirs)
        lines = [each(operator.and_, run, back[-step]) for step, run in self._runs(disc, theirs).items()]
        return each(self._once, union(*lines))

    def _once(self, word: jax.Array) -> jax.Array:
        # `base.once` for a word, row by row.
        limit = 2**self.size
        starts = range(0, self._half, self.size)
        rows = [base.once((word >> start) & np.uint32(limit - 1), limit) for start in starts]
        return functools.reduce(operator.or_, (row << start for row, start in zip(rows, starts)))

    def _runs(self, seeds: Words, theirs: Words) -> dict[int, Words]:
        """For each of the eight steps: the discs of `theirs` that follow on a seed without a gap."""
        inner = each(operator.and_, theirs, (self._inner, self._inner))
        lines = {self.size: theirs, 1: inner, self.size - 1: inner, self.size + 1: inner}
        return {s: self._run(seeds, line, s) for step, line in lines.items() for s in (step, -step)}

    def _run(self, seeds: Words, line: Words, step: int) -> Words:
        # Between two discs lie at most size - 2 others. The first two are reached one by one, the rest by twos.
        run = each(operator.and_, line, self._shift(seeds, step))
        run = each(_add_within, run, line, self._shift(run, step))
        pairs = each(operator.and_, line, self._shift(line, step))
        for _ in range(self.size // 2 - 2):
            run = each(_add_within, run, pairs, self._shift(run, 2 * step))
        return run

    def _shift(self, words: Words, distance: int) -> Words:
        # What leaves a small board stays as bits beyond its cells: whoever shifts keeps discs or free cells alone.
        upper, lower = words
        if distance > 0:
            return upper << distance, (lower << distance) | (upper >> (self._half - distance))
        return (upper >> -distance) | (lower << (self._half + distance)), lower >> -distance

    @property
    def _inner(self) -> np.uint32:
        """The cells of a word that lie in no side column."""
        row = 2 ** (self.size - 1) - 2
        return np.uint32(sum(row << place for place in range(0, self._half, self.size)))


def _add_within(run: jax.Array, line: jax.Array, moved: jax.Array) -> jax.Array:
    return run | (line & moved)


def _sides(state: base.State) -> tuple[Words, Words]:
    words = state.board
    return (words[0], words[1]), (words[2], words[3])
