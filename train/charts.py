"""Inline SVG for a page: charts, which matplotlib lays out and the page colours, and pictures with a common ground.

A chart comes back as one `<svg>` to put into HTML. Its colours are CSS variables and its letters are the page's,
so it follows dark mode and print; it has no size of its own, only a shape, and takes the width it is given.
"""

import dataclasses
import io
import math
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

# Matplotlib knows no CSS: it draws in these colours, which nothing else has, and they are replaced afterwards.
INK, RULE = "#010101", "#020202"
SERIES = ("#030303", "#040404")
_VARIABLES = {INK: "--ink-soft", RULE: "--rule", SERIES[0]: "--series-1", SERIES[1]: "--series-2"}

_SIZE = (5.0, 2.7)  # inches of 72: about the width of a phone, where one unit is then one pixel
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_FEW = 40  # points: each is then marked, so that a line of one point can be seen
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": RULE,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",  # text stays text: small, selectable, in the page's font
    "text.color": INK,
    "text.parse_math": False,  # a name with a dollar sign is a name
    "xtick.color": INK,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """One series; points that are not a number are gaps. `low` and `high` are a band around it."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no point to draw."""
        return not any(math.isfinite(y) for y in self.y)


def chart(
    name: str,
    description: str,
    lines: Sequence[Line],
    *,
    x_label: str,
    levels: Sequence[tuple[str, float]] = (),
    limits: tuple[float, float] | None = None,
    percent: bool = False,
) -> str:
    """Draw up to two lines over one axis from 0 on, as inline SVG; an empty string if there is no point to draw.

    `name` is unique on the page: the ids inside start with it. `description` is what a screen reader says.
    `levels` are named heights, drawn as dashed lines. `limits` are the ends of the vertical axis, else the data's.
    `percent` labels it from 0 to 1 as 0 % to 100 %.
    """
    lines = [line for line in lines if not line.is_empty]
    if not lines:
        return ""
    with matplotlib.rc_context(_STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        for line, colour in zip(lines, SERIES, strict=False):
            _draw(axes, line, colour)
        for text, height in levels:
            axes.axhline(height, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
            axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), xytext=(0, 2),
                          textcoords="offset points", ha="right", va="bottom", fontsize=9)  # fmt: skip
        axes.set_xlabel(x_label)
        axes.margins(x=0.02)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        if limits is not None:
            axes.set_ylim(*limits)
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        if len(lines) > 1:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0, borderpad=0.2)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inline(buffer.getvalue(), name, description)


def _draw(axes: Axes, line: Line, colour: str) -> None:
    if line.low:
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(line.x, line.y, color=colour, marker="o" if len(line.x) <= _FEW else "", label=line.label)


def _inline(svg: str, name: str, description: str) -> str:
    """Turn matplotlib's file into an element of a page."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for child in list(element):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):  # a style sheet would rule the whole page
                element.remove(child)
        _adopt(element, name)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    title = ElementTree.Element(f"{{{_SVG}}}title")
    title.text = description
    root.insert(0, title)
    return _write(root)


def _adopt(element: ElementTree.Element, name: str) -> None:
    # Ids are the page's from now on, so they carry the chart's name; fonts are the page's too.
    if element.tag == f"{{{_SVG}}}g":
        element.attrib.pop("id", None)  # nothing refers to a group
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    if _XLINK in element.attrib:
        element.set("href", f"#{name}-{element.attrib.pop(_XLINK).removeprefix('#')}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{name}-"))
    if element.tag == f"{{{_SVG}}}text":
        element.set("style", re.sub(r"font-family:[^;]*;?", "", element.get("style", "")))
    element.text, element.tail = (text and text.strip() for text in (element.text, element.tail))


def share_ground(pictures: Sequence[str], name: str) -> tuple[str, list[str]]:
    """Draw once what all pictures have in common: an element to put on the page before them, and the smaller pictures.

    For boards of one game, whose cells are most of a picture. What is common is drawn where the first of it was, so
    nothing that the pictures do not share may lie between. `name` is the ground's id, unique on the page.
    """
    roots = [ElementTree.fromstring(picture) for picture in pictures]
    drawn = [[ElementTree.tostring(child) for child in root] for root in roots]
    common = set.intersection(*map(set, drawn))
    ground = ElementTree.Element(f"{{{_SVG}}}g", id=name)
    ground.extend(child for child, text in zip(roots[0], drawn[0]) if text in common)
    for root, texts in zip(roots, drawn):
        places = [place for place, text in enumerate(texts) if text in common]
        for place in reversed(places):
            del root[place]
        if places:
            root.insert(places[0], ElementTree.Element(f"{{{_SVG}}}use", href=f"#{name}"))
    hidden = ElementTree.Element(
        f"{{{_SVG}}}svg", {"width": "0", "height": "0", "class": "ground", "aria-hidden": "true"}
    )
    ElementTree.SubElement(hidden, f"{{{_SVG}}}defs").append(ground)
    return _write(hidden), [_write(root) for root in roots]


def _write(element: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(element, encoding="unicode")
