"""A caller's own `vmap` around the search: two more axes cost nothing."""

from typing import Any

import jax
import jax.numpy as jnp

from tests.bench import contestants, timing, world
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

FLAT = Cell(128, 82, 64)
AXES = (2, 4)
MOST = 1.1


def run(quick: bool) -> list[Row]:
    """Compare one batch of 128 with 2 x 4 batches of 16, parameters batched too."""
    state = world.states(FLAT, world.roots(FLAT))
    inner = Cell(FLAT.batch // (AXES[0] * AXES[1]), FLAT.actions, FLAT.simulations)
    scale = jnp.float32(FLAT.scale)

    def visits(cell: Cell) -> Any:
        return lambda *arguments: contestants.tree_of(*arguments, cell=cell).visits[:, 0]

    flat = jax.jit(visits(FLAT))
    nested = jax.jit(jax.vmap(jax.vmap(visits(inner))))
    folded = jax.tree.map(lambda x: x.reshape(*AXES, inner.batch, *x.shape[1:]), state)
    keys = jax.random.split(jax.random.key(0), AXES)
    calls = {
        "flat": lambda: flat(scale, jax.random.key(0), state),
        "nested": lambda: nested(jnp.broadcast_to(scale, AXES), keys, folded),
    }
    same = bool((calls["flat"]() == calls["nested"]().reshape(FLAT.batch, FLAT.actions)).all())
    times = timing.take_turns(calls, rounds=1 if quick else 5)
    ratio = timing.ratio(times, "nested", "flat")
    return [
        {
            "cell": FLAT.label,
            "axes": "2 x 4 x 16",
            **{f"{name} ms": round(1e3 * timing.median(times, name), 1) for name in calls},
            "same visits": same,
            "by processor": round(timing.ratio(times, "nested", "flat", "processor"), 2),
            "ratio": round(ratio, 2),
            "required": f"<= {MOST}",
            "verdict": verdict(ratio <= MOST),
        }
    ]
