"""Boards as text and back, for games whose observation [R, C, planes] begins with a plane of stones for each player.

The planes are those of the player to move first, then of who comes next and so on.

    . . . O . . .
    . X X X . O .
    0 1 2 3 4 5 6
    O to play

X is player 0, who moves first, O player 1 and Z player 2. Where a column is a move, its number stands below; where a
cell is one, letters stand above and numbers on the left, which make its name (`envs.move_name`). The rows of a slanted
board (Hex) step to the right. Games of numbered tiles are drawn by `envs.tiles`; one without a board tells its
`caption`.
Everything here runs on the host, one state at a time.
"""

import re
from typing import Any

import numpy as np

from envs import arguments, moves, tiles
from envs.base import BoardGame, State

MARKS = "XOZ"  # of player 0, player 1 and so on

_TOLD = rf"^[ \t]*(?:([{MARKS}]) (to play|won)|(?:[{MARKS}] and )+[{MARKS}] won|to play|game over)[ \t]*$"  # `status`
_CUT_SHORT = r"^[ \t]*cut short[ \t]*$"


def to_text(env: Any, state: Any) -> str:
    """Draw one state: the board from the top row down, then who is to play or how it ended.

    Raises `TypeError` for a batch of states, `ValueError` for an observation without the planes of the players.
    """
    arguments.check_single(state)
    return "\n".join([*_board_lines(env, state), status(state)])


def _board_lines(env: Any, state: Any) -> list[str]:
    if (caption := getattr(env, "caption", None)) is not None:
        return [caption(state)]
    if (labels := tiles.labels_of(env, state)) is not None:
        return tiles.to_lines(labels)
    stones = np.moveaxis(stones_of(env, state), -1, 0)
    cells = np.select(list(stones), list(MARKS[: len(stones)]), ".")
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
    """Tell where the stones of player 0, player 1 and so on lie: [rows, columns, P] bool; errors as of `to_text`."""
    arguments.check_single(state)
    if (labels := tiles.labels_of(env, state)) is not None:
        return np.zeros((*labels.shape, env.num_players), bool)
    planes = np.asarray(env.observe(state)) > 0
    players, has_stones = env.num_players, getattr(env, "has_stones", True)
    if not has_stones or planes.ndim != 3 or planes.shape[-1] < players or players > len(MARKS):
        raise ValueError(
            f"`env` {env.name!r} is seen as {planes.shape} by {players} players, expected (rows, columns, planes) "
            f"with a plane for the stones of each, the player to move first, and at most {len(MARKS)} players."
        )
    return np.roll(planes[..., :players], int(state.to_play), axis=-1)


def status(state: Any) -> str:
    """Say who is to play, or how the game ended."""
    if state.truncated and not state.terminated:
        return "cut short"
    if len(state.rewards) == 1:
        return "game over" if state.terminated else "to play"
    if not state.terminated:
        return f"{MARKS[int(state.to_play)]} to play"
    winners = [MARKS[player] for player in np.flatnonzero(np.asarray(state.rewards) > 0)]
    # A step after the end has cleared the rewards; who won is then not told.
    return f"{' and '.join(winners)} won" if winners else "game over"


def from_text(env: BoardGame, text: str) -> State:
    """Read a position drawn as `to_text` draws it, with the names of rows and columns or without.

    Lines with anything but the players' marks, `.` and spaces, and a row's number before them, are skipped.

    Players alternate from X, so the counts say who is to play; after a swap in Hex they do not, and a line
    `X to play` or `O won` does; it must agree with the board. In games where stones are turned over or taken off
    (`turns_by_count`) that line alone says it, and who won is taken to have moved last; after `cut short`, which ends
    any game undecided, it is needed too. A finished position carries the rewards of the move that ended it, two passes
    in Go. What went before, such as the boards that may not come again, moves so far and a pass, is not told.
    Raises `ValueError` for a board of another size, one that cannot come about, one that stands otherwise than told, as
    after a loss by an illegal action, and `NotImplementedError` if positions of the game cannot be set up.
    """
    if len(env.observation_shape) < 3:
        raise ValueError(f"`env` {env.name!r} is seen as {env.observation_shape}: it has no board to read.")
    state = tiles.from_text(env, text) if hasattr(env, "labels") else _read_stones(env, text)
    return _as_told(env, text, state)


