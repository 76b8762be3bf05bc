"""A trained agent: the network's parameters together with the search that plays with them.

`agent = train.load_agent("runs/connect_four")` brings one back, and `action, output = agent(state)` asks it about
one state or a batch; `output` is that of the search, with the value and the weights of all moves. `answer` puts it in
words, for `python -m train.ask`.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envs
from envs.base import is_finished
from envs.render import MARKS
from jaxmcts import PolicyOutput
from jaxmcts.model import Env
from train import checkpoint, run_folder, search
from train.config import Config
from train.network import Params, make_network

_FEW = 5  # moves that an answer names with their weights


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


def answer(agent: Agent, moves: Sequence[str]) -> str:
    """Play `moves`, by their names (`envs.move_name`), from the start of a game and tell what the agent would do there.

    Raises `ValueError` for what is no move, a move that is not legal and one after the end.
    """
    state = _after(agent.env, moves)
    try:
        board = envs.to_text(agent.env, state)
    except ValueError:  # a game without a board that can be drawn
        board = "game over" if is_finished(state) else f"{MARKS[int(state.to_play)]} to play"
    if is_finished(state):
        return board
    action, output = agent(state)
    mover, sign = MARKS[int(state.to_play)], "+1 is a sure win, -1 a sure loss"
    return (
        f"{board}\n\nThe agent plays {envs.move_name(agent.env, int(action))}. "
        f"It values the position at {output.value:+.2f} for {mover} ({sign}).\n"
        f"The search weighs the moves: {_weighed(agent.env, output.action_weights.tolist())}\n"
        "(The move is the best of those tried most, which need not weigh most.)"
    )


def _after(env: Env, moves: Sequence[str]) -> Any:
    """Play moves by their names; errors as of `answer`."""
    state = env.init(jax.random.key(0))
    for number, text in enumerate(moves, start=1):
        legal = list(envs.legal_moves(env, state))
        if not legal:
            raise ValueError(f"Move {number} is {text!r}, but the game is over after {number - 1} moves.")
        try:
            action = envs.parse_move(env, text)
        except ValueError:
            raise ValueError(f"Move {number} is {text!r}, which is no move: choose one of {' '.join(legal)}.") from None
        if not env.legal_action_mask(state)[action]:
            raise ValueError(f"Move {number} is {text!r}, which is not legal there: choose one of {' '.join(legal)}.")
        state = env.step(state, jnp.int32(action), jax.random.key(number))
    return state


def _weighed(env: Env, weights: Sequence[float]) -> str:
    """Name the moves with the most weight, the best first, and what is left for the others together."""
    order = sorted((action for action, weight in enumerate(weights) if weight > 0), key=lambda i: -weights[i])
    best, others = order[:_FEW], order[_FEW:]
    named = [f"{envs.move_name(env, action)} {weights[action]:.0%}" for action in best]
    rest = [f"{len(others)} others {sum(weights[action] for action in others):.0%}"] if others else []
    return ", ".join(named + rest)
