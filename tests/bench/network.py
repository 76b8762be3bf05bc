"""With a real game and a real network: what the tree costs on top of the evaluations, and moves per second.

The game is Connect Four, the network 32 channels wide and 5 convolutions deep, untrained. In `overhead` the
bare loop makes the same evaluations and the same moves of the game at the same batch size, and no tree.
In `moves` both sides search with the same rule and the same network from the same positions, then move:
ours on our game, mctx on pgx's.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

import envs
import jaxmcts
from tests.bench import timing
from tests.bench.duel import Row
from tests.bench.timing import verdict
from train.network import Network

BATCH = 256
BUDGETS = (32, 128)
OPENING_PLIES = 5  # too few to fill a column or to win
MOST_OVERHEAD = 1.10

GAME = envs.make("connect_four")
NETWORK = Network(observation_shape=GAME.observation_shape, num_actions=GAME.num_actions, channels=32, blocks=5)
MODEL = jaxmcts.model_from_env(GAME, jaxmcts.network_evaluator(GAME, NETWORK))


def run(quick: bool) -> list[Row]:
    """Measure `overhead` and `moves` at both budgets."""
    budgets = BUDGETS[:1] if quick else BUDGETS
    rounds = 1 if quick else 5
    return [overhead(n, rounds) for n in budgets] + [moves(n, rounds) for n in budgets]


def overhead(num_simulations: int, rounds: int) -> Row:
    """Compare a search with the same number of evaluations and moves in one compiled loop."""
    arguments = NETWORK.init(jax.random.key(0)), jax.random.key(1), our_positions()

    def search(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return our_search(params, key, state, num_simulations).action

    def bare(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return bare_loop(params, key, state, num_simulations)

    times = timing.medians({"search": jitted(search, arguments), "bare": jitted(bare, arguments)}, rounds=rounds)
    ratio = times["search"] / times["bare"]
    return {
        "what": "overhead",
        "simulations": num_simulations,
        "search ms": round(1e3 * times["search"], 1),
        "evaluations ms": round(1e3 * times["bare"], 1),
        "ratio": round(ratio, 3),
        "required": f"<= {MOST_OVERHEAD}",
        "verdict": verdict(ratio <= MOST_OVERHEAD),
    }


def moves(num_simulations: int, rounds: int) -> Row:
    """Compare moves per second, search and step of the game, with mctx and pgx."""
    params, key = NETWORK.init(jax.random.key(0)), jax.random.key(1)

    def ours(params: Any, key: jax.Array, state: Any) -> Any:
        action = our_search(params, key, state, num_simulations).action
        return jax.vmap(GAME.step)(state, action, jax.random.split(key, BATCH))

    theirs, their_start = mctx_with_pgx(num_simulations)
    calls = {
        "jaxmcts": jitted(ours, (params, key, our_positions())),
        "mctx": jitted(theirs, (params, key, their_start)),
    }
    times = timing.medians(calls, rounds=rounds)
    return {
        "what": "moves",
        "simulations": num_simulations,
        **{f"{name} moves/s": round(BATCH / times[name]) for name in calls},
        "ratio": round(times["mctx"] / times["jaxmcts"], 2),
        "required": "",
        "verdict": "",
    }


def jitted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """Compile and bind `arguments`."""
    compiled = jax.jit(function).lower(*arguments).compile()
    return lambda: compiled(*arguments)


def openings() -> np.ndarray:
    """Draw the first moves of each game: [T, B]."""
    return np.random.default_rng(0).integers(0, GAME.num_actions, (OPENING_PLIES, BATCH), dtype=np.int32)


def our_positions() -> Any:
    """Play the openings on our game."""
    keys = jax.random.split(jax.random.key(0), BATCH)
    state = jax.vmap(GAME.init)(keys)
    for action in openings():
        state = jax.vmap(GAME.step)(state, action, keys)
    return state


def our_search(params: Any, key: jax.Array, state: Any, num_simulations: int) -> Any:
    """Run the policy that mctx's side runs too."""
    return jaxmcts.alphazero_policy(params, key, state, MODEL, num_simulations=num_simulations, dirichlet_fraction=0.0)


def bare_loop(params: Any, key: jax.Array, state: Any, num_simulations: int) -> jax.Array:
    """Evaluate, play the likeliest legal move, and so on: all of a search's work but the tree."""
    keys = jax.random.split(key, BATCH)

    def ply(_: int, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, action = carry
        pending = MODEL.step(params, keys, state, action)[1]
        evaluation, state = MODEL.evaluate(params, keys, pending)
        return state, likeliest(evaluation)

    evaluation, state = MODEL.evaluate(params, keys, state)
    return jax.lax.fori_loop(0, num_simulations, ply, (state, likeliest(evaluation)))[1]


def likeliest(evaluation: jaxmcts.Evaluation) -> jax.Array:
    """Return the legal action of the highest logit, using the value too, so that it is computed."""
    logits = evaluation.prior_logits + 1e-9 * evaluation.value[:, None]
    return jnp.argmax(jnp.where(evaluation.legal_action_mask, logits, -jnp.inf), axis=-1).astype(jnp.int32)


def mctx_with_pgx(num_simulations: int) -> tuple[Callable[[Any, jax.Array, Any], Any], Any]:
    """Return the same program on mctx and pgx, and its start positions."""
    import pgx

    game = pgx.make("connect_four")
    step = jax.vmap(game.step)
    state = jax.vmap(game.init)(jax.random.split(jax.random.key(0), BATCH))
    for action in openings():
        state = step(state, action)

    def judge(params: Any, state: Any) -> tuple[jax.Array, jax.Array]:
        logits, value = NETWORK(params, state.observation)
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
