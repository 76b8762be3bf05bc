"""Matches between two players, wholly inside `jax.jit`, and what their results say.

Every opening is played twice, once from each side, so that a good opening favours nobody. Results are
booked for the first player, whatever its seat, from the sign of all it earned.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from envs.base import is_finished, select
from jaxmcts.model import Env, PyTree
from train.selfplay import opening

# player(params, key, state [B]) -> action [B]
Player = Callable[[PyTree, jax.Array, Any], jax.Array]


def play(
    players: tuple[Player, Player], params: PyTree, key: jax.Array, *, env: Env, games: int, opening_plies: int
) -> jax.Array:
    """Play `games` games to their ends: the first player's scores `[games]`, 1 won, 0.5 drawn, 0 lost.

    `params` go to both players. Openings are 0 to `opening_plies` random moves. Row i and row i + games / 2
    share an opening; the first player has seat 0 in the first half. Undecided games count as draws.

    In each round each player moves in those games where it is to move, so both searches are always full,
    where seats alternate; players who move twice in a row only wait for a round. A finished game is frozen.
    """
    if games % 2:
        raise ValueError(f"`games` is {games}, expected an even number: every opening is played twice.")
    opening_key, rounds_key = jax.random.split(key)
    opening_keys = jax.random.split(opening_key, games // 2)
    openings, _ = jax.vmap(lambda key: opening(key, env, opening_plies))(opening_keys)
    state = jax.tree.map(lambda x: jnp.concatenate([x, x]), openings)
    seat = jnp.repeat(jnp.arange(2), games // 2)  # of the first player

    def running(carry: tuple[jax.Array, Any, jax.Array]) -> jax.Array:
        return ~jnp.all(is_finished(carry[1]))

    def play_round(carry: tuple[jax.Array, Any, jax.Array]) -> tuple[jax.Array, Any, jax.Array]:
        number, state, earned = carry
        for which, player in enumerate(players):
            turn_key = jax.random.fold_in(jax.random.fold_in(rounds_key, number), which)
            search_key, step_key = jax.random.split(turn_key)
            action = player(params, search_key, state)
            after = jax.vmap(env.step)(state, action, jax.random.split(step_key, games))
            moves = (state.to_play == seat ^ which) & ~is_finished(state)
            state = jax.vmap(select)(moves, after, state)
            earned += jnp.where(moves, after.rewards[jnp.arange(games), seat], 0)
        return number + 1, state, earned

    _, _, earned = jax.lax.while_loop(running, play_round, (jnp.int32(0), state, jnp.zeros(games)))
    return (jnp.sign(earned) + 1) / 2


def uct_player(env: Env, num_simulations: int) -> Player:
    """The yardstick: plain UCT with one random rollout per leaf; needs no parameters."""
    model = jaxmcts.model_from_env(env, jaxmcts.rollout_evaluator(env, 1))

    def choose(params: PyTree, key: jax.Array, state: Any) -> jax.Array:
        del params
        return jaxmcts.uct_policy((), key, state, model, num_simulations=num_simulations).action

    return choose


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """A match in numbers, in the view of the first player."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def mean(self) -> float:
        """Points per game, a draw counting one half."""
        return (self.wins + self.draws / 2) / self.games

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Give Wilson's interval of the mean score, 95 % by default.

        It treats games as independent and draws as half wins. Both err on the wide side: a draw varies less,
        and the two games of an opening that favours one seat balance each other.
        """
        n, p = self.games, self.mean
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(centre - half, 0.0), min(centre + half, 1.0)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.mean:.1%} (95 % interval {low:.1%} to {high:.1%}) over {self.games} games: "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost"
        )


def count(scores: Any) -> Score:
    """Count the scores of `play`."""
    wins, draws, losses = (int((scores == points).sum()) for points in (1.0, 0.5, 0.0))
    return Score(wins=wins, draws=draws, losses=losses)
