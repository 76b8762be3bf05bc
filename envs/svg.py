"""The elements of pictures: circles, rectangles, lines and writing, as `xml.etree` holds them.

Numbers are written with two digits after the point at most. Colours are CSS custom properties with fallbacks, so that a
page can restyle its pictures, for a dark mode say:

    --board --line --ink     the ground, the lines on it, and all writing
    --first --second --third stones and edges of the players
    --accent                 what is pointed out
    --high --low             the two ends of the heat
    --tile-high --tile-low   the two ends of the tiles' scale
"""

from typing import Any
from xml.etree import ElementTree

FONT = "system-ui, sans-serif"

_FALLBACKS = {
    "board": "#f1e8d4",
    "line": "#a8987a",
    "ink": "#26221a",
    "first": "#cc4430",
    "second": "#2a5fb5",
    "third": "#7a5c1e",
    "accent": "#f0a818",
    "high": "#2f9a4c",
    "low": "#9440a8",
    "tile-high": "#b3361a",
    "tile-low": "#fffaf0",
}


def element(tag: str, words: str | None = None, **attributes: Any) -> ElementTree.Element:
    """Make an element around `words`; `_` stands for `-` in names of attributes, and `class_` is `class`."""
    written = {name.rstrip("_").replace("_", "-"): number(value) for name, value in attributes.items()}
    made = ElementTree.Element(tag, written)
    made.text = words
    return made


def number(value: Any) -> str:
    """Write a number; text stays as it is."""
    return value if isinstance(value, str) else f"{round(float(value), 2):g}"


def colour(name: str) -> str:
    """Refer to a colour by its custom property."""
    return f"var(--{name}, {_FALLBACKS[name]})"


def rectangle(corner: Any, extent: Any, **attributes: Any) -> ElementTree.Element:
    """Draw a rectangle from its top left corner on."""
    return element("rect", x=corner[0], y=corner[1], width=extent[0], height=extent[1], **attributes)


def circle(middle: Any, radius: float, name: str, **attributes: Any) -> ElementTree.Element:
    """Draw a circle of the class `name`."""
    return element("circle", class_=name, cx=middle[0], cy=middle[1], r=radius, **attributes)


def path(
    points: Any, name: str, *, closed: bool = False, pen: str = "", stroke: str = "none", width: float = 0, **more: Any
) -> ElementTree.Element:
    """Draw lines through `points`; `pen` has an `M` for each one that is moved to without a line."""
    steps = zip(pen or "M" + "L" * (len(points) - 1), points)
    line = "".join(f"{step}{number(x)} {number(y)}" for step, (x, y) in steps) + "Z" * closed
    look: dict[str, Any] = {"fill": "none", "stroke": stroke, "stroke_width": width, "stroke_linecap": "round"} | more
    return element("path", class_=name, d=line, **look)


def text(middle: Any, words: str, size: float, name: str) -> ElementTree.Element:
    """Write `words` in a line around its middle."""
    look = {"font_family": FONT, "font_size": size, "text_anchor": "middle", "fill": colour("ink")}
    return element("text", words, class_=name, x=middle[0], y=base_line(middle[1], size), **look)


def base_line(middle: float, size: float) -> float:
    """Tell where letters stand whose middle is to be at `middle`, in every renderer."""
    return middle + 0.35 * size  # capitals and digits are about 0.7 of the size high
