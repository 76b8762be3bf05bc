"""Boards as pictures: `to_svg` draws a position of any game whose observation begins with the two players' stones.

A board is where its cells and its moves are: on tic-tac-toe and Hex a move is its cell, on Connect Four it is a
place above its column. The rest, stones and what is told of moves, is the same for all. Colours are CSS custom
properties with fallbacks, so that a page can restyle its pictures, for a dark mode say:

    --board --line --ink     the ground, the lines on it, and all writing
    --first --second         stones and edges of the two players
    --accent                 what is pointed out
    --high --low             the two ends of the heat
"""

import dataclasses
import string
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from envs.render import status, stones_of

_PITCH = 40.0  # between neighbouring cells
_RADIUS = 15.5  # of a stone
_LEAST_SHARE = 0.005

_FALLBACKS = {
    "board": "#f1e8d4",
    "line": "#a8987a",
    "ink": "#26221a",
    "first": "#cc4430",
    "second": "#2a5fb5",
    "accent": "#f0a818",
    "high": "#2f9a4c",
    "low": "#9440a8",
}
_PLAYERS = ("first", "second")

_SQUARE = _PITCH / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
_ROW_HEIGHT = _PITCH * 3**0.5 / 2  # of hexagons, which reach two thirds of it up and down
_HEXAGON = np.array([[0, -2 / 3], [0.5, -1 / 3], [0.5, 1 / 3], [0, 2 / 3], [-0.5, 1 / 3], [-0.5, -1 / 3]])
_HEXAGON = _HEXAGON * [_PITCH, _ROW_HEIGHT]


def to_svg(env: Any, state: Any, *, shares: Any = None, heat: Any = None, last: int | None = None) -> str:
    """Draw one state as an `<svg>` element with a viewBox and no size of its own.

    `shares` [A], from 0 to 1, puts a dot on each move, its area in proportion; below half a percent there is none.
    `heat` [A] colours each move's place on a scale from 0 over 0.5, which is neutral, to 1. NaN leaves a move out of
    either. Moves have their number in percent written on them, the heat's where there are both; places under a stone
    show neither. `last` is the action just played: its stone is marked. Raises `ValueError` for a batch of states, an
    observation without stones, numbers of another length or out of range, and a `last` that left no stone.
    """
    stones = stones_of(env, state)
    shares, heat = _per_move(env, "shares", shares), _per_move(env, "heat", heat)
    board = _board(env, state, stones, has_numbers=bool(np.isfinite([shares, heat]).any()))
    first, second = stones.sum(axis=(0, 1))
    title = f"{env.name.replace('_', ' ')}, {status(state)}: {first} stones of X, {second} of O"

    view = " ".join(_number(x) for x in (*board.corner, *board.extent))
    svg = _element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=view, role="img")
    ElementTree.SubElement(svg, "title").text = title
    svg.append(_element("rect", **_box(board.corner, board.extent), rx=8, fill=_colour("board")))
    svg.extend(board.ground)
    for action in np.flatnonzero(board.open & np.isfinite(heat)):
        svg.append(_heat(board, board.places[action], heat[action]))
    for row, column, player in np.argwhere(stones):
        svg.append(_stone(board, board.cells[row, column], player))
    for action in np.flatnonzero(board.open & (shares >= _LEAST_SHARE)):
        radius = _PITCH / 2 * shares[action] ** 0.5
        svg.append(_circle(board.places[action], radius, "share", fill=_colour("accent"), fill_opacity=0.6))
    for action in np.flatnonzero(board.open):
        svg.extend(_percentage(board.places[action], shares[action], heat[action]))
    if last is not None:
        svg.append(_mark(board, board.cells[_cell_of(env, stones, last)]))
    return ElementTree.tostring(svg, encoding="unicode")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Board:
    """Where things are: x to the right, y down."""

    cells: np.ndarray  # [R, C, 2]: middles
    places: np.ndarray  # [A, 2]: middles of what stands for each move
    open: np.ndarray  # [A] bool: no stone lies there, so there is room for numbers
    outline: np.ndarray  # [K, 2]: corners of a place, from its middle
    corner: np.ndarray  # [2]: the picture's top left
    extent: np.ndarray  # [2]: its width and height
    ground: list[ElementTree.Element]  # what lies under the stones
    marks: bool = False  # stones are crosses and rings


