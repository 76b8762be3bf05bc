"""Boards as pictures: `to_svg` draws a position of any game whose observation begins with the players' stones.

Numbered tiles are drawn by `envs.tiles`.

A board is where its cells and its moves are: on tic-tac-toe and Hex a move is its cell, on Connect Four it is a
place above its column, on Go a crossing of lines, and moves that are not on the board (`action_layout`) stand by their
names below it. The rest, stones and what is told of moves, is the same for all. A page can restyle every colour, which
`envs.svg` lists.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from envs import svg, tiles
from envs.moves import column_letters, layout_of, move_name, num_on_board
from envs.render import MARKS, status, stones_of

_PITCH = 40.0  # between neighbouring cells
_RADIUS = 15.5  # of a stone
_LETTERS = 13.0  # their size
_LEAST_SHARE = 0.005

_PLAYERS = ("first", "second", "third")

_SQUARE = _PITCH / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
_ROW_HEIGHT = _PITCH * 3**0.5 / 2  # of hexagons, which reach two thirds of it up and down
_HEXAGON = np.array([[0, -2 / 3], [0.5, -1 / 3], [0.5, 1 / 3], [0, 2 / 3], [-0.5, 1 / 3], [-0.5, -1 / 3]])
_HEXAGON = _HEXAGON * [_PITCH, _ROW_HEIGHT]


def to_svg(env: Any, state: Any, *, shares: Any = None, heat: Any = None, last: int | None = None) -> str:
    """Draw one state as an `<svg>` element with a viewBox and no size of its own.

    `shares` [A], from 0 to 1, puts a dot on each move, its area in proportion; below half a percent there is none.
    `heat` [A] colours each move's place on a scale from 0 over 0.5, which is neutral, to 1. NaN leaves a move out of
    either. Moves have their number in percent written on them, the heat's where there are both; places under a stone
    show neither, nor do moves beside the board that are not legal. `last` is the action just played: its stone is
    marked, if it is a move on the board or left a single stone, as a swap does. Raises `TypeError` for a batch of
    states, `ValueError` for an observation without stones, numbers of another length or out of range, and a `last` on
    the board that left no stone.
    """
    stones = stones_of(env, state)
    shares, heat = _per_move(env, "shares", shares), _per_move(env, "heat", heat)
    has_numbers = bool(np.isfinite([shares, heat]).any())
    board = _board(env, np.asarray(stones.any(axis=-1)), has_numbers)
    beside = np.arange(env.num_actions) >= num_on_board(env)
    board = _with_others(board, env, np.flatnonzero(beside & env.legal_action_mask(state) & has_numbers))
    title = f"{env.name.replace('_', ' ')}, {status(state)}: {_contents(env, stones)}"

    view = " ".join(svg.number(x) for x in (*board.corner, *board.extent))
    root = svg.element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=view, role="img")
    ElementTree.SubElement(root, "title").text = title
    root.append(svg.rectangle(board.corner, board.extent, rx=8, fill=svg.colour("board")))
    root.extend(board.ground)
    root.extend(tiles.drawn(env, state, board.cells))
    for action in np.flatnonzero(board.open & np.isfinite(heat)):
        root.append(_heat(board, board.places[action], heat[action]))
    for row, column, player in np.argwhere(stones):
        root.append(_stone(board, board.cells[row, column], player))
    for action in np.flatnonzero(board.open & (shares >= _LEAST_SHARE)):
        radius = _PITCH / 2 * shares[action] ** 0.5
        root.append(svg.circle(board.places[action], radius, "share", fill=svg.colour("accent"), fill_opacity=0.6))
    for action in np.flatnonzero(board.open):
        root.extend(_percentage(board.places[action], shares[action], heat[action]))
    cell = None if last is None else _cell_of(env, stones, last)
    if cell is not None:
        root.append(_mark(board, board.cells[cell]))
    return ElementTree.tostring(root, encoding="unicode")


def _contents(env: Any, stones: np.ndarray) -> str:
    """Say what lies on the board: `3 stones of X, 2 of O`."""
    if hasattr(env, "labels"):
        return "numbered tiles"
    first, *others = (f"{count} of {mark}" for count, mark in zip(stones.sum(axis=(0, 1)), MARKS))
    return ", ".join([first.replace(" ", " stones ", 1), *others])


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Board:
    """Where things are: x to the right, y down."""

    cells: np.ndarray  # [R, C, 2]: middles
    places: np.ndarray  # [A, 2]: middles of what stands for each move; those on the board first
    open: np.ndarray  # [A] bool: it is drawn and no stone lies there, so there is room for numbers
    outline: np.ndarray  # [K, 2]: corners of a place, from its middle
    corner: np.ndarray  # [2]: the picture's top left
    extent: np.ndarray  # [2]: its width and height
    ground: list[ElementTree.Element]  # what lies under the stones
    marks: bool = False  # stones are the marks of text boards: X, O and Z


def _board(env: Any, taken: np.ndarray, has_numbers: bool) -> _Board:
    """Lay out the board itself and the moves on it; `taken` [R, C] tells where stones lie."""
    on = layout_of(env).on
    if getattr(env, "slanted", False):
        board = _hex_board(taken, has_names=on == "cells")
    else:
        rows, columns = np.indices(taken.shape, float)
        cells = _PITCH * np.stack([columns, rows[::-1] if getattr(env, "bottom_up", False) else rows], axis=-1)
        drops = on == "columns"
        board = _drop_board(cells, has_numbers) if drops else _square_board(cells, taken, has_names=on == "cells")
        if getattr(env, "on_points", False):
            board = _line_board(board)
    count = num_on_board(env)
    return dataclasses.replace(board, places=board.places[:count], open=board.open[:count])


def _with_others(board: _Board, env: Any, shown: np.ndarray) -> _Board:
    """Give the moves that are not on the board a place: those of `shown` in lines below it, beside their names."""
    count = len(board.places)
    places, open_ = np.zeros((env.num_actions, 2)), np.zeros(env.num_actions, bool)
    places[:count], open_[:count], open_[shown] = board.places, board.open, True
    if not len(shown):
        return dataclasses.replace(board, places=places, open=open_)
    names = [move_name(env, action) for action in shown]
    widths = 0.62 * _LETTERS * np.array([len(name) for name in names])
    room = np.array([1.2 * _PITCH + np.max(widths), 1.1 * _PITCH])  # of each
    across = max(int(board.extent[0] // room[0]), 1)
    lines, turns = divmod(np.arange(len(shown)), across)
    first = board.corner + np.array([0.55 * _PITCH, board.extent[1] + 0.5 * _PITCH])
    places[shown] = first + np.stack([turns, lines], axis=-1) * room
    labels = [
        _label((x + 0.6 * _PITCH + width / 2, y), name) for (x, y), name, width in zip(places[shown], names, widths)
    ]
    return dataclasses.replace(
        board,
        places=places,
        open=open_,
        extent=np.array([max(board.extent[0], room[0]), board.extent[1] + room[1] * (lines[-1] + 1)]),
        ground=[*board.ground, *labels],
    )


def _square_board(cells: np.ndarray, taken: np.ndarray, has_names: bool) -> _Board:
    low, high = cells.min(axis=(0, 1)) - _PITCH / 2, cells.max(axis=(0, 1)) + _PITCH / 2
    x_lines = [[[x, low[1] + 4], [x, high[1] - 4]] for x in cells[0, 1:, 0] - _PITCH / 2]
    y_lines = [[[low[0] + 4, y], [high[0] - 4, y]] for y in np.sort(cells[:, 0, 1])[1:] - _PITCH / 2]
    margin = np.array([0.55, 0.5]) * _PITCH * has_names
    letters = [_label((x, low[1] - 0.2 * _PITCH), column_letters(i)) for i, x in enumerate(cells[0, :, 0])]
    numbers = [_label((low[0] - 0.25 * _PITCH, y), str(i)) for i, y in enumerate(cells[:, 0, 1], start=1)]
    return _Board(
        cells=cells,
        places=cells.reshape(-1, 2),
        open=~taken.reshape(-1),
        outline=0.92 * _SQUARE,
        corner=low - 6 - margin,
        extent=high - low + 12 + margin,
        ground=[
            *(svg.path(line, "line", stroke=svg.colour("line"), width=2) for line in x_lines + y_lines),
            *(letters + numbers if has_names else []),
        ],
        marks=True,
    )


def _line_board(board: _Board) -> _Board:
    # The same places, but lines run through them, and stones are round.
    cells = board.cells
    lines = [line[[0, -1]] for line in (*cells, *cells.swapaxes(0, 1))]
    grid = [svg.path(line, "line", stroke=svg.colour("line"), width=1.5) for line in lines]
    stars = [svg.circle(cells[row, column], 3, "star", fill=svg.colour("line")) for row, column in _stars(len(cells))]
    names = [element for element in board.ground if element.get("class") == "label"]
    return dataclasses.replace(board, ground=[*grid, *stars, *names], marks=False)


def _stars(size: int) -> list[tuple[int, int]]:
    """Choose the points that are marked by custom: near the corners, in the middle, and on 19 lines by the sides."""
    if size < 7:
        return []
    edge, middle = (2 if size < 12 else 3), size // 2
    corners = [(row, column) for row in (edge, size - 1 - edge) for column in (edge, size - 1 - edge)]
    sides = [(edge, middle), (middle, edge), (middle, size - 1 - edge), (size - 1 - edge, middle)]
    return [*corners, *[(middle, middle)] * (size % 2), *sides * (size == 19)]


def _drop_board(cells: np.ndarray, has_numbers: bool) -> _Board:
    # Moves have a row of their own above the top one, and the columns' numbers are below the bottom one.
    top, bottom = cells[..., 1].min(), cells[..., 1].max()
    columns = cells[0, :, 0]
    low, high = np.array([columns[0], top]) - _PITCH / 2, np.array([columns[-1], bottom]) + _PITCH / 2
    frame = svg.rectangle(low, high - low, rx=6, fill=svg.colour("line"), fill_opacity=0.55)
    holes = [svg.circle(cell, _RADIUS, "hole", fill=svg.colour("board")) for cell in cells.reshape(-1, 2)]
    numbers = [_label((x, bottom + 0.78 * _PITCH), str(i)) for i, x in enumerate(columns)]
    places = np.stack([columns, np.full(len(columns), top - 1.05 * _PITCH)], axis=-1)
    above, below = 6 + 1.05 * _PITCH * has_numbers, 0.6 * _PITCH
    return _Board(
        cells=cells,
        places=places,
        open=np.ones(len(columns), bool),
        outline=0.9 * _SQUARE,
        corner=low - [6, above],
        extent=high - low + [12, above + below],
        ground=[frame, *holes, *numbers],
    )


def _hex_board(taken: np.ndarray, has_names: bool) -> _Board:
    rows, columns = np.indices(taken.shape, float)
    cells = np.stack([_PITCH * (columns + rows / 2), _ROW_HEIGHT * rows], axis=-1)
    sides = [  # a line of cells, the corners of each that lie outside, the owner; the first player's on top
        (cells[:, 0], [5, 4], 1),
        (cells[:, -1], [1, 2], 1),
        (cells[0], [5, 0, 1], 0),
        (cells[-1], [4, 3, 2], 0),
    ]
    edges = [
        svg.path(
            (line[:, None] + _HEXAGON[corners]).reshape(-1, 2), "edge", stroke=svg.colour(_PLAYERS[owner]), width=13
        )
        for line, corners, owner in sides
    ]
    hexagons = [
        svg.path(cell + _HEXAGON, "cell", closed=True, fill=svg.colour("board"), stroke=svg.colour("line"), width=1.2)
        for cell in cells.reshape(-1, 2)
    ]
    letters = [_label(cell - [0, 1.07 * _ROW_HEIGHT], column_letters(i)) for i, cell in enumerate(cells[0])]
    numbers = [_label(cell - [0.95 * _PITCH, 0], str(i)) for i, cell in enumerate(cells[:, 0], start=1)]
    low, high = cells[0, 0] - [1.4 * _PITCH, 1.45 * _ROW_HEIGHT], cells[-1, -1] + [_PITCH, 1.15 * _ROW_HEIGHT]
    return _Board(
        cells=cells,
        places=cells.reshape(-1, 2),
        open=~taken.reshape(-1),
        outline=_HEXAGON,
        corner=low,
        extent=high - low,
        ground=[*edges, *hexagons, *(letters + numbers if has_names else [])],
    )


def _cell_of(env: Any, stones: np.ndarray, action: int) -> tuple[int, int] | None:
    """Find the cell of the stone that `action` has just put there; None if it is not on the board and tells none."""
    taken = np.asarray(stones.any(axis=-1))
    if not 0 <= action < env.num_actions:
        raise ValueError(f"`last` is {action}, expected an action from 0 to {env.num_actions - 1}.")
    if action >= num_on_board(env):
        return divmod(int(np.argmax(taken)), taken.shape[1]) if taken.sum() == 1 else None
    if layout_of(env).on == "columns":
        cell = int(taken[:, action].sum()) - 1, int(action)
    else:
        cell = divmod(int(action), taken.shape[1])
    if cell[0] < 0 or not taken[cell]:
        raise ValueError(
            f"`last` is {action}, but no stone lies on {move_name(env, action)}: pass the action that led to `state`."
        )
    return cell


def _per_move(env: Any, name: str, given: Any) -> np.ndarray:
    if given is None:
        return np.full(env.num_actions, np.nan)
    numbers = np.asarray(given, np.float64)
    if numbers.shape != (env.num_actions,):
        raise ValueError(f"`{name}` has shape {numbers.shape}, expected ({env.num_actions},): one number an action.")
    if ((numbers < 0) | (numbers > 1 + 1e-6)).any():
        raise ValueError(f"`{name}` has numbers outside 0 to 1, from {np.nanmin(numbers)} to {np.nanmax(numbers)}.")
    return numbers


def _label(middle: Any, words: str) -> ElementTree.Element:
    return svg.text(middle, words, _LETTERS, "label")


def _percentage(middle: np.ndarray, share: float, warmth: float) -> Iterator[ElementTree.Element]:
    if np.isfinite(warmth):
        yield svg.text(middle, f"{100 * warmth:.0f}", _LETTERS, "percent")
    elif share >= _LEAST_SHARE:
        yield svg.text(middle, f"{max(100 * share, 1):.0f}", _LETTERS, "percent")


def _stone(board: _Board, middle: np.ndarray, player: int) -> ElementTree.Element:
    name, colour = f"stone {_PLAYERS[player]}", svg.colour(_PLAYERS[player])
    if not board.marks:
        return svg.circle(middle, _RADIUS, name, fill=colour)
    if player == 1:
        return svg.circle(middle, 0.8 * _RADIUS, name, fill="none", stroke=colour, stroke_width=5)
    arms = 0.75 * _RADIUS * np.array([[-1, -1], [1, 1], [1, -1], [-1, 1]])
    arms, pen = (arms, "MLML") if player == 0 else (arms[[0, 2, 3, 1]], "MLLL")
    return svg.path(middle + arms, name, stroke=colour, width=5, pen=pen)


def _heat(board: _Board, middle: np.ndarray, warmth: float) -> ElementTree.Element:
    strength = 0.75 * abs(2 * warmth - 1)
    colour = svg.colour("high" if warmth > 0.5 else "low")
    return svg.path(middle + board.outline, "heat", closed=True, fill=colour, fill_opacity=strength)


def _mark(board: _Board, middle: np.ndarray) -> ElementTree.Element:
    if board.marks:
        return svg.path(middle + board.outline, "last", closed=True, stroke=svg.colour("accent"), width=2)
    return svg.circle(middle, 0.45 * _RADIUS, "last", fill="none", stroke=svg.colour("board"), stroke_width=3)
