"""Self-play: a batch of games, every move chosen by a search, each game followed by a fresh one.

The games outlive the call: one that is cut by the end of an iteration goes on in the next. What is carried
(`Games`) and what is reported (`Trajectory`) are different records.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from envs.base import is_finished, select
from jaxmcts import Model
from jaxmcts.model import Env, PyTree
from train.search import Explorer


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Games:
    """The games in progress; none of them is finished."""

    state: Any  # [B]
    ply: jax.Array  # [B] int32: moves since this game began, its opening included


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Trajectory:
    """What happened at each move, in the view of the player who made it (`next_value`: of the one after)."""

    state: Any  # [T, B]: the position searched, never a finished one
    ply: jax.Array  # [T, B] int32: moves before it
    action_weights: jax.Array  # [T, B, A] float32: the moves, as the search weighed them
    policy_weight: jax.Array  # [T, B] float32: 1, or 0 where these are not to be learned from
    value: jax.Array  # [T, B] float32: the search's value of the position
    reward: jax.Array  # [T, B] float32
    discount: jax.Array  # [T, B] float32, signed: + same mover next, - the other, 0 game over
    next_value: jax.Array  # [T, B] float32: value of the position the move led to; 0 if decided
    done: jax.Array  # [T, B] bool: the game ended or was cut here; the next row is another game


def start(key: jax.Array, *, env: Env, games: int, opening_plies: int) -> Games:
    """Begin `games` games, each with its own random opening."""
    state, ply = jax.vmap(lambda key: opening(key, env, opening_plies))(jax.random.split(key, games))
    return Games(state=state, ply=ply)


def opening(key: jax.Array, env: Env, max_plies: int) -> tuple[Any, jax.Array]:
    """Draw one game after 0 to `max_plies` random moves: its state and the number of moves made.

    A move that would end the game is not made, so there may be fewer moves than were drawn.
    """
    init_key, length_key, moves_key = jax.random.split(key, 3)
    length = jax.random.randint(length_key, (), 0, max_plies + 1)

    def move(ply: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, made = carry
        action_key, step_key = jax.random.split(jax.random.fold_in(moves_key, ply))
        logits = jnp.where(env.legal_action_mask(state), 0.0, -jnp.inf)
        after = env.step(state, jax.random.categorical(action_key, logits), step_key)
        keep = (ply < length) & ~is_finished(after)
        return select(keep, after, state), made + keep

    return jax.lax.fori_loop(0, max_plies, move, (env.init(init_key), jnp.int32(0)))


def play(
    params: PyTree,
    games: Games,
    key: jax.Array,
    *,
    env: Env,
    model: Model,
    explorer: Explorer,
    steps: int,
    opening_plies: int,
) -> tuple[Games, Trajectory]:
    """Play `steps` moves in every game; a game that ends is followed by a fresh one at the next move.

    The value of the position a move led to is the search's, found at the next move; the network alone is asked where
    there is none: at the end of the segment and where the rules cut a game short.
    """

    count = games.ply.size
    begin = functools.partial(start, env=env, games=count, opening_plies=opening_plies)

    def judge(keys: jax.Array, state: Any) -> jax.Array:
        value = model.evaluate(params, keys, state)[0].value.astype(jnp.float32)
        return jnp.where(jnp.isfinite(value), value, 0)  # as in a search; in the replay it would stay for long

    def step(carry: tuple[Games, _Pool], now: tuple[jax.Array, jax.Array]) -> tuple[tuple[Games, _Pool], Trajectory]:
        (games, pool), (number, key) = carry, now
        search_key, model_key, pool_key = jax.random.split(key, 3)
        step_keys, value_keys = jax.random.split(model_key, (2, count))
        choice = explorer(params, search_key, games.state, games.ply)
        transition, after = model.step(params, step_keys, games.state, choice.action)
        done = is_finished(after)
        unsearched = jnp.where(done, transition.discount != 0, number == steps - 1)
        judged = jax.lax.cond(jnp.any(unsearched), judge, lambda *_: jnp.zeros(count, jnp.float32), value_keys, after)
        played = Trajectory(
            state=games.state,
            ply=games.ply,
            action_weights=choice.action_weights,
            policy_weight=choice.policy_weight,
            value=choice.value,
            reward=transition.reward,
            discount=transition.discount,
            next_value=jnp.where(unsearched, judged, 0),
            done=done,
        )
        pool, fresh = _take(pool, done, lambda: begin(pool_key))
        games = jax.vmap(select)(done, fresh, Games(state=after, ply=games.ply + 1))
        return (games, pool), played

    used_up = _Pool(games=games, used=jnp.int32(count))
    moves = jnp.arange(steps), jax.random.split(key, steps)
    (games, _), played = jax.lax.scan(step, (games, used_up), moves)
    following = jnp.concatenate([played.value[1:], played.next_value[-1:]])
    return games, dataclasses.replace(played, next_value=jnp.where(played.done, played.next_value, following))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _Pool:
    """Games about to begin, drawn together: drawing as many at every move would cost as much as a small search."""

    games: Games  # [B]
    used: jax.Array  # [] int32: so many of them, the first ones, have been taken


def _take(pool: _Pool, wanted: jax.Array, draw: Callable[[], Games]) -> tuple[_Pool, Games]:
    """Take a game, never taken before, for every row that is `wanted [B]`; draw a new pool where it has too few.

    Rows that want none get some game too.
    """
    count = jnp.sum(wanted, dtype=jnp.int32)
    size = wanted.size
    pool = jax.lax.cond(pool.used + count > size, lambda: _Pool(games=draw(), used=jnp.int32(0)), lambda: pool)
    place = (pool.used + jnp.cumsum(wanted) - wanted) % size
    taken = jax.tree.map(lambda x: x[place], pool.games)
    return dataclasses.replace(pool, used=pool.used + count), taken
