"""Steps per second of our games beside pgx's.

Random legal games are recorded beforehand, `PLIES` plies in each of `BATCH` rows, a new game following where
one ends. Then both sides step through the same moves in one compiled scan: no move is illegal and none falls
on a finished game (in Go a board that comes again would end it on pgx's side alone: our masks have no such move).
Both restart finished rows the same way, by a select of a start state made beforehand (so neither pays for random
keys), and of both the mask, the rewards and the end flags are added up row by row after every step, so that none of
the work is dead code. Observations are left to whoever needs them, for both.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx

import envs
from envs import base
from tests.bench import timing
from tests.bench.duel import Row

BATCH = 1024
PLIES = 128

REQUIRED = {"go": 8.0, "othello": 3.0, "2048": 2.0}  # times as fast as pgx's; of others it is 1

# What makes our game the one that pgx has, where that is an option.
OPTIONS: dict[str, dict[str, Any]] = {
    "hex": {"swap": True},
    "go": {"history": 8},
    "othello": {"double_pass": True},
}

# What pgx calls a game, where it is another name.
PGX_NAMES = {"go": "go_9x9"}


def run(quick: bool) -> list[Row]:
    """Measure every game that pgx has, too."""
    rounds = 1 if quick else 9
    return [_measure(name, rounds) for name in envs.names() if PGX_NAMES.get(name, name) in pgx.available_envs()]


def record_games(env: Any, mask_of: Callable[[Any], jax.Array], start: Any, keys: jax.Array) -> jax.Array:
    """Draw uniformly random legal moves by `keys` [T, B], game after game from `start` [B]: [T, B] int32."""

    def ply(states: Any, keys: jax.Array) -> tuple[Any, jax.Array]:
        mask = jax.vmap(mask_of)(states)
        noise = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, 0), mask.shape[1:]))(keys)
        actions = jnp.where(mask, noise, -1).argmax(axis=1).astype(jnp.int32)
        return _restarted(start, jax.vmap(env.step)(states, actions, keys)), actions

    return jax.jit(lambda keys: jax.lax.scan(ply, start, keys)[1])(keys)


def _restarted(start: Any, states: Any) -> Any:
    return jax.vmap(base.select)(states.terminated | states.truncated, start, states)


def _measure(name: str, rounds: int) -> Row:
    env, theirs = envs.make(name, **OPTIONS.get(name, {})), pgx.make(PGX_NAMES.get(name, name))
    games = [(env, env.legal_action_mask), (theirs, lambda state: state.legal_action_mask)]
    starts = [jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), BATCH)) for game, _ in games]
    keys = jax.random.split(jax.random.key(1), (PLIES, BATCH))
    by_chance = isinstance(env, envs.ChanceGame)
    moves = [record_games(*game, start, keys) for game, start in zip(games[: 1 + by_chance], starts, strict=False)]
    sides: list[Callable[[], Any]] = [
        functools.partial(_side(*game, start), actions, keys)
        for game, start, actions in zip(games, starts, moves * (2 - by_chance), strict=True)
    ]
    our_ends, their_ends = (np.asarray(side()[2]) for side in sides)
    if by_chance:
        np.testing.assert_allclose(our_ends.sum(), their_ends.sum(), rtol=0.1, err_msg="games of another length")
    else:
        np.testing.assert_array_equal(our_ends, their_ends, "the two sides do not play the same games")
    times = timing.take_turns(dict(zip(("envs", "pgx"), sides, strict=True)), rounds=rounds)
    ratio, required = timing.ratio(times, "pgx", "envs"), REQUIRED.get(name, 1.0)
    return {
        "game": name,
        "batch": BATCH,
        **{f"{side} steps/s": round(keys.size / timing.median(times, side)) for side in times},
        "by processor": round(timing.ratio(times, "pgx", "envs", "processor"), 2),
        "envs / pgx": round(ratio, 2),
        "required": required,
        "verdict": timing.verdict(ratio >= required),
    }


def _side(env: Any, mask_of: Callable[[Any], jax.Array], start: Any) -> Callable[..., Any]:
    def ply(carry: tuple[Any, ...], inputs: tuple[jax.Array, jax.Array]) -> tuple[tuple[Any, ...], None]:
        states, allowed, won, ended = carry
        after = jax.vmap(env.step)(states, *inputs)
        finished = after.terminated | after.truncated
        allowed += jax.vmap(mask_of)(after).sum(axis=1)
        won += after.rewards[:, 0]
        return (_restarted(start, after), allowed, won, ended + finished), None

    def play(actions: jax.Array, keys: jax.Array) -> tuple[jax.Array, ...]:
        zeros = jnp.zeros(BATCH, jnp.int32)
        return jax.lax.scan(ply, (start, zeros, zeros.astype(jnp.float32), zeros), (actions, keys))[0][1:]

    return jax.jit(play)
