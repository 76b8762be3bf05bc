"""A program written for mctx, run by mctx and by `jaxmcts.mctx`: the ratios of `speed` must hold through its names.

A q-transform of mctx's is evaluated cached. One of the program's own is evaluated `Live`, which must still be faster.
"""

import functools

import mctx
import numpy as np

import jaxmcts.mctx
from tests.bench import contestants, timing
from tests.bench.duel import Row
from tests.bench.speed import cells
from tests.bench.timing import verdict
from tests.bench.world import Cell

NAMES = {"jaxmcts.mctx": jaxmcts.mctx, "mctx": mctx}


def run(quick: bool) -> list[Row]:
    """Run the cells of `speed`, one size of them with a q-transform of the program's own too."""
    rounds = 1 if quick else 5
    rows = [_compare(cell, required, rounds) for cell, required in cells(quick)]
    own = [cell for cell, _ in cells(quick) if (cell.actions, cell.simulations) == (82, 256)]
    return rows + [_compare(cell, 1, rounds, own_transform=True) for cell in own]


def _compare(cell: Cell, required: float, rounds: int, own_transform: bool = False) -> Row:
    prepare = functools.partial(contestants.mctx_search, cell, own_transform=own_transform)
    searches = {name: prepare(names) for name, names in NAMES.items()}
    visits = [search() for search in searches.values()]
    times = timing.take_turns(searches, rounds=rounds)
    ratio = timing.ratio(times, "mctx", "jaxmcts.mctx")
    total = cell.batch * cell.simulations
    return {
        "cell": cell.label,
        "q-transform": "own, live" if own_transform else "mctx's, cached",
        **{f"{name} /s": round(total / timing.median(times, name)) for name in NAMES},
        "rows unlike": int(np.any(visits[0] != visits[1], axis=1).sum()),
        "by processor": round(timing.ratio(times, "mctx", "jaxmcts.mctx", "processor"), 2),
        "jaxmcts.mctx / mctx": round(ratio, 2),
        "required": required,
        "verdict": verdict(ratio >= required),
    }