def _read_stones(env: BoardGame, text: str) -> State:
    marks = MARKS[: env.num_players]
    lines = ["".join(re.sub(r"^\s*\d+\s", "", line).split()) for line in text.splitlines()]
    rows = [line for line in lines if line and set(line) <= set(marks + ".")]
    height, width = env.observation_shape[:2]
    if [len(row) for row in rows] != [width] * height:
        raise ValueError(
            f"`text` has rows of lengths {[len(row) for row in rows]}, expected {height} of {width}: "
            f"of {', '.join(f'`{mark}`' for mark in marks)} and `.`; lines with anything else are skipped."
        )
    cells = np.array([list(row) for row in rows])
    cells = cells[::-1] if env.bottom_up else cells
    stones = np.stack([cells == mark for mark in marks], axis=-1)
    if env.turns_by_count:
        to_play = _to_play_by_count(env, text, stones)
        _check_waiting(env, stones, to_play)
    else:
        told = _told_to_play(text, len(marks))
        if told is None:
            raise ValueError(f"`text` does not say who is to play {env.name!r}: add a line such as `X to play`.")
        to_play = told
    return env.arrange(_view(stones, to_play), to_play)


def _told_to_play(text: str, players: int) -> int | None:
    """Find who is to play, or would be if the winner has moved last, 0 after a draw; None if `text` is silent."""
    told = re.search(_TOLD, text, re.MULTILINE)
    if told is None:
        return None
    return (MARKS.index(told[1]) + (told[2] == "won")) % players if told[1] else 0


def _to_play_by_count(env: BoardGame, text: str, stones: np.ndarray) -> int:
    # By the text, else by the counts. A swap hands X's first stone to O: X's lead is one less from there on.
    counts, swap = stones.sum(axis=(0, 1)).tolist(), getattr(env, "swap", False)
    least = counts[-1]
    ahead = sum(count > least for count in counts)
    told = _told_to_play(text, len(counts))
    if "game over" in text:  # whoever has a win on the board has moved last
        won = (player for player in range(len(counts)) if _has_won(env, stones, player))
        told = next(((player + 1) % len(counts) for player in won), None)
    elif told is None and swap and ahead == 0 < least and re.search(_CUT_SHORT, text, re.MULTILINE):
        raise ValueError(
            f"`text` does not say who is to play {env.name!r}, and after a swap the stones do not either: "
            "add a line such as `X to play`."
        )
    to_play = ahead if told is None else told
    swapped = swap and least > 0 and counts[0] - least == to_play - 1
    if counts != [least + (player < to_play) for player in range(len(counts))] and not swapped:
        have = ", ".join(f"{count} {mark}" for count, mark in zip(counts[:-1], MARKS))
        raise ValueError(
            f"`text` has {have} and {least} {MARKS[len(counts) - 1]} with {MARKS[to_play]} to play, expected as many "
            "of each and X to play, or one more of all who come before the one to play: X moves first."
        )
    return to_play


def _as_told(env: BoardGame, text: str, state: State) -> State:
    """End the game if `text` says so; raise `ValueError` if it stands otherwise than told."""
    told = re.search(_TOLD, text, re.MULTILINE)
    line = told[0].strip() if told else ""
    if line.endswith(("won", "game over")) and not state.terminated:
        state = env.ended(state)
    # That the game is over is all that is told after its last step, whoever won.
    if line and line != status(state) and not (line == "game over" and state.terminated):
        raise _contradiction(line, state)
    if not re.search(_CUT_SHORT, text, re.MULTILINE):
        return state
    if state.terminated:
        raise _contradiction("cut short", state)
    return env.cut_short(state)


def _contradiction(line: str, state: State) -> ValueError:
    return ValueError(f"`text` says {line!r}, but on its board it is {status(state)!r}: correct one of them.")


def _check_waiting(env: BoardGame, stones: np.ndarray, to_play: int) -> None:
    # Who did not move last cannot have won already: the game would have ended then.
    players = env.num_players
    for player in (p % players for p in range(to_play, to_play + players - 1)):
        if _has_won(env, stones, player):
            who = "who is to play" if player == to_play else "who did not move last"
            raise ValueError(f"`text` has a win of {MARKS[player]}, {who}: the game ended before.")


def _has_won(env: BoardGame, stones: np.ndarray, player: int) -> bool:
    """Tell whether the stones are a win of `player`, had they moved last."""
    following = (player + 1) % env.num_players
    return bool(env.arrange(_view(stones, following), following).rewards[player] > 0)


def _view(stones: np.ndarray, player: int) -> np.ndarray:
    # From player 0's stones, player 1's and so on to `player`'s, the next one's and so on.
    return np.roll(stones, -player, axis=-1)
