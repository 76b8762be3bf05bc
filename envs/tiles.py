"""Boards of numbered tiles as text and in pictures, for games that tell `labels(state)`: [R, C], 0 for an empty cell.

Such a game's `arrange` takes labels in the place of stones.

     2  .  .  4
     .  . 16  .
     .  2  8  .
     .  .  . 64
    to play
"""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from envs import svg

_SIDE = 36.0  # of a tile; the cells of a picture lie 40 apart


def labels_of(env: Any, state: Any) -> np.ndarray | None:
    """Give the numbers on the tiles of one state: [R, C] int64; None if `env` is a game without such."""
    labels = getattr(env, "labels", None)
    return None if labels is None else np.asarray(labels(state)).astype(np.int64)


def to_lines(labels: np.ndarray) -> list[str]:
    """Write a board of tiles, one line a row, numbers one below the other."""
    width = len(str(labels.max()))
    return [" ".join(f"{number or '.':>{width}}" for number in row) for row in labels]


def from_text(env: Any, text: str) -> Any:
    """Read a position drawn as by `to_lines`; lines with anything but numbers, dots and spaces are skipped.

    Raises `ValueError` for a board of another size and for one that cannot come about.
    """
    rows = [line.split() for line in text.splitlines() if re.fullmatch(r"\s*((\d{1,18}|\.)(\s+|$))+", line)]
    height, width = env.observation_shape[:2]
    if [len(row) for row in rows] != [width] * height:
        raise ValueError(f"`text` has rows of lengths {[len(row) for row in rows]}, expected {height} of {width}.")
    return env.arrange(np.array([[0 if word == "." else int(word) for word in row] for row in rows]), 0)


def drawn(env: Any, state: Any, cells: np.ndarray) -> Iterator[ElementTree.Element]:
    """Draw the tiles of one state around the middles `cells` [R, C, 2]; nothing for a game without tiles.

    The larger the number, the more of `--tile-high` lies over `--tile-low` (`envs.svg`).
    """
    labels = labels_of(env, state)
    if labels is not None:
        for row, column in np.argwhere(labels):
            yield from _tile(int(labels[row, column]), cells[row, column], _warmth(labels)[row, column])


def _warmth(labels: np.ndarray) -> np.ndarray:
    """Place numbers on a scale from 0 to 1, powers of two by their exponents, up to 2048, others by their size."""
    powers = not (labels & (labels - 1)).any()
    return np.minimum(np.log2(np.maximum(labels, 1)) / 11, 1) if powers else labels / labels.max()


def _tile(label: int, middle: np.ndarray, warmth: float) -> Iterator[ElementTree.Element]:
    for name, opacity in (("tile-low", 1.0), ("tile-high", 0.9 * warmth)):
        look = {"class_": "tile", "fill": svg.colour(name), "fill_opacity": f"{opacity:.2f}"}
        yield svg.rectangle(middle - _SIDE / 2, (_SIDE, _SIDE), rx=4, **look)
    size = min(17.0, 0.9 * _SIDE / (0.72 * len(str(label))))  # no bold digit is wider than 0.72 of the size
    place = {"x": middle[0], "y": f"{svg.base_line(middle[1], size):.2f}", "font_size": f"{size:.2f}"}
    look = {"font_family": svg.FONT, "text_anchor": "middle", "font_weight": "600", "class_": "number"}
    yield svg.element("text", str(label), **place, **look, fill="#ffffff" if warmth > 0.65 else "#26221a")
