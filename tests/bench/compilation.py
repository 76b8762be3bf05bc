"""How long the first call of each policy takes, compilation and all."""

import time
from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from tests.bench import world
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

    cpu = time.process_time()
    first = _seconds(act, arguments)
    cpu = time.process_time() - cpu
    return {
        "policy": policy.__name__,
        "cell": CELL.label,
        "first call s": round(first, 2),
        "of the processor": round(cpu, 2),
        "second call s": round(_seconds(act, arguments), 2),
        "required": f"<= {MOST_S:g}",
        "verdict": verdict(first <= MOST_S),
    }


def _seconds(act: Any, arguments: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(act(*arguments))
    return time.perf_counter() - start
