"""One cell fought out by all contestants: times, ratios and whether they built the same trees."""

from typing import Any

import numpy as np

from tests.bench import contestants, timing
from tests.bench.world import Cell

Row = dict[str, Any]

CONTESTANTS: dict[str, contestants.Prepare] = {
    "jaxmcts": contestants.jaxmcts_search,
    "mctx": contestants.mctx_search,
    "C++": contestants.yardstick_search,
    "C++ by tree": contestants.yardstick_search_by_tree,
}


def fight(cell: Cell, *, rounds: int = 5) -> Row:
    """Time the contestants on one cell and return a row of the table, simulations per second each."""
    visits: dict[str, np.ndarray] = {}

    def keeping(name: str, search: contestants.Search) -> contestants.Search:
        def call() -> np.ndarray:
            visits[name] = search()
            return visits[name]

        return call

    searches = {name: keeping(name, prepare(cell)) for name, prepare in CONTESTANTS.items()}
    times = timing.take_turns(searches, rounds=rounds)
    shape = contestants.shape_of(cell)
    total = cell.batch * cell.simulations
    return {
        "cell": cell.label,
        "depth": round(shape.mean, 1),
        "deepest": round(shape.deepest, 1),
        **{f"{name} /s": round(total / timing.median(times, name)) for name in CONTESTANTS},
        "rows unlike": _unlike(visits),
        "jaxmcts / C++": round(timing.ratio(times, "C++", "jaxmcts"), 2),
        "by processor": round(timing.ratio(times, "mctx", "jaxmcts", "processor"), 2),
        "jaxmcts / mctx": round(timing.ratio(times, "mctx", "jaxmcts"), 2),
    }


def _unlike(visits: dict[str, np.ndarray]) -> int:
    """Count the rows on whose root visits not all agree: rounding decides between scores almost equal."""
    ours = visits["jaxmcts"]
    agree = [np.all(ours == theirs, axis=1) for theirs in visits.values()]
    return int(np.sum(~np.all(agree, axis=0)))
