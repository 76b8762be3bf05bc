"""The searches that a config asks for: one that explores, for self-play, and one that plays its best.

Self-play draws its moves with noise, and may search most of them with a small budget only, so that more games
are played for the same number of evaluations: playout-cap randomisation (Wu 2019, "Accelerating self-play
learning in Go", 3.1). A batch is searched in lockstep, so one draw a move decides for all its games.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from jaxmcts import Model, PolicyOutput
from jaxmcts.model import Env, Number, PyTree
from train.config import Config
from train.network import Network, make_network

# policy(params, key, state [B]) -> the output of a search
Policy = Callable[[PyTree, jax.Array, Any], PolicyOutput]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """What self-play keeps of a search, by row; values are in the view of the player to move."""

    action: jax.Array  # [B] int32, the move to play
    action_weights: jax.Array  # [B, A] float32, the policy target
    value: jax.Array  # [B] float32, the search's value of the position
    policy_weight: jax.Array  # [B] float32: 1, or 0 if the search was too small to learn a policy from


# explorer(params, key, state [B], ply [B]) -> Choice; `ply` counts the moves made in each game
Explorer = Callable[[PyTree, jax.Array, Any, jax.Array], Choice]


def make_model(env: Env, network: Network) -> Model:
    """Make the world that a search sees: the game's rules, judged by the network."""
    return jaxmcts.model_from_env(env, jaxmcts.network_evaluator(env, network))


def make_policy(env: Env, network: Network, config: Config) -> Policy:
    """Make the search of the agent: no noise, and `agent_num_simulations` a move."""
    return functools.partial(
        _search,
        model=make_model(env, network),
        config=config,
        num_simulations=config.agent_num_simulations,
        temperature=0.0,
        noise=False,
    )


@functools.partial(jax.jit, static_argnames=("env", "config"))
def play(params: PyTree, key: jax.Array, state: Any, *, env: Env, config: Config) -> PolicyOutput:
    """Search as the agents of a config do, which share what is compiled; `state` is a batch."""
    return make_policy(env, make_network(env, config), config)(params, key, state)


def make_explorer(env: Env, network: Network, config: Config) -> Explorer:
    """Make the search of self-play, or the two of which each move draws one.

    A small search is without noise in its tree, Dirichlet's or Gumbel's, for it has no visits to spare and nobody
    learns its policy; the temperature of AlphaZero's move stays.
    """
    explore = functools.partial(_explore, model=make_model(env, network), config=config)
    full = functools.partial(explore, num_simulations=config.num_simulations, full=True)
    if config.full_search_share == 1:
        return full
    fast = functools.partial(explore, num_simulations=config.fast_num_simulations, full=False)

    def draw(params: PyTree, key: jax.Array, state: Any, ply: jax.Array) -> Choice:
        size_key, search_key = jax.random.split(key)
        is_full = jax.random.bernoulli(size_key, config.full_search_share)
        return jax.lax.cond(is_full, full, fast, params, search_key, state, ply)

    return draw


def count_evaluations(config: Config, full: float, fast: float) -> float:
    """Count the network evaluations of so many searches of self-play in `full` and so many `fast` ones.

    Each evaluates one position a node, its root too.
    """
    return full * (1 + config.num_simulations) + fast * (1 + config.fast_num_simulations)


def temperatures(config: Config, ply: jax.Array) -> jax.Array:
    """Give the temperature of each game at its own ply: `temperature` before `temperature_plies`, then the late one."""
    return jnp.where(ply < config.temperature_plies, config.temperature, config.late_temperature)


def _explore(
    params: PyTree,
    key: jax.Array,
    state: Any,
    ply: jax.Array,
    *,
    model: Model,
    config: Config,
    num_simulations: int,
    full: bool,
) -> Choice:
    out = _search(
        params,
        key,
        state,
        model=model,
        config=config,
        num_simulations=num_simulations,
        temperature=temperatures(config, ply),
        noise=full,
    )
    return Choice(
        action=out.action,
        action_weights=out.action_weights,
        value=out.value,
        policy_weight=jnp.full(ply.shape, float(full)),
    )


def _search(
    params: PyTree,
    key: jax.Array,
    state: Any,
    *,
    model: Model,
    config: Config,
    num_simulations: int,
    temperature: Number,
    noise: bool,
) -> PolicyOutput:
    """Search by the config's rule. The temperature is that of AlphaZero's move, or the scale of Gumbel's noise."""
    if config.search == "alphazero":
        return jaxmcts.alphazero_policy(
            params,
            key,
            state,
            model,
            num_simulations=num_simulations,
            temperature=temperature,
            dirichlet_fraction=config.dirichlet_fraction if noise else 0.0,
            dirichlet_alpha=config.dirichlet_alpha,
        )
    return jaxmcts.gumbel_policy(
        params,
        key,
        state,
        model,
        num_simulations=num_simulations,
        max_num_considered_actions=config.max_num_considered_actions,
        gumbel_scale=temperature if noise else 0.0,
    )
