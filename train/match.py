"""Matches between two players, wholly inside `jax.jit`.

Every opening is played twice, once from each side, so that a good opening favours nobody. Results are
booked for the first player, whatever its seat, from the sign of all it earned.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from envs.base import is_finished, select
from jaxmcts.model import Env, PyTree
from train.selfplay import opening

# player(params, key, state [B]) -> action [B]; what it chooses in a finished game is not looked at
Player = Callable[[PyTree, jax.Array, Any], jax.Array]
_Carry = tuple[jax.Array, Any, jax.Array]  # turns so far, state [games], earned [games] by the first player


@functools.partial(jax.jit, static_argnames=("players", "env", "games", "opening_plies"))
def play(
    players: tuple[Player, Player],
    params: tuple[PyTree, PyTree],
    key: jax.Array,
    *,
    env: Env,
    games: int,
    opening_plies: int,
) -> jax.Array:
    """Play `games` games to their ends: the first player's scores `[games]`, 1 won, 0.5 drawn, 0 lost.

    `params` are those of the two players. Openings are 0 to `opening_plies` random moves. Row i and row
    i + games / 2 share an opening; the first player has seat 0 in the first half. Undecided games count as draws.
    The program is compiled once for two kinds of players (`train.players`): other parameters, such as those of
    another checkpoint, and other keys are only arguments. Raises `ValueError` for an odd number of games.

    The players take turns, each with all games at once, and moves in those where it is to move. So both searches
    are always full where seats alternate; players who move twice in a row only wait. A finished game is frozen.
    """
    if games % 2:
        raise ValueError(f"`games` is {games}, expected an even number: every opening is played twice.")
    opening_key, turns_key = jax.random.split(key)
    opening_keys = jax.random.split(opening_key, games // 2)
    openings, _ = jax.vmap(lambda key: opening(key, env, opening_plies))(opening_keys)
    state = jax.tree.map(lambda x: jnp.concatenate([x, x]), openings)
    seat = jnp.repeat(jnp.arange(2), games // 2)  # of the first player

    def running(carry: _Carry) -> jax.Array:
        return ~jnp.all(is_finished(carry[1]))

    def turn(player: Player, own: PyTree, which: jax.Array | int, carry: _Carry) -> _Carry:
        number, state, earned = carry
        search_key, step_key = jax.random.split(jax.random.fold_in(turns_key, number))
        action = player(own, search_key, state)
        after = jax.vmap(env.step)(state, action, jax.random.split(step_key, games))
        moves = (state.to_play == seat ^ which) & ~is_finished(state)
        earned += jnp.where(moves, after.rewards[jnp.arange(games), seat], 0)
        return number + 1, jax.vmap(select)(moves, after, state), earned

    def both(carry: _Carry) -> _Carry:
        return turn(players[1], params[1], 1, turn(players[0], params[0], 0, carry))

    def alike(carry: _Carry) -> _Carry:
        # One search in the program serves two players of one kind: it compiles in half the time.
        which = carry[0] % 2
        own = jax.tree.map(lambda first, second: jnp.where(which == 0, first, second), *params)
        return turn(players[0], own, which, carry)

    body = alike if players[0] == players[1] else both
    _, _, earned = jax.lax.while_loop(running, body, (jnp.int32(0), state, jnp.zeros(games)))
    return (jnp.sign(earned) + 1) / 2
