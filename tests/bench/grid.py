"""Small and large sizes: nowhere slower than mctx."""

import itertools

from tests.bench import duel
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

BATCHES = (1, 16, 128, 1024)
ACTIONS = (9, 82)
SIMULATIONS = (8, 32, 64)


def run(quick: bool) -> list[Row]:
    """Fight out every size of the grid; with `quick`, its corners."""
    sizes = list(itertools.product(BATCHES, ACTIONS, SIMULATIONS))
    if quick:
        sizes = list(itertools.product(BATCHES[::3], ACTIONS, SIMULATIONS[::2]))
    rows = [duel.fight(Cell(*size)) for size in sizes]
    return [{**row, "required": 1, "verdict": verdict(row["jaxmcts / mctx"] >= 1)} for row in rows]
