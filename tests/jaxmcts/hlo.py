"""Reading compiled programs as text: what is copied inside loops, and whether devices talk to each other."""

import math
import re

COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")

_HEADER = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_CALLED = re.compile(r"(?:body|condition|calls|to_apply|branch_computations)=\{?((?:%?[\w.\-]+(?:, )?)+)\}?")
_BODY = re.compile(r"body=%?([\w.\-]+)")
_COPY = re.compile(r"= \w+\[([\d,]*)\]\S* copy(?:-start)?\(")


def computations(text: str) -> dict[str, list[str]]:
    """Split a compiled program into its computations, each a list of instructions."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line and not line[0].isspace() and (header := _HEADER.match(line)):
            name = header.group(1)
            found[name] = []
        elif name and line.startswith(" "):
            found[name].append(line.strip())
    return found


def instructions_in_loops(text: str) -> list[str]:
    """List every instruction that runs inside some `while` loop, in whatever it calls too."""
    parts = computations(text)
    pending = [name for lines in parts.values() for line in lines for name in _BODY.findall(line)]
    inside: set[str] = set()
    while pending:
        name = pending.pop()
        if name in parts and name not in inside:
            inside.add(name)
            pending += [
                called.strip("% ")
                for line in parts[name]
                for names in _CALLED.findall(line)
                for called in names.split(",")
            ]
    return [line for name in sorted(inside) for line in parts[name]]


def copies_in_loops(text: str, *, rows: int, nodes: int) -> list[str]:
    """List the copies, inside loops, of arrays with a node axis: sizes that are multiples of rows x nodes.

    Choose `nodes` prime and unlike every other axis, so that no other array has such a size.
    """

    def size(line: str) -> int:
        match = _COPY.search(line)
        return math.prod(int(n) for n in match.group(1).split(",") if n) if match else 0

    return [line for line in instructions_in_loops(text) if size(line) and size(line) % (rows * nodes) == 0]


def collectives(text: str) -> list[str]:
    """List the instructions by which devices exchange data."""
    return [line.strip() for line in text.splitlines() if any(f" {name}" in line for name in COLLECTIVES)]
