"""The parts of the training loop as compiled functions.

`build` compiles nothing yet but finds everything that can be wrong with a config.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

import envs
from envs.symmetry import symmetries_of
from jaxmcts.model import Env
from train import learner, replay, search, selfplay, targets
from train.config import Config
from train.ladder import Ladder
from train.learner import Learner
from train.network import Network, make_network
from train.replay import Replay
from train.selfplay import Games, Trajectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stages:
    """The compiled functions. Games, replay and learner are donated: keep what comes back."""

    config: Config
    start: Callable[[jax.Array], tuple[Learner, Games, Replay]]
    play: Callable[[Any, Games, jax.Array], tuple[Games, Trajectory]]
    store: Callable[[Replay, Trajectory], Replay]
    update: Callable[[Learner, Replay, jax.Array], tuple[Learner, dict[str, jax.Array]]]
    ladder: Ladder


def build(config: Config) -> Stages:
    """Put the parts together. Raises `ValueError` for a game that cannot be trained; writes nothing."""
    env = envs.make(config.game)
    _check_game(config.game, env)
    network = make_network(env, config)
    optimizer = learner.make_optimizer(config)
    play = functools.partial(
        selfplay.play,
        env=env,
        model=search.make_model(env, network),
        explorer=search.make_explorer(env, network, config),
        steps=config.steps,
        opening_plies=config.opening_plies,
    )
    make_samples = functools.partial(
        targets.samples,
        td_lambda=config.td_lambda,
        td_steps=config.td_steps,
        search_value_share=config.search_value_share,
    )
    update = functools.partial(
        learner.update,
        env=env,
        network=network,
        optimizer=optimizer,
        batch=config.batch,
        symmetries=symmetries_of(env)[: None if config.mirror else 1],
        value_weight=config.value_weight,
        average_decay=config.average_decay,
    )
    return Stages(
        config=config,
        start=jax.jit(functools.partial(_start, env=env, network=network, optimizer=optimizer, config=config)),
        play=jax.jit(play, donate_argnums=1),
        store=jax.jit(lambda ring, trajectory: replay.add(ring, make_samples(trajectory)), donate_argnums=0),
        update=jax.jit(update, donate_argnums=0),
        ladder=Ladder(env=env, config=config),
    )


def _check_game(name: str, env: Env) -> None:
    """Find at once what a game of anybody's has wrong or is not made for, as far as tracing tells."""
    try:
        envs.check_types(env)
    except envs.ContractError as error:
        raise ValueError(
            f"`game` {name!r} cannot be trained: {error}\nMend it with the help of `envs.check_env`."
        ) from error
    if env.num_players != 2:
        raise ValueError(
            f"`game` {name!r} has {env.num_players} player{'s' * (env.num_players > 1)}, expected 2: an agent learns "
            "by playing against itself. Games of one can be searched (`jaxmcts.gumbel_policy`), but not trained yet."
        )


def _start(
    key: jax.Array, *, env: Any, network: Network, optimizer: Any, config: Config
) -> tuple[Learner, Games, Replay]:
    learner_key, games_key = jax.random.split(key)
    games = selfplay.start(games_key, env=env, games=config.games, opening_plies=config.opening_plies)
    sample = targets.empty_sample(env, jax.tree.map(lambda x: x[0], games.state))
    state = learner.start(learner_key, network, optimizer, average_decay=config.average_decay)
    return state, games, replay.create(sample, config.replay)
