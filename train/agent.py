"""A trained agent: the network's parameters together with the search that plays with them.

`agent = train.load_agent("runs/connect_four")` brings one back, and `action, output = agent(state)` asks it about
one state or a batch; `output` is that of the search, with the value and the weights of all moves.
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envs
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
    iteration: int  # iterations of its run that it has learned from in full

    def __call__(self, state: Any, key: jax.Array | None = None) -> tuple[jax.Array, PolicyOutput]:
        """Choose a move in one position or in each of a batch: the action, `[]` or `[B]`, and the search's output.

        For one position the output has no batch axis either, except `output.tree`, which stays a batch of one, as
        all that reads trees wants it (`jaxmcts.view`). Where a game is finished the action is 0, and
        `output.flags` say so. The agent does not draw its moves: `key` matters in games of chance alone.
        Every new batch size is compiled once.
        """
        key = jax.random.key(0) if key is None else key
        if jnp.ndim(state.to_play) > 0:
            output = search.play(self.params, key, state, env=self.env, config=self.config)
            return output.action, output
        batch = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
        output = search.play(self.params, key, batch, env=self.env, config=self.config)
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        del fields["tree"]
        output = dataclasses.replace(output, **jax.tree.map(lambda x: x[0], fields))
        return output.action, output


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
