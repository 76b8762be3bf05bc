"""Who can play a match: a trained agent, UCT, random moves.

A kind of player is a frozen record of its options that is called as `player(params, key, state [B]) -> action [B]`.
Equal records are equal players, so that `match.play` compiles once for two kinds: all checkpoints of a run are one.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envs
import jaxmcts
from jaxmcts.model import Env, PyTree
from train import agent, search
from train.checkpoint import CheckpointError
from train.config import Config
from train.match import Player
from train.network import make_network


@dataclasses.dataclass(frozen=True)
class Trained:
    """The search of an agent, `config.agent_num_simulations` a move; `params` are its network's."""

    env: Env
    config: Config

    def __call__(self, params: PyTree, key: jax.Array, state: Any) -> jax.Array:
        return search.make_policy(self.env, make_network(self.env, self.config), self.config)(params, key, state).action


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


def load(texts: Sequence[str], game: str | None = None) -> tuple[Env, list[Entrant]]:
    """Make the players that texts name, as listed in `arena.PLAYERS`, and the game that all of them play.

    `game` is needed where none of them is an agent. Raises `ValueError` for a text that names no player, for runs
    and agents that are not there, and for players of different games.
    """
    agents = {text: _load_agent(text) for text in texts if not _is_untrained(text)}
    games = {text: loaded.env for text, loaded in agents.items()} | (
        {} if game is None else {"`game`": envs.make(game)}
    )
    if not games:
        raise ValueError("None of the players is an agent, so the game is not known: name it, `--game connect_four`.")
    (one, env), *others = games.items()
    for other, another in others:
        if another != env:
            raise ValueError(f"{one} plays {env} but {other} plays {another}: choose players of the same game.")
    return env, [_enter(text, env, agents.get(text)) for text in texts]


def _is_untrained(text: str) -> bool:
    return text == "random" or text.startswith("uct:")


def _enter(text: str, env: Env, loaded: agent.Agent | None) -> Entrant:
    if loaded is not None:
        name = f"{text} (iteration {loaded.step}, {loaded.config.agent_num_simulations} simulations a move)"
        return Entrant(name=name, player=Trained(env, loaded.config), params=loaded.params)
    if text == "random":
        return Entrant(name=text, player=Random(env))
    rollouts = text.removeprefix("uct:")
    if not rollouts.isdecimal() or int(rollouts) < 1:
        raise ValueError(f"The player {text!r} has no number of rollouts: write `uct:100`.")
    return Entrant(name=text, player=Uct(env, int(rollouts)))


def _load_agent(text: str) -> agent.Agent:
    match = re.fullmatch(r"(?P<run>.+?)(@(?P<iteration>\d+))?(:(?P<simulations>\d+))?", text)
    if match is None or not Path(match["run"]).is_dir():
        raise ValueError(
            f"The player {text!r} is not known: write `random`, `uct:100`, or the folder of a run that is there, "
            "such as `runs/connect_four`, with `@12` for an iteration and `:200` for simulations a move."
        )
    iteration, simulations = (None if part is None else int(part) for part in match.group("iteration", "simulations"))
    try:
        return agent.load_agent(match["run"], iteration=iteration, num_simulations=simulations)
    except CheckpointError as error:
        raise ValueError(f"The player {text!r} cannot be loaded: {error}") from error
