"""Games of chance whose odds a search can read: a step is a decision and then a chance event.

    state --decide(action)--> afterstate --happen(outcome)--> state

`decide` is what the mover does and knows: the slide in 2048, nothing spawned yet. `odds` tells how likely each
outcome is from there, and `happen` carries one out. `step` is the three in a row, with the outcome drawn by its key:

    afterstate = game.decide(state, action)
    after = game.happen(afterstate, outcome drawn by game.odds(afterstate))      # what `step` gives

so that a search may draw outcomes, or go through all of them, by the same rules. (A search that steps draws one
event for each edge of its tree and then plans as if that event were known to come, which overrates the mover.)

Like everything of a game the three are pure, traceable and for one game; `jax.vmap` batches them. They keep the
rules of `envs.base` on their own:

- `decide` with an illegal action ends the game as a loss for the mover, and in a finished game it changes nothing and
  gives rewards 0, as `step` does;
- where nothing is left to chance, after every end and after decisions such as Pig's hold, the afterstate is the next
  state itself: outcome 0 is certain, and `happen` changes nothing after an end, whichever outcome it is given;
- the rewards of an afterstate are those of the decision, the rewards after `happen` those of the whole step.

An afterstate is a `State`, but not one to decide in: its mask and its observation tell nothing while an event is to
come, and its `to_play` is then the player who has moved. Where the start is drawn too, `init` raises `TypeError`
without a key, as `step` always does.
"""

import abc

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from envs import arguments, base


class ChanceGame(base.BoardGame):
    """A game of chance for the shell to run; subclasses are frozen dataclasses and give the hooks marked abstract."""

    @property
    @abc.abstractmethod
    def num_outcomes(self) -> int:
        """The number of outcomes O that `odds` tells apart."""

    @abc.abstractmethod
    def _decide(self, state: base.State, action: jax.Array) -> base.State:
        """Do what the mover does with a legal `action` in a running game; else the result is dropped."""

    @abc.abstractmethod
    def _odds(self, afterstate: base.State) -> jax.Array:
        """[O] float32, by the rules alone: the shell covers finished games."""

    @abc.abstractmethod
    def _happen(self, afterstate: base.State, outcome: jax.Array) -> base.State:
        """Carry out an outcome of positive odds in a running game; else the result need not make sense."""

    @property
    def _certain(self) -> jax.Array:
        """The odds where nothing is left to chance, of outcome 0 alone: [O] float32."""
        return (jnp.arange(self.num_outcomes, dtype=jnp.int32) == 0).astype(jnp.float32)

    def _draw(self, afterstate: base.State, key: jax.Array) -> jax.Array:
        """Draw an outcome by its odds, [] int32; games override it where that is cheaper."""
        return jax.random.categorical(key, jnp.log(self.odds(afterstate))).astype(jnp.int32)

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        return self._decide(state, action)

    def decide(self, state: base.State, action: ArrayLike, /) -> base.State:
        """Play `action` up to the chance event: the afterstate. Errors as of `step`."""
        return super().step(state, action)

    def odds(self, afterstate: base.State, /) -> jax.Array:
        """Tell the probability of each outcome: [O] float32 that sum to 1, 0 where impossible.

        Raises `TypeError` for a batch of states.
        """
        arguments.check_single(afterstate)
        return jnp.where(base.is_finished(afterstate), self._certain, self._odds(afterstate))

    def happen(self, afterstate: base.State, outcome: ArrayLike, /) -> base.State:
        """Let `outcome`, an integer scalar from 0 to O - 1, happen: the next state.

        An outcome whose odds are 0, or one out of range, gives a state of the right shapes that means nothing.
        Raises `TypeError` for an outcome that is not one integer and for a batch of states.
        """
        arguments.check_single(afterstate)
        happened = self._happen(afterstate, arguments.as_index("outcome", outcome))
        return base.select(base.is_finished(afterstate), afterstate, happened)

    def step(self, state: base.State, action: ArrayLike, key: jax.Array | None = None, /) -> base.State:
        """Play `action`, an integer scalar, and let chance, drawn by `key`, do its part.

        Illegal actions and finished games are as of `BoardGame.step`. Raises `TypeError` without a key.
        """
        key = arguments.need_key(self, "step", key)
        afterstate = self.decide(state, action)
        return self.happen(afterstate, self._draw(afterstate, key))
