"""How often a trained agent is right, where the truth is known: `python -m tests.bench.perfect RUN`.

Tic-tac-toe is solved here, position by position, and the agent is asked at every position that can come about. Of Hex
on 5 x 5 it is known which first moves win; the agent is asked after each of them who will.
"""

import argparse
import functools
import inspect
import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import envs
import train

_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
# Hex on 5 x 5 without swap; the first player joins top and bottom.
_WINNING_FIRST_MOVES = """
    . . . . W
    . W W W W
    . W W W .
    W W W W .
    W . . . .
"""


@functools.cache
def value(board: str) -> int:
    """Solve a position for the player to move: 1 won, 0 drawn, -1 lost. X moves first; '.' is empty."""
    return max((-value(after) for after in moves(board).values()), default=_ended(board))


def moves(board: str) -> dict[int, str]:
    """Map the legal moves of a position, none if it is finished, to the positions after them."""
    if _ended(board) or "." not in board:
        return {}
    mark = "XO"[board.count("X") - board.count("O")]
    return {cell: board[:cell] + mark + board[cell + 1 :] for cell in range(9) if board[cell] == "."}


def _ended(board: str) -> int:
    return -1 if any(board[a] != "." and board[a] == board[b] == board[c] for a, b, c in _LINES) else 0


def positions() -> list[str]:
    """List the positions that can come about and are not finished."""
    seen, new = set(), {"." * 9}
    while new:
        seen |= new
        new = {after for board in new for after in moves(board).values()} - seen
    return sorted(board for board in seen if moves(board))


def first_moves(agent: train.Agent) -> dict[str, int]:
    """Ask the agent for Hex after every first move who will win, and count how often it is right."""
    wins = np.array(_WINNING_FIRST_MOVES.split()) == "W"
    state = agent.env.init(jax.random.key(0))
    states = jax.vmap(agent.env.step, (None, 0))(state, jnp.arange(25))
    action, _ = agent(state)
    foreseen = np.asarray(agent(states)[1].value) < 0  # in the view of the second player
    return {
        "first moves": len(wins),
        "foreseen rightly": int((foreseen == wins).sum()),
        "own first move wins": int(wins[int(action)]),
    }


def moves_kept(agent: train.Agent) -> dict[str, int]:
    """Ask the agent for tic-tac-toe at every position and count its moves by what they do to the value."""
    boards = positions()
    states = jax.tree.map(lambda *x: jnp.stack(x), *[_state(agent.env, board) for board in boards])
    actions = np.asarray(agent(states)[0])
    before = np.array([value(board) for board in boards])
    after = np.array([-value(moves(board)[int(action)]) for board, action in zip(boards, actions)])
    return {
        "positions": len(boards),
        "not lost": int((before >= 0).sum()),
        "of these, moves that lose": int(((before >= 0) & (after < 0)).sum()),
        "moves that keep the value": int((after == before).sum()),
    }


def _state(env: Any, board: str) -> envs.State:
    return envs.from_text(env, "\n".join(" ".join(board[row : row + 3]) for row in (0, 3, 6)))


MEASURES = {envs.make("tic_tac_toe"): moves_kept, envs.make("hex(size=5)"): first_moves}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare an agent for tic-tac-toe or Hex on 5 x 5 with the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.perfect", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/tic_tac_toe")
    agent = train.load_agent(parser.parse_args(arguments).run)
    measure = next((measure for env, measure in MEASURES.items() if env == agent.env), None)
    if measure is None:
        print(f"error: `run` is of {agent.config.game!r}, of which the truth is not known here.", file=sys.stderr)
        return 2
    for what, count in measure(agent).items():
        print(f"{what:<28}{count:>6,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
