"""A trained agent: the network's parameters together with the search that plays with them.

`agent = train.load_agent("runs/connect_four")` brings one back, and `action, output = agent(state, key)` asks it
about a batch of states; `output` is that of the search, with the value and the weights of all moves. For one
position on the command line: `python -m train.agent runs/connect_four 3 2`, with the moves so far.
"""

import argparse
import dataclasses
import functools
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envs
import envs.render
import jaxmcts
from envs.base import is_finished
from jaxmcts import Model
from jaxmcts.model import Env
from train import checkpoint, run_folder
from train.config import Config
from train.network import Network, Params
from train.selfplay import Policy


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Plays its best: Gumbel search without noise, `config.agent_num_simulations` per move."""

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
        network, num_simulations = make_network(self.env, self.config), self.config.agent_num_simulations
        return jax.jit(make_policy(self.env, network, self.config, num_simulations=num_simulations, gumbel_scale=0.0))


def load_agent(run: str | Path) -> Agent:
    """Load the newest sound agent of a run's folder, for example `load_agent("runs/connect_four")`.

    Raises `ValueError` if the folder is no run, `CheckpointError` if it holds no agent that can be used.
    """
    folder = Path(run)
    settings = run_folder.read_config(folder)
    env = envs.make(settings.game)
    network = make_network(env, settings)
    template = jax.eval_shape(network.init, jax.random.key(0))
    step, params = checkpoint.load(folder / run_folder.AGENTS, template)
    return Agent(env=env, config=settings, params=params, step=step)


def make_network(env: Env, config: Config) -> Network:
    """Size the network for a game."""
    return Network(
        observation_shape=env.observation_shape,
        num_actions=env.num_actions,
        channels=config.channels,
        blocks=config.blocks,
    )


def make_model(env: Env, network: Network) -> Model:
    """Make the world that the search sees: the game's rules, judged by the network."""
    return jaxmcts.model_from_env(env, jaxmcts.network_evaluator(env, network))


def make_policy(env: Env, network: Network, config: Config, *, num_simulations: int, gumbel_scale: float) -> Policy:
    """Make a search by the network: `policy(params, key, state [B]) -> output`; scale 0 is without noise."""
    return functools.partial(
        jaxmcts.gumbel_policy,
        model=make_model(env, network),
        num_simulations=num_simulations,
        max_num_considered_actions=config.max_num_considered_actions,
        gumbel_scale=gumbel_scale,
    )


def answer(agent: Agent, moves: Sequence[int]) -> str:
    """Play `moves` from the start of a game and tell the position and what the agent would do there.

    Raises `ValueError` for a move that is not legal.
    """
    state = agent.env.init(jax.random.key(0))
    for number, move in enumerate(moves, start=1):
        if not (0 <= move < agent.env.num_actions and agent.env.legal_action_mask(state)[move]):
            legal = " ".join(str(action) for action in jnp.flatnonzero(agent.env.legal_action_mask(state)))
            raise ValueError(f"Move {number} is {move}, which is not legal there: choose one of {legal}.")
        state = agent.env.step(state, jnp.int32(move))
    board = envs.render.to_text(agent.env, state)
    if is_finished(state):
        return board
    action, output = agent(jax.tree.map(lambda x: x[None], state), jax.random.key(0))
    weights = " ".join(f"{weight:.2f}" for weight in output.action_weights[0])
    return f"{board}\n\nThe agent plays {action[0]}, expects {output.value[0]:+.2f}; weights of the moves: {weights}"


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m train.agent RUN [MOVE ...]`: ask an agent what it would play after these moves."""
    parser = argparse.ArgumentParser(prog="python -m train.agent", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    parser.add_argument("moves", nargs="*", type=int, help="actions from the start of a game, both players'")
    given = parser.parse_args(arguments)
    try:
        print(answer(load_agent(given.run), given.moves))
    except (ValueError, checkpoint.CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
