"""A trained agent: the network's parameters together with the search that plays with them.

`agent = train.load_agent("runs/connect_four")` brings one back, and `action, output = agent(state)` asks it about
one state or a batch; `output` is that of the search, with the value and the weights of all moves. For one
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
from envs.base import is_finished
from jaxmcts import PolicyOutput
from jaxmcts.model import Env
from train import checkpoint, run_folder, search
from train.config import Config
from train.network import Params, make_network


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Plays its best: the config's search without noise, `config.agent_num_simulations` per move."""

    env: Env
    config: Config
    params: Params
    iteration: int  # of its run, after which it was kept

    def __call__(self, state: Any, key: jax.Array | None = None) -> tuple[jax.Array, PolicyOutput]:
        """Choose a move in one position or in each of a batch: the action, `[]` or `[B]`, and the search's output.

        For one position the output has no batch axis either, except `output.tree`, which stays a batch of one, as
        all that reads trees wants it (`jaxmcts.view`). Where a game is finished the action is 0, and
        `output.flags` say so. The agent does not draw its moves: `key` matters in games of chance alone.
        Every new batch size is compiled once.
        """
        key = jax.random.key(0) if key is None else key
        find = functools.partial(_search, self.params, key, env=self.env, config=self.config)
        if jnp.ndim(state.to_play) > 0:
            output = find(state)
            return output.action, output
        output = find(jax.tree.map(lambda x: jnp.asarray(x)[None], state))
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        del fields["tree"]
        output = dataclasses.replace(output, **jax.tree.map(lambda x: x[0], fields))
        return output.action, output


@functools.partial(jax.jit, static_argnames=("env", "config"))
def _search(params: Params, key: jax.Array, state: Any, *, env: Env, config: Config) -> PolicyOutput:
    """Search as the agents of a config do, which share what is compiled."""
    return search.make_policy(env, make_network(env, config), config)(params, key, state)


def load_agent(run: str | Path, *, iteration: int | None = None, num_simulations: int | None = None) -> Agent:
    """Load an agent that a run kept: the newest sound one, or that of an iteration.

    A run keeps one at each evaluation: `load_agent("runs/connect_four", iteration=12)`. `num_simulations` replaces
    the config's `agent_num_simulations`. Where the newest is damaged, the one before is taken and a line says why.
    Raises `ValueError` if the folder is no run or keeps no agent of that iteration, `CheckpointError` if the agent
    is damaged or none is sound.
    """
    folder = Path(run)
    settings = run_folder.read_config(folder)
    if num_simulations is not None:
        settings = dataclasses.replace(settings, agent_num_simulations=num_simulations)
    env = envs.make(settings.game)
    template = jax.eval_shape(make_network(env, settings).init, jax.random.key(0))
    agents = folder / run_folder.AGENTS
    kept = sorted(checkpoint.steps(agents))
    if not kept:
        raise ValueError(f"The run {str(run)!r} keeps no agent yet: it keeps one at each evaluation and at its end.")
    if iteration is None:
        iteration, params = checkpoint.load(agents, template)
    elif iteration in kept:
        params = checkpoint.load_step(agents, iteration, template)
    else:
        raise ValueError(f"`iteration` is {iteration}, but {str(run)!r} keeps agents of {kept}: choose one of them.")
    return Agent(env=env, config=settings, params=params, iteration=iteration)


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
    action, output = agent(state)
    weights = " ".join(f"{weight:.2f}" for weight in output.action_weights)
    return f"{board}\n\nThe agent plays {action}, expects {output.value:+.2f}; weights of the moves: {weights}"


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