def _board(env: Any, state: Any, stones: np.ndarray, has_numbers: bool) -> _Board:
    taken = np.asarray(stones.any(axis=-1))
    if getattr(env, "slanted", False):
        can_swap = env.num_actions > taken.size and bool(env.legal_action_mask(state)[-1])
        return _hex_board(env, taken, can_swap and has_numbers)
    rows, columns = np.indices(taken.shape, float)
    cells = _PITCH * np.stack([columns, rows[::-1] if getattr(env, "bottom_up", False) else rows], axis=-1)
    return _drop_board(cells, has_numbers) if env.num_actions == taken.shape[1] else _square_board(cells, taken)


def _square_board(cells: np.ndarray, taken: np.ndarray) -> _Board:
    low, high = cells[0, 0] - _PITCH / 2, cells[-1, -1] + _PITCH / 2
    x_lines = [[[x, low[1] + 4], [x, high[1] - 4]] for x in cells[0, 1:, 0] - _PITCH / 2]
    y_lines = [[[low[0] + 4, y], [high[0] - 4, y]] for y in cells[1:, 0, 1] - _PITCH / 2]
    return _Board(
        cells=cells,
        places=cells.reshape(-1, 2),
        open=~taken.reshape(-1),
        outline=0.92 * _SQUARE,
        corner=low - 6,
        extent=high - low + 12,
        ground=[_path(line, "line", stroke=_colour("line"), width=2) for line in x_lines + y_lines],
        marks=True,
    )


def _drop_board(cells: np.ndarray, has_numbers: bool) -> _Board:
    # Moves have a row of their own above the top one, and the columns' numbers are below the bottom one.
    top, bottom = cells[..., 1].min(), cells[..., 1].max()
    columns = cells[0, :, 0]
    low, high = np.array([columns[0], top]) - _PITCH / 2, np.array([columns[-1], bottom]) + _PITCH / 2
    frame = _element("rect", **_box(low, high - low), rx=6, fill=_colour("line"), fill_opacity=0.55)
    holes = [_circle(cell, _RADIUS, "hole", fill=_colour("board")) for cell in cells.reshape(-1, 2)]
    numbers = [_text((x, bottom + 0.78 * _PITCH), str(i), 13, "label") for i, x in enumerate(columns)]
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


def _hex_board(env: Any, taken: np.ndarray, shows_swap: bool) -> _Board:
    rows, columns = np.indices(taken.shape, float)
    cells = np.stack([_PITCH * (columns + rows / 2), _ROW_HEIGHT * rows], axis=-1)
    sides = [  # a line of cells, the corners of each that lie outside, the owner; the first player's on top
        (cells[:, 0], [5, 4], 1),
        (cells[:, -1], [1, 2], 1),
        (cells[0], [5, 0, 1], 0),
        (cells[-1], [4, 3, 2], 0),
    ]
    edges = [
        _path((line[:, None] + _HEXAGON[corners]).reshape(-1, 2), "edge", stroke=_colour(_PLAYERS[owner]), width=13)
        for line, corners, owner in sides
    ]
    hexagons = [
        _path(cell + _HEXAGON, "cell", closed=True, fill=_colour("board"), stroke=_colour("line"), width=1.2)
        for cell in cells.reshape(-1, 2)
    ]
    letters = [
        _text(cell - [0, 1.07 * _ROW_HEIGHT], letter, 13, "label")
        for cell, letter in zip(cells[0], string.ascii_lowercase)
    ]
    numbers = [_text(cell - [0.95 * _PITCH, 0], str(i), 13, "label") for i, cell in enumerate(cells[:, 0], 1)]
    # The swap is an action after the cells; its place is below them.
    swap = np.array([cells[0, 0, 0], cells[-1, 0, 1] + 1.6 * _ROW_HEIGHT])
    label = [_text((swap[0] + 1.1 * _PITCH, swap[1]), "swap", 13, "label")] if shows_swap else []
    low, high = cells[0, 0] - [1.4 * _PITCH, 1.45 * _ROW_HEIGHT], cells[-1, -1] + [_PITCH, 1.15 * _ROW_HEIGHT]
    if shows_swap:
        high[1] = swap[1] + 0.9 * _ROW_HEIGHT
    return _Board(
        cells=cells,
        places=np.concatenate([cells.reshape(-1, 2), swap[None]])[: env.num_actions],
        open=np.append(~taken, shows_swap)[: env.num_actions],
        outline=_HEXAGON,
        corner=low,
        extent=high - low,
        ground=[*edges, *hexagons, *letters, *numbers, *label],
    )


