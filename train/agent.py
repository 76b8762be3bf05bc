"""A trained agent: the network's parameters together with the search that plays with them.

    agent = train.load_agent("runs/connect_four")
    action, output = agent(state, key)  # state [B], batched; output has values and weights of all moves
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax

import envs
import jaxmcts
from jaxmcts.model import Env
from train import checkpoint, learner, run_folder
from train.config import Config
from train.network import Network, Params
from train.selfplay import Policy


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Plays its best: Gumbel search without noise, `config.agent_simulations` per move."""

    env: Env
    config: Config
    params: Params
    step: int  # iterations it was trained for

    def __call__(self, state: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        """Choose a move in each position of a batch: `action [B]` and the search's output.

        Where a game is finished the action is 0, and `output.flags` say so.
        """
        output = self._search(self.params, key, state)
        return output.action, output

    @functools.cached_property
    def _search(self) -> Any:
        network, simulations = make_network(self.env, self.config), self.config.agent_simulations
        return jax.jit(make_policy(self.env, network, self.config, simulations=simulations, gumbel_scale=0.0))


def load_agent(run: str | Path) -> Agent:
    """Load the newest sound checkpoint of a run's folder, for example `load_agent("runs/connect_four")`.

    Raises `ValueError` if the folder is no run, `CheckpointError` if no checkpoint of it can be used.
    """
    folder = Path(run)
    settings = run_folder.read_config(folder)
    env = envs.make(settings.game)
    network = make_network(env, settings)
    fresh = functools.partial(learner.start, network=network, optimizer=learner.make_optimizer(settings))
    template = jax.eval_shape(fresh, jax.random.key(0))
    step, state = checkpoint.load(folder / run_folder.CHECKPOINTS, template)
    return Agent(env=env, config=settings, params=state.params, step=step)


def make_network(env: Env, config: Config) -> Network:
    """Size the network for a game."""
    return Network(
        observation_shape=env.observation_shape,
        num_actions=env.num_actions,
        channels=config.channels,
        blocks=config.blocks,
    )


def make_policy(env: Env, network: Network, config: Config, *, simulations: int, gumbel_scale: float) -> Policy:
    """Make a search by the network: `policy(params, key, state [B]) -> output`; scale 0 is without noise."""
    return functools.partial(
        jaxmcts.gumbel_policy,
        model=jaxmcts.model_from_env(env, jaxmcts.network_evaluator(env, network)),
        num_simulations=simulations,
        max_num_considered_actions=config.max_num_considered_actions,
        gumbel_scale=gumbel_scale,
    )
