"""What an agent shows of itself: a game against itself, and what it makes of every first move."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.base import is_finished
from jaxmcts.model import Env
from train.agent import Agent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ply:
    """One move and what the search found before it."""

    state: Any  # the position it was made in
    player: int  # who made it
    action: int
    value: float  # of the position, in the view of the player who made the move
    weights: np.ndarray  # [A] of all moves, by the search: they sum to 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Game:
    """A whole game; `end` is the finished position."""

    plies: tuple[Ply, ...]
    end: Any


def play_itself(agent: Agent, key: jax.Array) -> Game:
    """Let the agent play both sides from the start of a game, as it plays in matches."""
    init_key, moves_key = jax.random.split(key)
    state = agent.env.init(init_key)
    plies: list[Ply] = []
    while not is_finished(state):
        search_key, step_key = jax.random.split(jax.random.fold_in(moves_key, len(plies)))
        action, output = agent(jax.tree.map(lambda x: x[None], state), search_key)
        plies.append(
            Ply(
                state=state,
                player=int(state.to_play),
                action=int(action[0]),
                value=float(output.value[0]),
                weights=np.asarray(output.action_weights[0]),
            )
        )
        state = _step(state, action[0], step_key, env=agent.env)
    return Game(plies=tuple(plies), end=state)


@functools.partial(jax.jit, static_argnames="env")
def _step(state: Any, action: jax.Array, key: jax.Array, *, env: Env) -> Any:
    return env.step(state, action, key)


@functools.partial(jax.jit, static_argnames="env")
def _steps(state: Any, actions: jax.Array, key: jax.Array, *, env: Env) -> Any:
    """Make each of `actions [A]` in one position: a state for each."""
    return jax.vmap(env.step, in_axes=(None, 0, None))(state, actions, key)


def first_moves(agent: Agent, key: jax.Array) -> np.ndarray:
    """Judge each first move by a search of the position after it: `[A]` from 0 to 1, NaN where it is not legal.

    It is the score that the first player may expect: the chance to win where a game knows no draw.
    """
    env = agent.env
    init_key, step_key, search_key = jax.random.split(key, 3)
    start = env.init(init_key)
    after = _steps(start, jnp.arange(env.num_actions), step_key, env=env)
    _, output = agent(after, search_key)
    value = jnp.where(after.to_play == 0, output.value, -output.value)
    value = jnp.where(is_finished(after), after.rewards[:, 0], value)
    score = jnp.clip((value + 1) / 2, 0, 1)  # a mean of values may stick out by rounding
    return np.asarray(jnp.where(env.legal_action_mask(start), score, jnp.nan))
