"""Sets of points of a square board as bits, and the groups that stones on them form.

A set is a few uint32 words, those of a `bitboard.Grid` whose columns are the rows of the board: no row straddles two
words, and a bit that stays empty ends each row. So one step to the right or left is a shift by one bit within a word,
a step down or up a shift of all words by a row, and nothing walks round the edge:

    row 0     0  1  2  .       a board of 3 x 3; the points at the end are the bits 3, 7 and 11,
    row 1     4  5  6  .       which are no points
    row 2     8  9 10  .

Groups are never listed. What is asked of them, such as "does its group have a liberty?", starts as a set of stones for
which it is plain to see, and is passed on from stone to stone until nobody is left to tell: a handful of shifts a
step, for every group and many questions at once. To ask several questions, the words are arrays of one bit set each.
"""

import dataclasses
import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np

from envs.bitboard import Grid, Words, each, is_any, minus, union


@dataclasses.dataclass(frozen=True)
class Links:
    """Which neighbours are joined: the points joined with the one on their right, and with the one below."""

    right: Words
    below: Words


@dataclasses.dataclass(frozen=True)
class Points:
    """The points of a board of `size` x `size`; point r * size + c is in row r, counted from the top, and column c."""

    size: int

    @property
    def count(self) -> int:
        return self.size**2

    @functools.cached_property
    def grid(self) -> Grid:
        return Grid(self.size, self.size)

    @functools.cached_property
    def bits(self) -> np.ndarray:
        """The bit of each point: [W, size * size + 1] uint32, zero in the words it is not in. The last is no point."""
        cells = self.grid.cells.swapaxes(1, 2).reshape(self.grid.num_words, -1)
        return np.pad(cells, ((0, 0), (0, 1)))

    @functools.cached_property
    def every(self) -> np.ndarray:
        """The set of all points: [W] uint32."""
        return self.bits.sum(axis=1, dtype=np.uint32)

    @functools.cached_property
    def digits(self) -> np.ndarray:
        """Sets that tell points apart: [2, K, W] uint32, the points with a 0 or a 1 at binary digit k of their number.

        Two points are never in the same K of these sets.
        """
        numbers = np.arange(self.count + 1)
        ones = numbers >> np.arange(self.num_digits)[:, None] & 1
        sets = np.stack([1 - ones, ones])[:, :, None] * self.bits
        return sets.sum(axis=-1, dtype=np.uint32)

    @property
    def num_digits(self) -> int:
        return max((self.count - 1).bit_length(), 1)

    def at(self, index: jax.Array) -> Words:
        """Give the set of one point, none if `index` is size * size."""
        return tuple(jnp.asarray(row).at[index].get(mode="promise_in_bounds") for row in self.bits)

    def member(self, words: Words) -> jax.Array:
        """Tell of each point, and of none, whether it is in the set: [size * size + 1] bool; the last is False."""
        return functools.reduce(jnp.bitwise_or, map(jnp.bitwise_and, words, self.bits)) != 0

    def pack(self, planes: np.ndarray) -> np.ndarray:
        """Pack a set on the host: [size, size] bool to [W] uint32."""
        return np.where(planes.reshape(-1), self.bits[:, :-1], np.uint32(0)).sum(axis=1, dtype=np.uint32)

    def planes(self, words: jax.Array) -> jax.Array:
        """Unpack sets: [P, W] uint32 to [P, size, size] bool."""
        return self.grid.planes(words).swapaxes(-1, -2)

    def without(self, *sets: Words) -> Words:
        """Give the points that are in none of `sets`."""
        return tuple(every & ~functools.reduce(jnp.bitwise_or, words) for every, *words in zip(self.every, *sets))

    def near(self, words: Words) -> Words:
        """Give all neighbours of the points of a set."""
        sides = zip(words, self._above(words), self._below(words), self.every)
        return tuple((word << 1 | word >> 1 | above | below) & every for word, above, below, every in sides)

    def links(self, *sets: Words) -> Links:
        """Join the neighbours that are in one set; no point is in two of `sets`."""
        return Links(
            right=union(*(tuple(word & word >> 1 for word in words) for words in sets)),
            below=union(*(each(operator.and_, words, self._above(words)) for words in sets)),
        )

    def spread(self, words: Words, links: Links) -> Words:
        """Add to a set all points that are joined with one of it, directly or by way of others."""
        right, below = (tuple(jnp.broadcast_to(x, words[0].shape) for x in half) for half in (links.right, links.below))

        def sweep(words: Words) -> Words:
            rows = tuple(word | (word & link) << 1 | (word >> 1) & link for word, link in zip(words, right))
            fell = self._below(each(operator.and_, rows, below))
            rose = each(operator.and_, self._above(rows), below)
            return union(rows, fell, rose)

        def sweeps(carry: tuple[Words, jax.Array]) -> tuple[Words, jax.Array]:
            before, _ = carry
            after = sweep(sweep(before))  # twice, for to see whether anything has changed takes as long as a sweep
            return after, is_any(each(operator.xor, before, after))

        return jax.lax.while_loop(lambda carry: carry[1], sweeps, (words, jnp.ones((), jnp.bool_)))[0]

    def survey(self, mine: Words, theirs: Words) -> tuple[tuple[Words, Words], tuple[Words, Words]]:
        """Find each one's stones without a liberty, and each one's area: stones and empty points only they reach."""
        empty = self.without(mine, theirs)
        air, by_mine, by_theirs = map(self.near, (empty, mine, theirs))
        # Stones ask for a liberty, and empty points, beside them in the same words, who reaches them.
        asked = each(
            lambda m, t, e, air, a, b: jnp.stack([(m | t) & air | e & a, e & b]),
            *(mine, theirs, empty, air, by_mine, by_theirs),
        )
        answers = self.spread(asked, self.links(mine, theirs, empty))
        first, second = (tuple(word[i] for word in answers) for i in (0, 1))
        my_area = each(lambda m, e, a, b: m | e & a & ~b, mine, empty, first, second)
        their_area = each(lambda t, e, a, b: t | e & b & ~a, theirs, empty, first, second)
        return (each(minus, mine, first), each(minus, theirs, first)), (my_area, their_area)

    def single_liberties(self, *sides: Words) -> tuple[Words, jax.Array]:
        """Find the stones whose group has one liberty: the set of them, and where each one's liberty is.

        `sides` are the stones of each player; all groups have a liberty. The second is [size * size + 1] int32, the
        number of a point, and says nothing of points outside the set.
        """
        stones, empty = union(*sides), self.without(*sides)
        # Has my group a liberty among the points with a 0, or with a 1, at digit k? Both only if it has two.
        asked = jnp.asarray(self.digits.reshape(2 * self.num_digits, -1))
        near = self.near(tuple(word & asked[:, i] for i, word in enumerate(empty)))
        answers = self.spread(each(operator.and_, near, stones), self.links(*sides))
        zeros, ones = (
            [tuple(word[first + k] for word in answers) for k in range(self.num_digits)]
            for first in (0, self.num_digits)
        )
        several = union(*(each(operator.and_, zero, one) for zero, one in zip(zeros, ones)))
        liberty = [jnp.where(self.member(one), np.int32(1 << k), np.int32(0)) for k, one in enumerate(ones)]
        return each(minus, stones, several), functools.reduce(jnp.add, liberty)

    def _above(self, words: Words) -> Words:
        # What each point's lower neighbour is: the set a row further up.
        return self.grid.shifted_down(words, self.grid.stride)

    def _below(self, words: Words) -> Words:
        # The set a row further down.
        return self.grid.shifted_up(words, self.grid.stride)
