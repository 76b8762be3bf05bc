"""The cost of a simulation does not grow with the budget, but for the tree's depth."""

from tests.bench import contestants, timing
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

MOST = 1.5
FEW, MANY = 64, 1024


def run(quick: bool) -> list[Row]:
    """Compare the time per simulation and level of mean depth at two budgets, in both worlds."""
    return [_growth(scale, fpu, 1 if quick else 5) for scale, fpu in ((12.0, -1.0), (3.0, 0.0))]


def _growth(scale: float, fpu: float, rounds: int) -> Row:
    cells = {n: Cell(128, 82, n, scale, fpu) for n in (FEW, MANY)}
    times = timing.medians({str(n): contestants.jaxmcts_search(cell) for n, cell in cells.items()}, rounds=rounds)
    depth = {n: contestants.shape_of(cell).mean for n, cell in cells.items()}
    per_level = {n: times[str(n)] / n / depth[n] for n in cells}
    ratio = per_level[MANY] / per_level[FEW]
    return {
        "cell": f"128 x 82, logits x{scale:g}, FPU {fpu:g}",
        **{f"us at {n}": round(1e6 * times[str(n)] / n) for n in cells},
        **{f"depth at {n}": round(depth[n], 2) for n in cells},
        "per level, 1024 : 64": round(ratio, 2),
        "required": f"<= {MOST}",
        "verdict": verdict(ratio <= MOST),
    }
