"""Boards as bits: a set of cells is a few uint32 words, and lines are found by shifting them.

`Grid` lays out columns one after another, each with a guard bit on top that stays empty, so that a step
in any direction is one fixed distance between bits and a line over the edge meets the guard and breaks:

    row 2    2  6 10 14          a grid of 3 rows and 4 columns; 3, 7, 11, 15 are guards;
    row 1    1  5  9 13          up is +1, right +4, up and right +5, down and right +3
    row 0    0  4  8 12

No column straddles two words: a word holds as many whole columns as fit into 32 bits, `width` bits.
"""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Words = tuple[jax.Array, ...]  # W of [] uint32, the low columns first


@dataclasses.dataclass(frozen=True)
class Grid:
    """Where the cells of a board of `rows` times `columns` are; row 0 is the bottom one."""

    rows: int
    columns: int

    @property
    def stride(self) -> int:
        """Bits from a cell to its right neighbour."""
        return self.rows + 1

    @property
    def columns_per_word(self) -> int:
        return min(self.columns, 32 // self.stride)

    @property
    def width(self) -> int:
        """Bits of a word in use."""
        return self.columns_per_word * self.stride

    @property
    def num_words(self) -> int:
        return -(-self.columns // self.columns_per_word)

    @functools.cached_property
    def cells(self) -> np.ndarray:
        """The bit of each cell: [W, R, C] uint32, zero in the words a cell is not in."""
        table = np.zeros((self.num_words, self.rows, self.columns), np.uint32)
        for column in range(self.columns):
            word, place = divmod(column, self.columns_per_word)
            bits = 1 << (place * self.stride + np.arange(self.rows))
            table[word, :, column] = bits
        return table

    def planes(self, words: jax.Array) -> jax.Array:
        """Unpack sets of cells: [P, W] uint32 to [P, R, C] bool."""
        bits = (words[:, :, None] >> np.arange(self.width, dtype=np.uint32)[None, None]) & np.uint32(1)
        columns = bits.reshape(len(words), -1, self.stride)  # each with its guard, and past the last one none
        return columns[:, : self.columns, : self.rows].swapaxes(1, 2) != 0

    def pack(self, planes: np.ndarray) -> np.ndarray:
        """Pack sets of cells on the host: [P, R, C] bool to [P, W] uint32, the inverse of `planes`."""
        bits = np.where(planes[:, None], self.cells[None], np.uint32(0))
        return bits.sum(axis=(2, 3), dtype=np.uint32)

    def cell(self, row: jax.Array, column: jax.Array) -> Words:
        """Give one cell alone."""
        return tuple(
            cells & (floor << row.astype(jnp.uint32)) for cells, floor in zip(self.column(column), self.floors)
        )

    @property
    def floors(self) -> np.ndarray:
        """All cells of row 0: [W] uint32."""
        return self.cells[:, 0].sum(axis=1, dtype=np.uint32)

    def column(self, index: jax.Array) -> Words:
        """Give all cells of one column."""
        # Word by word and not as an array of W: arrays with a tiny last axis do not vectorise on a CPU.
        return tuple(self._column_in_word(index - first) for first in self._first_columns)

    def _column_in_word(self, place: jax.Array) -> jax.Array:
        inside = (place >= 0) & (place < self.columns_per_word)
        shift = jnp.where(inside, place * self.stride, 0).astype(jnp.uint32)
        return jnp.where(inside, np.uint32(2**self.rows - 1) << shift, np.uint32(0))

    @property
    def _first_columns(self) -> range:
        return range(0, self.columns, self.columns_per_word)

    def is_full(self, words: Words) -> jax.Array:
        """Tell whether every cell is set; [] bool."""
        everything = self.cells.sum(axis=(1, 2), dtype=np.uint32)
        return functools.reduce(jnp.logical_and, map(jnp.equal, words, everything))

    def has_line(self, words: Words, length: int) -> jax.Array:
        """Tell whether `length` or more cells in a row are set, upright, across or diagonally; [] bool."""
        strides = (1, self.stride, self.stride + 1, self.stride - 1)
        ends = [word for stride in strides for word in self._run_starts(words, length, stride)]
        return functools.reduce(jnp.bitwise_or, ends) != 0

    def _run_starts(self, words: Words, length: int, stride: int) -> Words:
        # Bits from which `covered` cells along the stride are all set; joining two such runs that touch or
        # overlap gives a longer one, so the run doubles each time.
        covered = 1
        while covered < length:
            further = min(covered, length - covered)
            words = each(operator.and_, words, self.shifted_down(words, further * stride))
            covered += further
        return words

    def shifted_down(self, words: Words, distance: int) -> Words:
        """Shift a set toward bit 0; what leaves a word enters the one below."""
        skip, rest = divmod(distance, self.width)
        zero = jnp.zeros((), jnp.uint32)
        padded = words[skip:] + (zero,) * (skip + 1)
        if rest == 0:
            return padded[: len(words)]
        full = np.uint32(2**self.width - 1)
        return tuple(
            (low >> rest) | ((high << (self.width - rest)) & full)
            for low, high in itertools.pairwise(padded[: len(words) + 1])
        )

    def shifted_up(self, words: Words, distance: int) -> Words:
        """Shift a set away from bit 0, by at most a word; what leaves a word enters the one above."""
        lower = (jnp.zeros_like(words[0]), *words[:-1])
        if distance == self.width:
            return lower
        full = np.uint32(2**self.width - 1)
        return each(lambda word, low: word << distance & full | low >> (self.width - distance), words, lower)


def words_of(board: jax.Array) -> Words:
    """Take an array [W] apart."""
    return tuple(board[i] for i in range(board.shape[0]))


def each(function: Callable[..., jax.Array], *sets: Any) -> Words:
    """Apply a function of words to sets, word by word."""
    return tuple(function(*words) for words in zip(*sets, strict=True))


def minus(some: jax.Array, others: jax.Array) -> jax.Array:
    """Give a word less what is in another."""
    return some & ~others


def is_any(words: Words) -> jax.Array:
    """Tell whether any cell is in a set, or in one of several; [] bool."""
    return (functools.reduce(jnp.bitwise_or, words) != 0).any()


def count(words: Words) -> jax.Array:
    """Count the cells of a set; [] int32."""
    return functools.reduce(jnp.add, map(jax.lax.population_count, words)).astype(jnp.int32)


def union(*sets: Words) -> Words:
    """Give the cells that are in any of `sets`."""
    return each(lambda *words: functools.reduce(jnp.bitwise_or, words), *sets)
