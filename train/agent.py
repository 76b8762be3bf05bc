"""A trained agent: the network's parameters together with the search that plays with them.

`agent = train.load_agent("runs/connect_four")` brings one back, and `action, output = agent(state)` asks it about
one state or a batch; `output` is that of the search, with the value and the weights of all moves. For one
position on the command line: `python -m train.agent runs/connect_four 3 2`, with the moves so far.
Nothing here imports JAX before an agent is loaded or asked.
"""

import argparse
import dataclasses
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

    from jaxmcts import PolicyOutput
    from jaxmcts.model import Env
    from train.config import Config
    from train.network import Params


_FEW = 5  # moves that are named with their weights


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
    """Plays its best: the config's search without noise, `config.agent_num_simulations` per move."""

    env: "Env"
    config: "Config"
    params: "Params"
    step: int  # iterations it was trained for

    def __call__(self, state: Any, key: "jax.Array | None" = None) -> "tuple[jax.Array, PolicyOutput]":
        """Choose a move in one position or in each of a batch: the action, `[]` or `[B]`, and the search's output.

        For one position the output has no batch axis either, except `output.tree`, which stays a batch of one, as
        all that reads trees wants it (`jaxmcts.view`). Where a game is finished the action is 0, and
        `output.flags` say so. The agent does not draw its moves: `key` matters in games of chance alone.
        Every new batch size is compiled once.
        """
        import jax
        import jax.numpy as jnp

        from train import search

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
    import jax

    import envs
    from train import checkpoint, run_folder
    from train.network import make_network

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
    return Agent(env=env, config=settings, params=params, step=iteration)


def answer(agent: Agent, moves: Sequence[str]) -> str:
    """Play `moves`, by their names (`envs.move_name`), from the start of a game and tell what the agent would do there.

    Raises `ValueError` for what is no move, a move that is not legal and one after the end.
    """
    import envs
    from envs.base import is_finished
    from envs.render import MARKS

    state = _after(agent.env, moves)
    board = envs.to_text(agent.env, state)
    if is_finished(state):
        return board
    action, output = agent(state)
    mover, sign = MARKS[int(state.to_play)], "+1 is a sure win, -1 a sure loss"
    return (
        f"{board}\n\nThe agent plays {envs.move_name(agent.env, int(action))}. "
        f"It values the position at {output.value:+.2f} for {mover} ({sign}).\n"
        f"The search weighs the moves: {_weighed(agent.env, output.action_weights.tolist())}"
    )


def _after(env: "Env", moves: Sequence[str]) -> Any:
    """Play moves by their names; errors as of `answer`."""
    import jax
    import jax.numpy as jnp

    import envs

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


def _weighed(env: "Env", weights: Sequence[float]) -> str:
    """Name the moves with the most weight, the best first, and what is left for the others together."""
    import envs

    order = sorted((action for action, weight in enumerate(weights) if weight > 0), key=lambda i: -weights[i])
    best, others = order[:_FEW], order[_FEW:]
    named = [f"{envs.move_name(env, action)} {weights[action]:.0%}" for action in best]
    rest = [f"{len(others)} others {sum(weights[action] for action in others):.0%}"] if others else []
    return ", ".join(named + rest)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m train.agent RUN [MOVE ...]`: ask an agent what it would play after these moves."""
    parser = argparse.ArgumentParser(prog="python -m train.agent", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    parser.add_argument(
        "moves",
        nargs="*",
        metavar="MOVE",
        help="from the start of a game, both players', named as the report names them: 3 for a column of Connect Four, "
        "c3 for a cell, swap; an action's number will do too",
    )
    given = parser.parse_args(arguments)

    from train.checkpoint import CheckpointError

    try:
        print(answer(load_agent(given.run), given.moves))
    except (ValueError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
