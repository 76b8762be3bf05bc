from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.base import BoardGame
from tests.train.toys import Pairs
from train import arena
from train.arena import Score

TIC_TAC_TOE = envs.make("tic_tac_toe")


def prefers(env: BoardGame, order: list[int]) -> arena.Player:
    """A player that takes the first legal action of a list."""
    rank = np.argsort(order)

    def choose(params: Any, key: jax.Array, state: Any) -> jax.Array:
        mask = jax.vmap(env.legal_action_mask)(state)
        return jnp.argmin(jnp.where(mask, rank, len(order)), axis=1)

    return choose


LOWEST = prefers(TIC_TAC_TOE, list(range(9)))
# Takes the diagonal 2, 4, 6 before the lowest-cell player has a line, from either seat.
DIAGONAL = prefers(TIC_TAC_TOE, [2, 4, 6, 0, 1, 3, 5, 7, 8])
# Stops the top row at once and then fills in what never makes a line for anybody.
HIGHEST = prefers(TIC_TAC_TOE, list(range(8, -1, -1)))


def match(players: tuple[arena.Player, arena.Player], *, plies: int = 0, games: int = 20) -> jax.Array:
    return arena.play(players, (), jax.random.key(0), env=TIC_TAC_TOE, games=games, opening_plies=plies)


def test_wins_are_booked_for_the_winner_from_both_seats() -> None:
    np.testing.assert_array_equal(match((DIAGONAL, LOWEST)), np.ones(20))
    np.testing.assert_array_equal(match((LOWEST, DIAGONAL)), np.zeros(20))


def test_swapping_the_players_swaps_wins_and_losses() -> None:
    scores = match((HIGHEST, LOWEST), plies=4, games=40)
    swapped = match((LOWEST, HIGHEST), plies=4, games=40)
    # The same openings; what was seat 0 of one player is seat 0 of the other in the other half.
    np.testing.assert_array_equal(scores[:20], 1 - swapped[20:])
    np.testing.assert_array_equal(scores[20:], 1 - swapped[:20])
    counted, other = arena.count(scores), arena.count(swapped)
    assert counted.games == other.games == 40
    assert (counted.wins, counted.draws, counted.losses) == (other.losses, other.draws, other.wins)
    assert 0 < counted.wins < 40


def test_a_player_against_itself_is_even_by_pairs() -> None:
    scores = np.asarray(match((LOWEST, LOWEST), plies=4, games=40))
    np.testing.assert_array_equal(scores[:20] + scores[20:], np.ones(20))


def test_movers_who_move_twice_and_games_without_a_result() -> None:
    env = Pairs(length=5)  # movers 0, 1, 1, 0, 0: seat 0 wins
    player = prefers(env, [0, 1])
    play = lambda env: arena.play((player, player), (), jax.random.key(0), env=env, games=4, opening_plies=0)  # noqa: E731
    np.testing.assert_array_equal(play(env), [1, 1, 0, 0])
    np.testing.assert_array_equal(play(Pairs(length=5, limit=3)), [0.5] * 4)


def test_odd_numbers_of_games_are_refused() -> None:
    with pytest.raises(ValueError, match="`games` is 3, expected an even number"):
        match((LOWEST, LOWEST), games=3)


def test_draws_count_one_half() -> None:
    score = Score(wins=3, draws=2, losses=1)
    assert (score.games, score.mean) == (6, 4 / 6)
    assert arena.count(np.array([1, 0.5, 1, 0, 0.5, 1])) == score


@pytest.mark.parametrize(
    ("score", "low", "high"),
    [
        (Score(wins=60, draws=0, losses=40), 0.502, 0.691),
        (Score(wins=50, draws=20, losses=30), 0.502, 0.691),
        (Score(wins=20, draws=0, losses=0), 0.839, 1.0),
        (Score(wins=0, draws=0, losses=20), 0.0, 0.161),
    ],
)
def test_interval_is_wilsons(score: Score, low: float, high: float) -> None:
    assert score.interval() == pytest.approx((low, high), abs=5e-4)


def test_text_names_all_numbers() -> None:
    text = str(Score(wins=60, draws=0, losses=40))
    assert text == "60.0% (95 % interval 50.2% to 69.1%) over 100 games: 60 won, 0 drawn, 40 lost"
