"""End to end: moves per second of search, game and network, against mctx with pgx's game.

Both sides search with the same rule and the same network from the same positions, then move.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from tests.bench import timing
from tests.bench.duel import Row
from tests.bench.setting import CONNECT_FOUR, GO, Setting, jitted
from tests.bench.timing import verdict

REQUIRED = {CONNECT_FOUR: 1.0, GO: 2.0}


def run(quick: bool) -> list[Row]:
    """Compare in both games; with `quick`, in one round and with the smallest budget."""
    return [
        _moves(setting, n, required, 1 if quick else 5)
        for setting, required in REQUIRED.items()
        for n in setting.budgets[: 1 if quick else None]
    ]


def _moves(setting: Setting, num_simulations: int, required: float, rounds: int) -> Row:
    """Compare moves per second, search and step of the game, with mctx and pgx."""
    params, key = setting.network.init(jax.random.key(0)), jax.random.key(1)

    def ours(params: Any, key: jax.Array, state: Any) -> Any:
        action = setting.search(params, key, state, num_simulations).action
        return jax.vmap(setting.game.step)(state, action, jax.random.split(key, setting.batch))

    theirs, their_start = mctx_with_pgx(setting, num_simulations)
    calls = {
        "jaxmcts": jitted(ours, (params, key, setting.positions())),
        "mctx": jitted(theirs, (params, key, their_start)),
    }
    times = timing.take_turns(calls, rounds=rounds)
    ratio = timing.ratio(times, "mctx", "jaxmcts")
    return {
        "game": setting.pgx_name,
        "batch": setting.batch,
        "simulations": num_simulations,
        **{f"{name} moves/s": round(setting.batch / timing.median(times, name)) for name in calls},
        "by processor": round(timing.ratio(times, "mctx", "jaxmcts", "processor"), 2),
        "jaxmcts / mctx": round(ratio, 2),
        "required": required,
        "verdict": verdict(ratio >= required),
    }


def mctx_with_pgx(setting: Setting, num_simulations: int) -> tuple[Callable[[Any, jax.Array, Any], Any], Any]:
    """Return the same program on mctx and pgx, and its start positions."""
    import pgx

    game = pgx.make(setting.pgx_name)
    step = jax.vmap(game.step)
    state = jax.vmap(game.init)(jax.random.split(jax.random.key(0), setting.batch))
    for action in setting.openings:
        state = step(state, action)

    def judge(params: Any, state: Any) -> tuple[jax.Array, jax.Array]:
        logits, value = setting.network(params, state.observation)
        lowest = jnp.finfo(logits.dtype).min
        return jnp.where(state.legal_action_mask, logits, lowest), jnp.where(state.terminated, 0.0, value)

    def recurrent_fn(params: Any, key: jax.Array, action: jax.Array, state: Any) -> tuple[Any, Any]:
        del key
        mover = state.current_player
        state = step(state, action)
        logits, value = judge(params, state)
        reward = jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0]
        discount = jnp.where(state.terminated, 0.0, -1.0)
        output = mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return output, state

    def move(params: Any, key: jax.Array, state: Any) -> Any:
        logits, value = judge(params, state)
        output = mctx.muzero_policy(
            params,
            key,
            mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
            recurrent_fn,
            num_simulations,
            invalid_actions=~state.legal_action_mask,
            qtransform=mctx_values_to_unit_interval,
            dirichlet_fraction=0.0,
        )
        return step(state, output.action)

    return move, state


def mctx_values_to_unit_interval(tree: Any, node_index: jax.Array) -> jax.Array:
    """Map values from [-1, 1] to [0, 1], unvisited edges to 0, as `alphazero_policy` does."""
    return mctx.qtransform_by_min_max(tree, node_index, min_value=-1.0, max_value=1.0)
