"""Boards as text and back, for games whose observation [R, C, planes] begins with own stones and the other's.

    . . . O . . .
    . X X X . O .
    0 1 2 3 4 5 6
    O to play

X is player 0, who moves first, and O player 1. Where a column is a move, its number stands below; where a cell is
one, letters stand above and numbers on the left, which make its name (`envs.move_name`). The rows of a slanted board
(Hex) step to the right. Games of numbered tiles are drawn by `envs.tiles`; one without a board tells its `caption`.
Everything here runs on the host, one state at a time.
"""

import re
from typing import Any

import numpy as np

from envs import moves, tiles
from envs.base import BoardGame, State

MARKS = "XO"  # of player 0 and player 1


def to_text(env: Any, state: Any) -> str:
    """Draw one state: the board from the top row down, then who is to play or how it ended.

    Raises `ValueError` for a batch of states or an observation without the planes of the two.
    """
    _check_single(state)
    return "\n".join([*_board_lines(env, state), status(state)])


def _board_lines(env: Any, state: Any) -> list[str]:
    if (caption := getattr(env, "caption", None)) is not None:
        return [caption(state)]
    if (labels := tiles.labels_of(env, state)) is not None:
        return tiles.to_lines(labels)
    stones = stones_of(env, state)
    cells = np.select([stones[..., 0], stones[..., 1]], list(MARKS), ".")
    above, left, below = _names_around(env, *cells.shape)
    step = " " if getattr(env, "slanted", False) else ""
    order = range(len(cells))[:: -1 if getattr(env, "bottom_up", False) else 1]
    rows = [left[row] + step * index + " ".join(cells[row]) for index, row in enumerate(order)]
    return [*above, *rows, *below]


def _names_around(env: Any, height: int, width: int) -> tuple[list[str], list[str], list[str]]:
    """Write what names the moves: lines above the board, what stands on the left of each row, lines below."""
    on = moves.layout_of(env).on
    if on == "cells":
        digits = len(str(height))
        letters = " ".join(moves.column_letters(column)[-1] for column in range(width))
        return [" " * (digits + 1) + letters], [f"{row:>{digits}} " for row in range(1, height + 1)], []
    numbers = " ".join(str(column % 10) for column in range(width))
    return [], [""] * height, [numbers] if on == "columns" else []


def stones_of(env: Any, state: Any) -> np.ndarray:
    """Tell where the stones of player 0 and player 1 lie: [rows, columns, 2] bool; errors as of `to_text`."""
    _check_single(state)
    if (labels := tiles.labels_of(env, state)) is not None:
        return np.zeros((*labels.shape, 2), bool)
    planes = np.asarray(env.observe(state)) > 0
    if planes.ndim != 3 or planes.shape[-1] < 2:
        raise ValueError(
            f"`env` {env.name!r} is seen as {planes.shape}, expected (rows, columns, planes) with the stones of "
            "the player to move and the other's in the first two planes."
        )
    return _view(planes[..., :2], int(state.to_play))


def _check_single(state: Any) -> None:
    if np.ndim(state.to_play):
        raise ValueError(
            f"`state` is a batch of shape {np.shape(state.to_play)}, expected one state: "
            "take one with `jax.tree.map(lambda x: x[0], state)`."
        )


def status(state: Any) -> str:
    """Say who is to play, or how the game ended."""
    if state.truncated and not state.terminated:
        return "cut short"
    if len(state.rewards) == 1:
        return "game over" if state.terminated else "to play"
    if not state.terminated:
        return f"{MARKS[int(state.to_play)]} to play"
    winner = int(np.argmax(state.rewards))
    # A step after the end has cleared the rewards; who won is then not told.
    return f"{MARKS[winner]} won" if state.rewards[winner] > 0 else "game over"


def from_text(env: BoardGame, text: str) -> State:
    """Read a position drawn as `to_text` draws it, with the names of rows and columns or without.

    Lines with anything but `X`, `O`, `.` and spaces, and a row's number before them, are skipped.

    Players alternate from X, so the counts say who is to play; after a swap in Hex they do not, and a line
    `X to play` or `O won` does; it must agree with the board. A finished position carries the rewards of the move that
    ended it. A game that was cut short is read as one that goes on.
    Raises `ValueError` for a board of another size, one that cannot come about or one that stands otherwise than told.
    """
    if len(env.observation_shape) < 3:
        raise ValueError(f"`env` {env.name!r} is seen as {env.observation_shape}: it has no board to read.")
    if hasattr(env, "labels"):
        state = tiles.from_text(env, text)
        _check_told(text, state)
        return state
    lines = ["".join(re.sub(r"^\s*\d+\s", "", line).split()) for line in text.splitlines()]
    rows = [line for line in lines if line and set(line) <= set(MARKS + ".")]
    height, width = env.observation_shape[:2]
    if [len(row) for row in rows] != [width] * height:
        raise ValueError(f"`text` has rows of lengths {[len(row) for row in rows]}, expected {height} of {width}.")
    cells = np.array([list(row) for row in rows])
    cells = cells[::-1] if env.bottom_up else cells
    stones = np.stack([cells == mark for mark in MARKS], axis=-1)
    first, second = stones.sum(axis=(0, 1))
    to_play = _to_play(text, int(first), int(second), swap=getattr(env, "swap", False))
    _check_waiting(env, stones, to_play)
    state = env.arrange(_view(stones, to_play), to_play)
    _check_told(text, state)
    return state


def _to_play(text: str, first: int, second: int, swap: bool) -> int:
    # By the text, else by the counts. A swap hands X's first stone to O: X's lead is one less from there on.
    told = re.search(r"^\s*([XO]) (to play|won)\s*$", text, re.MULTILINE)
    if told is None:
        to_play = min(max(first - second, 0), 1)
    else:
        to_play = MARKS.index(told[1]) ^ (told[2] == "won")
    swapped = swap and second > 0 and first - second == to_play - 1
    if first - second != to_play and not swapped:
        raise ValueError(
            f"`text` has {first} X and {second} O with {MARKS[to_play]} to play, expected as many "
            "and X to play, or one X more and O to play: X moves first."
        )
    return to_play


def _check_told(text: str, state: State) -> None:
    told = re.search(r"^[ \t]*((?:[XO] )?to play|[XO] won|game over)[ \t]*$", text, re.MULTILINE)
    # That the game is over is all that is told after its last step, whoever won.
    if told and told[1] != status(state) and not (told[1] == "game over" and state.terminated):
        raise ValueError(f"`text` says {told[1]!r}, but on its board it is {status(state)!r}: correct one of them.")


def _check_waiting(env: BoardGame, stones: np.ndarray, to_play: int) -> None:
    # The player to move cannot have won already: were it their move that came last, nobody would be to move.
    theirs = _view(stones, 1 - to_play)
    if (np.asarray(env.arrange(theirs, 1 - to_play).rewards) > 0).any():
        raise ValueError(f"`text` has a win of {MARKS[to_play]}, who is to play: the game ended before.")


def _view(planes: np.ndarray, player: int) -> np.ndarray:
    # From [X, O] to [own, other's] for `player`, or back.
    return planes[..., ::-1] if player else planes
