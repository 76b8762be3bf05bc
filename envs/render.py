"""Boards as text and back, for games whose observation is own stones and the other's, [R, C, 2].

    . . . O . . .
    . X X X . O .
    0 1 2 3 4 5 6
    O to play

X is player 0, who moves first, and O player 1. Column numbers stand below where a column is an action.
Everything here runs on the host, one state at a time.
"""

from typing import Any

import numpy as np

from envs.base import BoardGame, State

_MARKS = "XO"


def to_text(env: Any, state: Any) -> str:
    """Draw one state: the board from the top row down, then who is to play or how it ended.

    Raises `ValueError` for a batch of states or an observation that is not two planes.
    """
    if np.ndim(state.to_play):
        raise ValueError(
            f"`state` is a batch of shape {np.shape(state.to_play)}, expected one state: "
            "take one with `jax.tree.map(lambda x: x[0], state)`."
        )
    cells = _cells(env, state)
    rows = cells[::-1] if getattr(env, "bottom_up", False) else cells
    lines = [" ".join(row) for row in rows]
    if env.num_actions == cells.shape[1]:
        lines.append(" ".join(str(column % 10) for column in range(cells.shape[1])))
    return "\n".join([*lines, _status(state)])


def from_text(env: BoardGame, text: str) -> State:
    """Read a position drawn as `to_text` draws it; lines with anything but `X`, `O`, `.` and spaces are skipped.

    Players alternate from X, so the counts say who is to play. A finished position carries the rewards of
    the move that ended it. Raises `ValueError` for a board of another size or one that cannot come about.
    """
    lines = ["".join(line.split()) for line in text.splitlines()]
    rows = [line for line in lines if line and set(line) <= set(_MARKS + ".")]
    height, width, _ = env.observation_shape
    if [len(row) for row in rows] != [width] * height:
        raise ValueError(f"`text` has rows of lengths {[len(row) for row in rows]}, expected {height} of {width}.")
    cells = np.array([list(row) for row in rows])
    cells = cells[::-1] if env.bottom_up else cells
    stones = np.stack([cells == mark for mark in _MARKS], axis=-1)
    first, second = stones.sum(axis=(0, 1))
    if first - second not in (0, 1):
        raise ValueError(f"`text` has {first} X and {second} O, expected as many or one X more: X moves first.")
    to_play = int(first - second)
    _check_waiting(env, stones, to_play)
    return env.arrange(_view(stones, to_play), to_play)


def _check_waiting(env: BoardGame, stones: np.ndarray, to_play: int) -> None:
    # The player to move cannot have won already: were it their move that came last, nobody would be to move.
    theirs = _view(stones, 1 - to_play)
    if (np.asarray(env.arrange(theirs, 1 - to_play).rewards) > 0).any():
        raise ValueError(f"`text` has a line of {_MARKS[to_play]}, who is to play: the game ended before.")


def _cells(env: Any, state: Any) -> np.ndarray:
    planes = np.asarray(env.observe(state)) > 0
    if planes.ndim != 3 or planes.shape[-1] != 2:
        raise ValueError(f"`env` {env.name!r} is seen as {planes.shape}, expected (rows, columns, 2) to draw it.")
    stones = _view(planes, int(state.to_play))
    return np.select([stones[..., 0], stones[..., 1]], list(_MARKS), ".")


def _view(planes: np.ndarray, player: int) -> np.ndarray:
    # From [X, O] to [own, other's] for `player`, or back.
    return planes[..., ::-1] if player else planes


def _status(state: Any) -> str:
    if state.truncated and not state.terminated:
        return "cut short"
    if not state.terminated:
        return f"{_MARKS[int(state.to_play)]} to play"
    winner = int(np.argmax(state.rewards))
    # A step after the end has cleared the rewards; who won is then not told.
    return f"{_MARKS[winner]} won" if state.rewards[winner] > 0 else "game over"
