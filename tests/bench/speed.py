"""The headline: simulations per second at four sizes, with sharp priors and with flat ones."""

from tests.bench import duel
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

# (batch, actions, simulations): how many times faster than mctx with sharp priors, and with flat ones
REQUIRED = {
    (128, 82, 64): (12, 8),
    (128, 82, 256): (30, 16),
    (128, 82, 1024): (80, 60),
    (1024, 9, 128): (7, 6),
}


def run(quick: bool) -> list[Row]:
    """Fight out every size in both worlds; with `quick`, leave out the size that takes mctx minutes."""
    rows = []
    for (batch, actions, simulations), (sharp, flat) in REQUIRED.items():
        if quick and simulations == 1024:
            continue
        for scale, fpu, ratio in ((12.0, -1.0, sharp), (3.0, 0.0, flat)):
            row = duel.fight(Cell(batch, actions, simulations, scale, fpu), rounds=1 if quick else 5)
            rows.append({**row, "required": ratio, "verdict": verdict(row["jaxmcts / mctx"] >= ratio)})
    return rows
