"""The headline: simulations per second at four sizes, with sharp priors and with flat ones."""

from collections.abc import Iterator

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
    """Fight out every size in both worlds."""
    return [_fight(cell, required, rounds=1 if quick else 5) for cell, required in cells(quick)]


def cells(quick: bool) -> Iterator[tuple[Cell, float]]:
    """Yield the sizes in both worlds with the ratio required; with `quick`, not the one that takes mctx minutes."""
    for (batch, actions, simulations), ratios in REQUIRED.items():
        for scale, fpu, ratio in zip((12.0, 3.0), (-1.0, 0.0), ratios):
            if not (quick and simulations == 1024):
                yield Cell(batch, actions, simulations, scale, fpu), ratio


def _fight(cell: Cell, required: float, rounds: int) -> Row:
    row = duel.fight(cell, rounds=rounds)
    return {**row, "required": required, "verdict": verdict(row["jaxmcts / mctx"] >= required)}
