"""Who can play a match: a trained agent, UCT, random moves.

A kind of player is a frozen record of its options that is called as `player(params, key, state [B]) -> action [B]`.
Equal records are equal players, so that `match.play` compiles once for two kinds: all checkpoints of a run are one.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmcts
from jaxmcts.model import Env, PyTree
from train import match, search
from train.config import Config
from train.match import Player


@dataclasses.dataclass(frozen=True)
class Trained:
    """The search of an agent, `config.agent_num_simulations` a move; `params` are its network's."""

    env: Env
    config: Config

    def __call__(self, params: PyTree, key: jax.Array, state: Any) -> jax.Array:
        return search.play(params, key, state, env=self.env, config=self.config).action


@dataclasses.dataclass(frozen=True)
class Uct:
    """The yardstick: plain UCT with one random rollout per leaf; needs no parameters."""

    env: Env
    num_simulations: int

    def __call__(self, params: PyTree, key: jax.Array, state: Any) -> jax.Array:
        del params
        model = jaxmcts.model_from_env(self.env, jaxmcts.rollout_evaluator(self.env, 1))
        return jaxmcts.uct_policy((), key, state, model, num_simulations=self.num_simulations).action


@dataclasses.dataclass(frozen=True)
class Random:
    """Any legal move is as likely as any other; needs no parameters."""

    env: Env

    def __call__(self, params: PyTree, key: jax.Array, state: Any) -> jax.Array:
        del params
        mask = jax.vmap(self.env.legal_action_mask)(state)
        return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entrant:
    """A player ready to play: its kind and its parameters."""

    name: str
    player: Player
    params: PyTree = ()


def meet(first: Entrant, second: Entrant, key: jax.Array, *, env: Env, games: int, opening_plies: int) -> np.ndarray:
    """Let two entrants play a match and wait for it: the first one's points `[games]`, as of `match.play`."""
    points = match.play(
        (first.player, second.player),
        (first.params, second.params),
        key,
        env=env,
        games=games,
        opening_plies=opening_plies,
    )
    return np.asarray(jax.device_get(points))
