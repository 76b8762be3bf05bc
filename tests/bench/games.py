"""Steps per second of our games beside pgx's: `python -m tests.bench.games`.

Random legal games are recorded beforehand, `PLIES` plies in each of `BATCH` rows, a new game following where
one ends. Then both sides step through the same moves in one compiled scan: no move is illegal and none falls
on a finished game. Both restart finished rows the same way, by a select of a start state made beforehand
(so neither pays for random keys), and of both the mask, the rewards and the end flags are added up row by row
after every step, so that none of the work is dead code. Observations are left to whoever needs them, for both.

The two sides alternate call by call in one process, so that a busy machine slows both; a round is the median of
`CALLS` calls of each, and the table gives the median of `ROUNDS` rounds.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import envs
from envs import base

BATCH = 1024
PLIES = 128
ROUNDS = 5
CALLS = 9  # of each side, per round

# What makes our game the one that pgx has, where that is an option.
OPTIONS: dict[str, dict[str, Any]] = {"hex": {"swap": True}}


def run(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure every game and give one JSON-ready row each."""
    return [_measure(name, rounds) for name in envs.names()]


def record_games(env: envs.BoardGame, batch: int, plies: int, seed: int = 0) -> np.ndarray:
    """Draw uniformly random legal moves, game after game: [T, B] int32."""

    @jax.jit
    def play(key: jax.Array) -> jax.Array:
        def ply(states: envs.State, key: jax.Array) -> tuple[envs.State, jax.Array]:
            mask = jax.vmap(env.legal_action_mask)(states)
            actions = jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)).astype(jnp.int32)
            keys = jax.random.split(key, batch)
            _, states = jax.vmap(lambda *args: base.auto_reset(env, *args))(states, actions, keys)
            return states, actions

        start_key, key = jax.random.split(key)
        states = jax.vmap(env.init)(jax.random.split(start_key, batch))
        return jax.lax.scan(ply, states, jax.random.split(key, plies))[1]

    return np.asarray(play(jax.random.key(seed)))


def _measure(name: str, rounds: int) -> dict[str, Any]:
    import pgx

    env, theirs = envs.make(name, **OPTIONS.get(name, {})), pgx.make(name)
    actions = jnp.asarray(record_games(env, BATCH, PLIES))
    keys = jax.random.split(jax.random.key(0), BATCH)
    sides = [
        _side(env, env.legal_action_mask, keys),
        _side(theirs, lambda state: state.legal_action_mask, keys),
    ]
    our_ends, their_ends = (side(actions)[2] for side in sides)
    np.testing.assert_array_equal(our_ends, their_ends, "the two sides do not play the same games")
    seconds = np.array([_round(sides, actions) for _ in range(rounds + 1)][1:])
    ours, pgxs = (statistics.median(column) for column in seconds.T)
    ratios = seconds[:, 1] / seconds[:, 0]
    return {
        "benchmark": "games",
        "game": name,
        "batch": BATCH,
        "plies": PLIES,
        "rounds": rounds,
        "device": jax.devices()[0].device_kind,
        "steps_per_second": actions.size / ours,
        "pgx_steps_per_second": actions.size / pgxs,
        "ratio": statistics.median(ratios),
        "ratio_min": float(ratios.min()),
        "ratio_max": float(ratios.max()),
    }


def _side(env: Any, mask_of: Callable[[Any], jax.Array], keys: jax.Array) -> Callable[[jax.Array], Any]:
    start = jax.jit(jax.vmap(env.init))(keys)

    def ply(carry: tuple[Any, ...], actions: jax.Array) -> tuple[tuple[Any, ...], None]:
        states, allowed, won, ended = carry
        after = jax.vmap(env.step)(states, actions)
        finished = after.terminated | after.truncated
        allowed += jax.vmap(mask_of)(after).sum(axis=1)
        won += after.rewards[:, 0]
        states = jax.vmap(base.select)(finished, start, after)
        return (states, allowed, won, ended + finished), None

    def play(actions: jax.Array) -> tuple[jax.Array, ...]:
        zeros = jnp.zeros(len(keys), jnp.int32)
        return jax.lax.scan(ply, (start, zeros, zeros.astype(jnp.float32), zeros), actions)[0][1:]

    return jax.jit(play)


def _round(sides: list[Callable[[jax.Array], Any]], actions: jax.Array) -> list[float]:
    """Call the sides in turn, `CALLS` times each, and give the median seconds of each."""
    seconds: list[list[float]] = [[] for _ in sides]
    for _ in range(CALLS):
        for side, times in zip(sides, seconds, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(side(actions))
            times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in seconds]


def main() -> None:
    rows = run()
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows))
        return
    print(f"batch {BATCH}, {PLIES} plies, median of {ROUNDS} interleaved rounds, {rows[0]['device']}")
    print(f"{'game':<14}{'steps/s':>12}{'pgx 2.6.0':>12}{'ratio':>8}{'  (min-max)'}")
    for row in rows:
        print(
            f"{row['game']:<14}{row['steps_per_second']:>12,.0f}{row['pgx_steps_per_second']:>12,.0f}"
            f"{row['ratio']:>8.2f}  ({row['ratio_min']:.2f}-{row['ratio_max']:.2f})"
        )


if __name__ == "__main__":
    main()
