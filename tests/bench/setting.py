"""Games with a network, for `overhead` and `moves`: which, in what batches, from which positions.

The network is 32 channels wide and 5 convolutions deep, untrained. Searches begin after a few random moves.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import envs
import jaxmcts
from tests.bench.games import record_games
from train.network import Network


@dataclasses.dataclass(frozen=True)
class Setting:
    """A game as `envs.make` and `pgx.make` name it, and the sizes to search it with."""

    name: str  # ours, options in brackets
    pgx_name: str
    batch: int
    budgets: tuple[int, ...]  # simulations
    opening_plies: int = 5

    @functools.cached_property
    def game(self) -> Any:
        return envs.make(self.name)

    @functools.cached_property
    def network(self) -> Network:
        game = self.game
        return Network(observation_shape=game.observation_shape, num_actions=game.num_actions, channels=32, blocks=5)

    @functools.cached_property
    def model(self) -> jaxmcts.Model:
        return jaxmcts.model_from_env(self.game, jaxmcts.network_evaluator(self.game, self.network))

    def search(self, params: Any, key: jax.Array, state: Any, num_simulations: int) -> Any:
        """Run the policy both sections measure."""
        return jaxmcts.alphazero_policy(
            params, key, state, self.model, num_simulations=num_simulations, dirichlet_fraction=0.0
        )

    @functools.cached_property
    def openings(self) -> np.ndarray:
        """The first moves of each game: [T, B]."""
        start = jax.vmap(self.game.init)(jax.random.split(jax.random.key(0), self.batch))
        keys = jax.random.split(jax.random.key(1), (self.opening_plies, self.batch))
        return np.asarray(record_games(self.game, self.game.legal_action_mask, start, keys))

    def positions(self) -> Any:
        """Play the openings on our game."""
        keys = jax.random.split(jax.random.key(0), self.batch)
        state = jax.vmap(self.game.init)(keys)
        for action in self.openings:
            state = jax.vmap(self.game.step)(state, action, keys)
        return state


CONNECT_FOUR = Setting("connect_four", "connect_four", batch=256, budgets=(32, 128))
# Boards of the last eight plies, which pgx's observation always has.
GO = Setting("go(history=8)", "go_9x9", batch=64, budgets=(64,))


def jitted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Compile and bind `arguments`."""
    compiled = jax.jit(function).lower(*arguments).compile()
    return lambda: compiled(*arguments)