def _cell_of(env: Any, stones: np.ndarray, action: int) -> tuple[int, int]:
    """Find the cell of the stone that `action` has just put there."""
    taken = np.asarray(stones.any(axis=-1))
    if not 0 <= action < env.num_actions:
        raise ValueError(f"`last` is {action}, expected an action from 0 to {env.num_actions - 1}.")
    if env.num_actions == taken.shape[1]:
        cell = int(taken[:, action].sum()) - 1, int(action)
    elif action < taken.size:
        cell = divmod(int(action), taken.shape[1])
    else:
        # A swap leaves a single stone.
        cell = divmod(int(np.argmax(taken)), taken.shape[1])
    if cell[0] < 0 or not taken[cell]:
        raise ValueError(f"`last` is {action}, but no stone lies there: pass the action that led to `state`.")
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


def _percentage(middle: np.ndarray, share: float, warmth: float) -> Iterator[ElementTree.Element]:
    if np.isfinite(warmth):
        yield _text(middle, f"{100 * warmth:.0f}", 13, "percent")
    elif share >= _LEAST_SHARE:
        yield _text(middle, f"{max(100 * share, 1):.0f}", 13, "percent")


def _stone(board: _Board, middle: np.ndarray, player: int) -> ElementTree.Element:
    name, colour = f"stone {_PLAYERS[player]}", _colour(_PLAYERS[player])
    if not board.marks:
        return _circle(middle, _RADIUS, name, fill=colour)
    if player == 0:
        arms = 0.75 * _RADIUS * np.array([[-1, -1], [1, 1], [1, -1], [-1, 1]])
        return _path(middle + arms, name, stroke=colour, width=5, pen="MLML")
    return _circle(middle, 0.8 * _RADIUS, name, fill="none", stroke=colour, stroke_width=5)


def _heat(board: _Board, middle: np.ndarray, warmth: float) -> ElementTree.Element:
    strength = 0.75 * abs(2 * warmth - 1)
    colour = _colour("high" if warmth > 0.5 else "low")
    return _path(middle + board.outline, "heat", closed=True, fill=colour, fill_opacity=strength)


def _mark(board: _Board, middle: np.ndarray) -> ElementTree.Element:
    if board.marks:
        return _path(middle + board.outline, "last", closed=True, stroke=_colour("accent"), width=2)
    return _circle(middle, 0.45 * _RADIUS, "last", fill="none", stroke=_colour("board"), stroke_width=3)


# --- SVG


def _element(tag: str, **attributes: Any) -> ElementTree.Element:
    """Make an element; `_` stands for `-` in names, and `class_` is `class`."""
    written = {name.rstrip("_").replace("_", "-"): _number(value) for name, value in attributes.items()}
    return ElementTree.Element(tag, written)


def _number(value: Any) -> str:
    return value if isinstance(value, str) else f"{round(float(value), 2):g}"


def _colour(name: str) -> str:
    return f"var(--{name}, {_FALLBACKS[name]})"


def _box(corner: np.ndarray, extent: np.ndarray) -> dict[str, Any]:
    return dict(zip(("x", "y", "width", "height"), (*corner, *extent)))


def _circle(middle: np.ndarray, radius: float, name: str, **attributes: Any) -> ElementTree.Element:
    return _element("circle", class_=name, cx=middle[0], cy=middle[1], r=radius, **attributes)


def _path(
    points: Any, name: str, *, closed: bool = False, pen: str = "", stroke: str = "none", width: float = 0, **more: Any
) -> ElementTree.Element:
    """Draw lines through `points`; `pen` has an `M` for each one that is moved to without a line."""
    steps = zip(pen or "M" + "L" * (len(points) - 1), points)
    line = "".join(f"{step}{_number(x)} {_number(y)}" for step, (x, y) in steps) + "Z" * closed
    look = {"fill": "none", "stroke": stroke, "stroke_width": width, "stroke_linecap": "round"} | more
    return _element("path", class_=name, d=line, **look)


def _text(middle: Any, text: str, size: float, name: str) -> ElementTree.Element:
    # Capitals and digits are about 0.7 of the size high: this puts their middle there, in every renderer.
    look = {"font_family": "system-ui, sans-serif", "font_size": size, "text_anchor": "middle", "fill": _colour("ink")}
    element = _element("text", class_=name, x=middle[0], y=middle[1] + 0.35 * size, **look)
    element.text = text
    return element
