"""Connect Four with a network: the setting of `overhead` and `moves`.

The network is 32 channels wide and 5 convolutions deep, untrained. Searches begin after a few random moves.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import envs
import jaxmcts
from train.network import Network

BATCH = 256
BUDGETS = (32, 128)
OPENING_PLIES = 5  # too few to fill a column or to win

GAME = envs.make("connect_four")
NETWORK = Network(observation_shape=GAME.observation_shape, num_actions=GAME.num_actions, channels=32, blocks=5)
MODEL = jaxmcts.model_from_env(GAME, jaxmcts.network_evaluator(GAME, NETWORK))


def search(params: Any, key: jax.Array, state: Any, num_simulations: int) -> Any:
    """Run the policy both sections measure."""
    return jaxmcts.alphazero_policy(params, key, state, MODEL, num_simulations=num_simulations, dirichlet_fraction=0.0)


def openings() -> np.ndarray:
    """Draw the first moves of each game: [T, B]."""
    return np.random.default_rng(0).integers(0, GAME.num_actions, (OPENING_PLIES, BATCH), dtype=np.int32)


def positions() -> Any:
    """Play the openings on our game."""
    keys = jax.random.split(jax.random.key(0), BATCH)
    state = jax.vmap(GAME.init)(keys)
    for action in openings():
        state = jax.vmap(GAME.step)(state, action, keys)
    return state


def jitted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Compile and bind `arguments`."""
    compiled = jax.jit(function).lower(*arguments).compile()
    return lambda: compiled(*arguments)
