"""The command that asks an agent: `python -m train.ask runs/connect_four 3 2`, with the moves so far.

Nothing here imports JAX before an agent is loaded.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxmcts.model import Env
    from train.agent import Agent

_FEW = 5  # moves that are named with their weights


def answer(agent: "Agent", moves: Sequence[str]) -> str:
    """Play `moves`, by their names (`envs.move_name`), from the start of a game and tell what the agent would do there.

    Raises `ValueError` for what is no move, a move that is not legal and one after the end.
    """
    import envs
    from envs.base import is_finished
    from envs.render import MARKS

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
    """`python -m train.ask RUN [MOVE ...]`: ask an agent what it would play after these moves."""
    parser = argparse.ArgumentParser(prog="python -m train.ask", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    parser.add_argument(
        "moves",
        nargs="*",
        metavar="MOVE",
        help="from the start of a game, both players', named as the report names them: 3 for a column of Connect Four, "
        "c3 for a cell, swap; an action's number will do too",
    )
    given = parser.parse_args(arguments)

    from train.agent import load_agent
    from train.checkpoint import CheckpointError

    try:
        print(answer(load_agent(given.run), given.moves))
    except (OSError, ValueError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
