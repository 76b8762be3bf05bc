"""A limit on the length of a game: past it the state is truncated, which leaves the result undecided."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from envs.arguments import check_integer


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class TimedState:
    """The state of a game and the number of plies played in it."""

    inner: Any  # the game's own state; its `truncated` carries the limit
    plies: jax.Array  # [] int32

    @property
    def to_play(self) -> jax.Array:
        return self.inner.to_play

    @property
    def terminated(self) -> jax.Array:
        return self.inner.terminated

    @property
    def truncated(self) -> jax.Array:
        return self.inner.truncated

    @property
    def rewards(self) -> jax.Array:
        return self.inner.rewards


@dataclasses.dataclass(frozen=True)
class TimeLimit:
    """Cut the games of `env` short after `max_plies` plies.

    A game that ends with its last allowed ply is terminated, not truncated: its result counts. `env` is any
    game whose state is a dataclass and whose rules stop at `truncated`, as all games here do.
    """

    env: Any
    max_plies: int

    def __post_init__(self) -> None:
        check_integer("max_plies", self.max_plies, 1, 2**31 - 2)
        if isinstance(self.env, type | TimeLimit) or not hasattr(self.env, "step"):
            raise TypeError(f"`env` is {self.env!r}, expected a game without a time limit, made by calling its class.")

    def __getattr__(self, name: str) -> Any:
        """Give what the game declares and this class does not: names, sizes, layouts, symmetries."""
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def arrange(self, planes: Any, to_play: int) -> TimedState:
        """Set up a position as the game does, with no plies played."""
        return TimedState(inner=self.env.arrange(planes, to_play), plies=jnp.zeros((), jnp.int32))

    def ended(self, state: TimedState) -> TimedState:
        """End a running game as the game does."""
        return dataclasses.replace(state, inner=self.env.ended(state.inner))

    def cut_short(self, state: TimedState) -> TimedState:
        """Truncate a running game."""
        return dataclasses.replace(state, inner=self.env.cut_short(state.inner))

    def init(self, key: jax.Array | None = None, /) -> TimedState:
        """Start a game with no plies played."""
        return TimedState(inner=self.env.init(key), plies=jnp.zeros((), jnp.int32))

    def step(self, state: TimedState, action: jax.Array, key: jax.Array | None = None, /) -> TimedState:
        """Play `action`; see the game itself for illegal actions and for steps after the end."""
        return self._counted(self.env.step(state.inner, action, key), state.plies)

    def _counted(self, inner: Any, plies: jax.Array) -> TimedState:
        # Moves that leave the game running are what is counted, so nothing moves after the end.
        plies = plies + (~(inner.terminated | inner.truncated)).astype(jnp.int32)
        late = ~inner.terminated & (plies >= self.max_plies)
        return TimedState(
            inner=dataclasses.replace(inner, truncated=inner.truncated | late),
            plies=plies,
        )

    def observe(self, state: TimedState, /) -> jax.Array:
        """See the state as the game shows it to the player to move."""
        return self.env.observe(state.inner)

    def legal_action_mask(self, state: TimedState, /) -> jax.Array:
        """Mark the allowed actions: [A] bool, all False once the game is over or cut short."""
        return self.env.legal_action_mask(state.inner)

    def hash(self, state: TimedState, /) -> jax.Array:
        """Hash the position as the game does, whatever has been played of the limit: [2] uint32."""
        return self.env.hash(state.inner)

    # What only some games have; `getattr` finds it here just if the game has it.

    @property
    def labels(self) -> Callable[[TimedState], jax.Array]:
        """The numbers on the tiles of a state, as the game tells them."""
        labels = self.env.labels
        return lambda state: labels(state.inner)

    @property
    def caption(self) -> Callable[[TimedState], str]:
        """The line that stands for a board, as the game tells it."""
        caption = self.env.caption
        return lambda state: caption(state.inner)

    # For games of chance alone.

    def decide(self, state: TimedState, action: jax.Array, /) -> TimedState:
        """Play `action` up to the chance event, which is when the ply will be counted."""
        return dataclasses.replace(state, inner=self.env.decide(state.inner, action))

    def odds(self, afterstate: TimedState, /) -> jax.Array:
        """Tell the probability of each outcome: [O] float32."""
        return self.env.odds(afterstate.inner)

    def happen(self, afterstate: TimedState, outcome: jax.Array, /) -> TimedState:
        """Let `outcome` happen and count the ply."""
        return self._counted(self.env.happen(afterstate.inner, outcome), afterstate.plies)
