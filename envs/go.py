"""Go by the rules of Tromp and Taylor: area scoring, no board may come again, two passes end the game.

Action r * size + c puts a stone on the point in row r, counted from the top, and column c; the last action passes.
Black is player 0, X in drawings, and moves first. Moves are named as on all boards here, `a1` at the top left and no
letter left out; programs that speak GTP count rows from below and leave out the letter i.

The state holds stones as sets of points (`envs.groups`), nothing about groups: which have how many liberties is found
out anew at each look, for all of them at once. `hashes` is the list of the boards so far (`envs.superko`), for any of
them may not come again.
"""

import dataclasses
import functools
import math
import operator
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, groups, symmetry
from envs.bitboard import Words, count, each, is_any, minus, union, words_of
from envs.moves import ActionLayout
from envs.superko import AT_ONCE, Keys, is_among


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class State(base.State):
    """A position of Go and how it came about."""

    board: jax.Array  # [history, 2, W] uint32: the stones of Black and of White, now and on the boards before
    passed: jax.Array  # [] bool: the last move was a pass
    plies: jax.Array  # [] int32: moves so far, passes included
    hashes: jax.Array  # [2, T] uint32: of the boards after 0, 1, .. plies; the first one's where none is yet


@dataclasses.dataclass(frozen=True)
class Go(base.BoardGame):
    """Surround more points than the other on `size` x `size`; White gets `komi` points, a multiple of a half.

    Passing is always legal; a second pass in a row ends the game, and who has more points wins: stones on the board,
    none of them taken for dead, and empty points from which only one colour is reached. Equal is a draw. A game of
    `max_plies` moves, by default 2 * size * size, is truncated and not scored.

    A move that leaves a group of one's own without a liberty is illegal, or with `suicide` the group comes off.
    With `superko` "positional" a move is illegal if the whole board was the same at any time before, with "situational"
    if it was so with the same player to move; passes are exempt. Such moves are missing from the mask. So a single
    stone's suicide, which changes no board, is legal under "situational" alone.

    `history` is the number of boards that `observe` shows, the present one included.
    """

    size: int = 9
    komi: float = 7.5
    suicide: bool = False
    superko: Literal["positional", "situational"] = "positional"
    history: int = 1
    max_plies: int | None = None

    name: ClassVar[str] = "go"
    num_players: ClassVar[int] = 2
    turns_by_count: ClassVar[bool] = False
    on_points: ClassVar[bool] = True

    def __post_init__(self) -> None:
        arguments.check_integer("size", self.size, 1, 19)
        arguments.check_integer("history", self.history, 1, 64)
        if self.max_plies is not None:
            arguments.check_integer("max_plies", self.max_plies, 1, 100_000)
        number = isinstance(self.komi, int | float) and not isinstance(self.komi, bool) and abs(self.komi) < math.inf
        if not number or 2 * self.komi % 1 != 0:
            raise ValueError(f"`komi` is {self.komi!r}, expected a finite multiple of 0.5.")
        arguments.check_flag("suicide", self.suicide)
        if self.superko not in ("positional", "situational"):
            raise ValueError(f"`superko` is {self.superko!r}, expected 'positional' or 'situational'.")

    @property
    def num_actions(self) -> int:
        return self.size**2 + 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 2 * self.history + 1)

    @property
    def action_layout(self) -> ActionLayout:
        """Points row by row, then the pass."""
        return ActionLayout(on="cells", others=("pass",))

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The eight turns and flips of the square, the identity first; the pass stays the last."""
        return symmetry.square_symmetries(self.size, extra=1)

    @property
    def limit(self) -> int:
        """The number of plies after which a game is cut short."""
        return 2 * self.size**2 if self.max_plies is None else self.max_plies

    @functools.cached_property
    def points(self) -> groups.Points:
        """The layout of the bits of `State.board`."""
        return groups.Points(self.size)

    def observe(self, state: State, /) -> jax.Array:  # type: ignore[override]
        """See the boards as the player to move: float32 [size, size, 2 * history + 1].

        Planes 2 k and 2 k + 1 are their own stones and the other's k plies ago, zero before the game began; the last
        plane is 1 if Black is to move and 0 if White.
        """
        stones = jnp.where(state.to_play == 0, state.board, state.board[:, ::-1])
        planes = self.points.planes(stones.reshape(2 * self.history, -1))
        black = jnp.broadcast_to(state.to_play == 0, (1, self.size, self.size))
        return jnp.moveaxis(jnp.concatenate([planes, black]), 0, -1).astype(jnp.float32)

    def area_score(self, state: State) -> jax.Array:
        """Count the points of Black and of White as if the game were over, without komi: [2] int32.

        Raises `TypeError` for a batch of states.
        """
        arguments.check_single(state)
        black, white = _words(state.board[0])
        _, areas = self.points.survey(black, white)
        return jnp.stack([count(area) for area in areas])

    def hash(self, state: State, /) -> jax.Array:  # type: ignore[override]
        """Give the hash of the stones and of who is to move: [2] uint32. Raises `TypeError` for a batch of states."""
        arguments.check_single(state)
        seen = state.hashes[:, state.plies]
        turn = self._turn(state.to_play)
        return seen if self.superko == "situational" else seen + turn

    def _start(self, key: jax.Array | None) -> State:
        return self._opening(jnp.zeros((2, self.points.grid.num_words), jnp.uint32), jnp.zeros((), jnp.int32))

    def _opening(self, board: jax.Array, to_play: jax.Array) -> State:
        stones = [self.points.member(words) for words in _words(board)]
        first = self._keys.of(stones[0], 0) + self._keys.of(stones[1], 1)
        first = first + self._turn(to_play) if self.superko == "situational" else first
        return State(
            board=jnp.zeros((self.history, *board.shape), jnp.uint32).at[0].set(board),
            to_play=to_play,
            terminated=jnp.zeros((), jnp.bool_),
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.zeros(2, jnp.float32),
            passed=jnp.zeros((), jnp.bool_),
            plies=jnp.zeros((), jnp.int32),
            hashes=jnp.broadcast_to(first[:, None], (2, self._num_hashes)),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> State:
        """Set up a position of a game that begins with it: no board and no pass has come before.

        Raises `ValueError` for a group without a liberty.
        """
        board = np.stack([self.points.pack(planes[..., player ^ to_play]) for player in (0, 1)])
        state, is_possible = self._set_up(board, jnp.asarray(to_play, jnp.int32))
        if not is_possible:
            raise ValueError(
                "A group has no liberty: every stone must touch an empty point or be joined to one that does."
            )
        return state

    @functools.partial(jax.jit, static_argnums=0)
    def _set_up(self, board: jax.Array, to_play: jax.Array) -> tuple[State, jax.Array]:
        stuck, _ = self.points.survey(*_words(board))
        return self._opening(board, to_play), ~is_any(union(*stuck))

    @functools.partial(jax.jit, static_argnums=0)
    def ended(self, state: State) -> State:
        """Let both players pass in a running game, which ends it; past `max_plies` it is cut short instead."""
        return jax.lax.fori_loop(0, 2, lambda _, state: self.step(state, self.points.count), state)

    # --- Moves

    def _play(self, state: State, action: jax.Array, key: jax.Array | None) -> State:  # type: ignore[override]
        return self._attempt(state, action, key)[1]

    def _attempt(  # type: ignore[override]
        self, state: State, action: jax.Array, key: jax.Array | None
    ) -> tuple[jax.Array, State]:
        black, white = _words(state.board[0])
        mine, theirs = _by_turn(state.to_play, black, white)
        point = self.points.at(action)
        is_free = is_any(each(lambda p, m, t: p & ~(m | t), point, mine, theirs))
        mine = each(operator.or_, mine, point)
        (stuck, taken), areas = self.points.survey(mine, theirs)
        takes = base.once(is_any(taken))
        lost = tuple(jnp.where(takes, np.uint32(0), word) for word in stuck)  # what is taken makes room for the others
        after = _by_turn(state.to_play, each(minus, mine, lost), each(minus, theirs, taken))
        seen = state.hashes[:, state.plies] + self._change(state.to_play, action, lost, taken)
        repeats = is_among(seen[:, None], state.hashes)[0]
        is_pass = action == self.points.count
        legal = is_pass | (is_free & ~repeats & (self.suicide | ~is_any(lost)))
        lead = count(areas[0]) - count(areas[1])
        return legal, self._moved(state, after, seen, is_pass, jnp.where(state.to_play == 0, lead, -lead))

    def _moved(
        self, state: State, after: tuple[Words, Words], seen: jax.Array, is_pass: jax.Array, lead: jax.Array
    ) -> State:
        # `after` and `lead` are Black's and White's stones, and what Black has more of points.
        over = base.once(is_pass & state.passed)
        plies = state.plies + 1
        board = jnp.stack([jnp.stack(words) for words in after])
        result = jnp.sign(2 * lead - self._twice_komi).astype(jnp.float32)
        return State(
            board=jnp.concatenate([board[None], state.board[:-1]]),
            to_play=1 - state.to_play,
            terminated=over,
            truncated=~over & (plies == self.limit),
            rewards=jnp.where(over, result * jnp.array([1, -1], jnp.float32), 0),
            passed=is_pass,
            plies=plies,
            hashes=jnp.where(np.arange(self._num_hashes, dtype=np.int32) == plies, seen[:, None], state.hashes),
        )

    def _change(self, player: jax.Array, action: jax.Array, lost: Words, taken: Words) -> jax.Array:
        # By how much a move changes the hash: [2] uint32.
        change = jnp.asarray(self._keys.stones)[player, :, action] + self._turn_passes(player)
        change = change - self._keys.of(self.points.member(taken), 1 - player)
        return change - self._keys.of(self.points.member(lost), player) if self.suicide else change

    def _legal(self, state: State) -> jax.Array:  # type: ignore[override]
        points, player = self.points, state.to_play
        mine, theirs = _by_turn(player, *_words(state.board[0]))
        empty = points.without(mine, theirs)
        single, liberty = points.single_liberties(mine, theirs)
        in_danger, caught = each(operator.and_, mine, single), each(operator.and_, theirs, single)
        lives = points.near(union(empty, each(minus, mine, single), caught))
        # The hash after a move on each point: what has its one liberty there comes off.
        gain = jnp.asarray(self._keys.stones)[player] - self._off(1 - player, caught, liberty)
        if self.suicide:
            gain = jnp.where(points.member(lives), gain, -self._off(player, in_danger, liberty))
        seen = (state.hashes[:, state.plies] + self._turn_passes(player))[:, None] + gain
        allowed = points.member(empty if self.suicide else each(operator.and_, empty, lives))
        is_pass = np.arange(self.num_actions) == points.count
        return is_pass | (allowed & ~is_among(seen, state.hashes))

    def _off(self, player: jax.Array, stones: Words, liberty: jax.Array) -> jax.Array:
        # Sum up the keys of those `stones` of a player that have their last liberty on each point: [2, A]. The last
        # sum, of all other points, means nothing. One row of two words to add is half the work of two of one.
        index = jnp.where(self.points.member(stones), liberty, self.points.count)
        keys = jnp.asarray(self._keys.stones.swapaxes(1, 2))[player]
        return jnp.zeros_like(keys).at[index].add(keys, mode="promise_in_bounds").T

    @functools.cached_property
    def _keys(self) -> Keys:
        return Keys(self.points.count)

    @property
    def _num_hashes(self) -> int:
        return -(-(self.limit + 1) // AT_ONCE) * AT_ONCE

    @property
    def _twice_komi(self) -> int:
        # No board has a greater lead than all its points, so that no komi is too big for an int32.
        most = 2 * self.points.count + 1
        return round(min(max(2 * self.komi, -most), most))

    def _turn(self, player: jax.Array) -> jax.Array:
        # The part of the hash that says who is to move: [2] uint32.
        return jnp.where(player == 1, jnp.asarray(self._keys.turn), np.uint32(0))

    def _turn_passes(self, player: jax.Array) -> jax.Array:
        # By how much the hashes in the list change because `player` is to move no more: [2] uint32.
        if self.superko == "positional":
            return jnp.zeros(2, jnp.uint32)
        return self._turn(1 - player) - self._turn(player)


def _words(board: jax.Array) -> tuple[Words, Words]:
    return words_of(board[0]), words_of(board[1])


def _by_turn(player: jax.Array, black: Words, white: Words) -> tuple[Words, Words]:
    # Black's and White's in the order of the player to move and the other, or back.
    first = each(lambda b, w: jnp.where(player == 0, b, w), black, white)
    return first, each(lambda b, w: jnp.where(player == 0, w, b), black, white)
