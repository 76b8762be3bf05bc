"""The shell around every game: what a state is, and the parts that are the same for all rules.

A game writes three small functions: where it starts (`_start`), which actions the rules allow (`_legal`),
and what a legal move does to a running game (`_play`). The shell adds what is easily got wrong, once:

- a finished game is frozen: a further step changes nothing and gives reward 0;
- an illegal action ends the game as a loss for the mover, and the position stays as it was;
- the mask is all False once the state is terminated or truncated, so "no legal action" always means
  "finished"; `rewards` are those of the last step alone.

Everything works on one game and is pure; `jax.vmap` batches it. A game is a frozen dataclass of its
options, so two games of the same options are equal and share their compiled programs.
"""

import abc
import dataclasses
from typing import Any, ClassVar, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs import arguments, symmetry, zobrist
from envs.moves import ActionLayout

PyTree = Any
S = TypeVar("S")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """A position and what the last step gave; nothing that can be derived from the two."""

    board: jax.Array  # packed, see the game's module
    to_play: jax.Array  # [] int32: the player to move, 0 moves first
    terminated: jax.Array  # [] bool: decided by the rules
    truncated: jax.Array  # [] bool: cut short, undecided
    rewards: jax.Array  # [P] float32, of the last step only


class BoardGame(abc.ABC):
    """A game for the shell to run; subclasses are frozen dataclasses and give the hooks marked abstract."""

    name: ClassVar[str]
    bottom_up: ClassVar[bool] = False  # row 0 of the observation is the lowest one on paper
    slanted: ClassVar[bool] = False  # each row lies half a cell to the right of the one above it
    turns_by_count: ClassVar[bool] = True  # stones stay and players alternate: their numbers tell whose turn it is
    has_stones: ClassVar[bool] = True  # an observation [R, C, planes] begins with the mover's stones and the other's
    on_points: ClassVar[bool] = False  # stones lie where lines cross, and not between them

    @property
    def action_layout(self) -> ActionLayout:
        """Where actions lie on the board, which gives moves their names; by default they are a plain list."""
        return ActionLayout()

    @property
    @abc.abstractmethod
    def num_players(self) -> int: ...

    @property
    @abc.abstractmethod
    def num_actions(self) -> int: ...

    @property
    @abc.abstractmethod
    def observation_shape(self) -> tuple[int, ...]: ...

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The symmetries of the board, the identity first."""
        return (symmetry.IDENTITY,)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # The public functions of a state that games write themselves: the shell's check stands around them.
        super().__init_subclass__(**kwargs)
        for name in {"observe", "labels", "caption"} & vars(cls).keys():
            setattr(cls, name, arguments.of_single(vars(cls)[name]))

    @abc.abstractmethod
    def observe(self, state: State, /) -> jax.Array:
        """See the state as the player to move does: float32 of `observation_shape`.

        Raises `TypeError` for a batch of states, of every game: a subclass need not check that.
        """

    def hash(self, state: State, /) -> jax.Array:
        """Hash the position, board and player to move alone: [2] uint32, the same however it came about.

        Raises `TypeError` for a batch of states, `NotImplementedError` where states have no `board`.
        """
        arguments.check_single(state)
        if not hasattr(state, "board"):
            raise NotImplementedError(f"States of {self.name!r} have no `board` to hash.")
        return zobrist.hash_arrays(*jax.tree.leaves(state.board), state.to_play.astype(jnp.uint8))

    @abc.abstractmethod
    def _start(self, key: jax.Array | None) -> State: ...

    @abc.abstractmethod
    def _legal(self, state: State) -> jax.Array:
        """[A] bool, by the rules alone: the shell covers finished games."""

    @abc.abstractmethod
    def _play(self, state: State, action: jax.Array, key: jax.Array | None) -> State:
        """Play a legal `action` in a running game; on other input the result is dropped and need not make sense."""

    def arrange(self, planes: np.ndarray, to_play: int) -> State:
        """Set up a position: `planes` [rows, columns, P] bool are the stones of `to_play`, of who comes next and so on.

        The player before is taken to have moved last, so a line of theirs is a win just made. Raises
        `ValueError` for stones that cannot lie so, `NotImplementedError` if the game has no such thing.
        """
        raise NotImplementedError(f"Positions of {self.name!r} cannot be set up.")

    def ended(self, state: State) -> State:
        """End a running game by what can end it on any board, as two passes do in Go; by default nothing can."""
        return state

    def cut_short(self, state: State) -> State:
        """Truncate a running game. Raises `TypeError` for a batch of states."""
        arguments.check_single(state)
        return dataclasses.replace(state, truncated=jnp.ones((), jnp.bool_))

    def _allows(self, state: State, action: jax.Array) -> jax.Array:
        """Tell whether `_legal` allows one action in range; games override it where that is cheaper."""
        return self._legal(state)[action]

    def _attempt(self, state: State, action: jax.Array, key: jax.Array | None) -> tuple[jax.Array, State]:
        """Give `_allows` and `_play` of one action in range; games override it where the two share most of the work."""
        return self._allows(state, action), self._play(state, action, key)

    def init(self, key: jax.Array | None = None, /) -> State:
        """Start a game. `key` may be left out where the start is always the same."""
        return self._start(key)

    def step(self, state: State, action: ArrayLike, key: jax.Array | None = None, /) -> State:
        """Play `action`, an integer scalar; `key` is for games of chance only.

        An illegal action, one out of range included, ends the game: the mover loses (-1, the others +1) and
        the position stays as it was. In a finished game nothing changes and the rewards are 0.
        Raises `TypeError` for an action that is not one integer, and for a batch of states.
        """
        arguments.check_single(state)
        action = arguments.as_index("action", action)
        in_range = action.astype(jnp.uint32) < self.num_actions  # a negative one is huge there
        safe = jnp.where(in_range, action, 0)
        allowed, played = self._attempt(state, safe, key)
        legal = once(in_range & allowed)
        forfeit = dataclasses.replace(
            state,
            terminated=jnp.ones((), jnp.bool_),
            rewards=-win_rewards(state.to_play, self.num_players),
        )
        frozen = dataclasses.replace(state, rewards=jnp.zeros(self.num_players, jnp.float32))
        played = dataclasses.replace(played, terminated=once(played.terminated))
        played = select(legal, played, forfeit)
        return select(is_finished(state), frozen, played)

    def legal_action_mask(self, state: State, /) -> jax.Array:
        """Mark the allowed actions: [A] bool, all False once the game is finished."""
        arguments.check_single(state)
        return self._legal(state) & ~is_finished(state)


class Steppable(Protocol[S]):
    """The two functions of a game that `auto_reset` needs."""

    def init(self, key: Any, /) -> S: ...
    def step(self, state: S, action: jax.Array, key: jax.Array | None = None, /) -> S: ...


def auto_reset(env: Steppable[S], state: S, action: jax.Array, key: jax.Array) -> tuple[S, S]:
    """Step one game and go on with a fresh one where it ended: `(after, following)`.

    `after` is what the step gave: rewards, flags and the last position of a finished game are there.
    `following` is where to play on: `after` itself while the game runs, else a new game drawn with `key`,
    untouched by the old one. They are two results so that no caller takes the one for the other.
    """
    step_key, init_key = jax.random.split(key)
    after = env.step(state, action, step_key)
    return after, select(is_finished(after), env.init(init_key), after)


def once(value: ArrayLike, limit: int = 2) -> jax.Array:
    """Return `value`, a bool or an integer from 0 to `limit` - 1, [], unchanged, but have it computed once.

    Every field of the next state depends on whether a move was legal and whether it ended the game, and XLA's CPU
    backend would compute both again for each field. It never repeats a lookup, so this is one, in a table of all there
    are.
    """
    value = jnp.asarray(value)
    table = np.arange(limit).astype(value.dtype)
    return jnp.asarray(table).at[value.astype(jnp.int32)].get(mode="promise_in_bounds")


def is_finished(state: Any) -> jax.Array:
    """Tell whether the game is over or cut short; [] bool, or the batch's shape."""
    return state.terminated | state.truncated


def strongly_typed(tree: S) -> S:
    """Give every leaf its dtype for good: what begins weakly typed has another type after a step, and loops retrace."""

    def strong(leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        return jax.lax.convert_element_type(array, array.dtype)

    return jax.tree.map(strong, tree)


def select(condition: jax.Array, yes: S, no: S) -> S:
    """Choose between two states of one game by a scalar bool."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def win_rewards(player: ArrayLike, num_players: int = 2) -> jax.Array:
    """Give `player` +1 and everybody else -1: [P] float32."""
    return jnp.where(jnp.arange(num_players, dtype=jnp.int32) == player, jnp.float32(1), jnp.float32(-1))


def opening(board: jax.Array, num_players: int = 2) -> State:
    """Make the state of a game about to begin: player 0 to move, nothing decided."""
    return State(
        board=board,
        to_play=jnp.zeros((), jnp.int32),
        terminated=jnp.zeros((), jnp.bool_),
        truncated=jnp.zeros((), jnp.bool_),
        rewards=jnp.zeros(num_players, jnp.float32),
    )
