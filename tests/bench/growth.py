"""The cost of a simulation does not grow with the budget, but for the tree's depth."""

from tests.bench import contestants, timing
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

MOST = 1.5
FEW, MANY = 64, 1024


def run(quick: bool) -> list[Row]:
    """Compare the time per simulation and level of mean depth at 1024 and 64 simulations, in both worlds."""
    return [_growth(scale, fpu, 1 if quick else 5) for scale, fpu in ((12.0, -1.0), (3.0, 0.0))]


def _growth(scale: float, fpu: float, rounds: int) -> Row:
    few, many = (Cell(128, 82, n, scale, fpu) for n in (FEW, MANY))
    calls = {"few": contestants.jaxmcts_search(few), "many": contestants.jaxmcts_search(many)}
    times = timing.take_turns(calls, rounds=rounds)
    depths = contestants.shape_of(few).mean, contestants.shape_of(many).mean
    per_simulation = timing.ratio(times, "many", "few") * FEW / MANY
    deeper = depths[1] / depths[0]
    per_level = per_simulation / deeper
    by_processor = timing.ratio(times, "many", "few", "processor") * FEW / MANY / deeper
    return {
        "cell": f"128 x 82, logits x{scale:g}, FPU {fpu:g}",
        f"us at {FEW}": round(1e6 * timing.median(times, "few") / FEW),
        f"us at {MANY}": round(1e6 * timing.median(times, "many") / MANY),
        f"depth at {FEW}": round(depths[0], 2),
        f"depth at {MANY}": round(depths[1], 2),
        "per simulation": round(per_simulation, 2),
        "by processor": round(by_processor, 2),
        "per level": round(per_level, 2),
        "required": f"<= {MOST}",
        "verdict": verdict(per_level <= MOST),
    }
