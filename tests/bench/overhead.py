"""What the tree costs on top of a network: a search against a bare loop that makes as many evaluations.

The loop evaluates the same network on as many positions, at the same batch size, and plays the same number of
moves of the game; it keeps no tree.
"""

from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from tests.bench import timing
from tests.bench.duel import Row
from tests.bench.setting import CONNECT_FOUR as SETTING
from tests.bench.setting import jitted
from tests.bench.timing import verdict

MOST = 1.10


def run(quick: bool) -> list[Row]:
    """Compare at both budgets, in many rounds, for the ratio is close to 1; with `quick`, at the smaller one."""
    return [_overhead(n, 1 if quick else 15) for n in SETTING.budgets[: 1 if quick else 2]]


def _overhead(num_simulations: int, rounds: int) -> Row:
    """Compare a search with the same number of evaluations and moves in one compiled loop."""
    arguments = SETTING.network.init(jax.random.key(0)), jax.random.key(1), SETTING.positions()

    def search(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return SETTING.search(params, key, state, num_simulations).action

    def bare(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return bare_loop(params, key, state, num_simulations)

    times = timing.take_turns({"search": jitted(search, arguments), "bare": jitted(bare, arguments)}, rounds=rounds)
    ratio = timing.ratio(times, "search", "bare")
    return {
        "simulations": num_simulations,
        "search ms": round(1e3 * timing.median(times, "search"), 1),
        "evaluations ms": round(1e3 * timing.median(times, "bare"), 1),
        "by processor": round(timing.ratio(times, "search", "bare", "processor"), 3),
        "ratio": round(ratio, 3),
        "required": f"<= {MOST}",
        "verdict": verdict(ratio <= MOST),
    }


def bare_loop(params: Any, key: jax.Array, state: Any, num_simulations: int) -> jax.Array:
    """Evaluate, play the likeliest legal move, and so on: all of a search's work but the tree."""
    keys = jax.random.split(key, SETTING.batch)

    def ply(_: int, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, action = carry
        pending = SETTING.model.step(params, keys, state, action)[1]
        evaluation, state = SETTING.model.evaluate(params, keys, pending)
        return state, likeliest(evaluation)

    evaluation, state = SETTING.model.evaluate(params, keys, state)
    return jax.lax.fori_loop(0, num_simulations, ply, (state, likeliest(evaluation)))[1]


def likeliest(evaluation: jaxmcts.Evaluation) -> jax.Array:
    """Return the legal action of the highest logit, using the value too, so that it is computed."""
    logits = evaluation.prior_logits + 1e-9 * evaluation.value[:, None]
    return jnp.argmax(jnp.where(evaluation.legal_action_mask, logits, -jnp.inf), axis=-1).astype(jnp.int32)
