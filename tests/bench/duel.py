"""One cell fought out by all contestants: times, ratios and whether they built the same trees."""

from typing import Any

import numpy as np

from tests.bench import contestants, timing
from tests.bench.world import Cell

Row = dict[str, Any]


def fight(cell: Cell, *, rounds: int = 5) -> Row:
    """Time the contestants on one cell and return a row of the table, simulations per second each."""
    searches = {
        "jaxmcts": contestants.jaxmcts_search(cell),
        "mctx": contestants.mctx_search(cell),
        "C++": contestants.yardstick_search(cell),
    }
    visits: dict[str, np.ndarray] = {}

    def keeping(name: str) -> contestants.Search:
        def call() -> np.ndarray:
            visits[name] = searches[name]()
            return visits[name]

        return call

    times = timing.medians({name: keeping(name) for name in searches}, rounds=rounds)
    shape = contestants.shape_of(cell)
    total = cell.batch * cell.simulations
    return {
        "cell": cell.label,
        "depth": round(shape.mean, 1),
        "deepest": round(shape.deepest, 1),
        **{f"{name} /s": round(total / times[name]) for name in searches},
        "C++ / jaxmcts": round(times["jaxmcts"] / times["C++"], 2),
        "rows unlike": _unlike(visits),
        "jaxmcts / mctx": round(times["mctx"] / times["jaxmcts"], 2),
    }


def _unlike(visits: dict[str, np.ndarray]) -> int:
    """Count the rows on whose root visits not all agree: rounding decides between scores almost equal."""
    ours = visits["jaxmcts"]
    agree = [np.all(ours == theirs, axis=1) for theirs in visits.values()]
    return int(np.sum(~np.all(agree, axis=0)))
