"""How long the first call of each policy takes, compilation and all."""

from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from tests.bench import timing, world
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

CELL = Cell(128, 82, 256)
MOST_S = 5.0
POLICIES = (jaxmcts.alphazero_policy, jaxmcts.gumbel_policy, jaxmcts.uct_policy)


def run(quick: bool) -> list[Row]:
    """Call each policy for the first time, with nothing compiled before it."""
    del quick
    return [_first_call(policy) for policy in POLICIES]


def _first_call(policy: Any) -> Row:
    jax.clear_caches()
    arguments = jnp.float32(CELL.scale), jax.random.key(0), world.states(CELL, world.roots(CELL))
    model = world.model(CELL)

    @jax.jit
    def act(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return policy(params, key, state, model, num_simulations=CELL.simulations).action

    first, second = (timing.measure(lambda: act(*arguments)) for _ in range(2))
    return {
        "policy": policy.__name__,
        "cell": CELL.label,
        "first call s": round(first.wall, 2),
        "by processor s": round(first.processor, 2),
        "second call s": round(second.wall, 2),
        "required": f"<= {MOST_S:g}",
        "verdict": verdict(first.wall <= MOST_S),
    }
