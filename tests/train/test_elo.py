import itertools
import math
import random

import numpy as np
import pytest

from train import elo
from train.score import Score


def score(wins: int, losses: int, draws: int = 0) -> Score:
    return Score(wins=wins, draws=draws, losses=losses)


def ratings(results: list[tuple[str, str, Score]], anchor: str = "a", prior_draws: float = 1.0) -> dict[str, float]:
    return {name: rating.elo for name, rating in elo.fit(results, anchor=anchor, prior_draws=prior_draws).items()}


@pytest.mark.parametrize(
    ("points", "expected"),
    [(4 / 6, 120.4), (0.55, 34.9), (0.75, 190.8), (0.5, 0.0), (0.25, -190.8), (1, math.inf), (0, -math.inf)],
)
def test_difference_of_a_score(points: float, expected: float) -> None:
    assert elo.difference(points) == pytest.approx(expected, abs=0.05)


def test_two_players_differ_by_their_score_and_a_draw_is_half_a_win() -> None:
    for result, expected in ((score(75, 25), 190.8), (score(60, 10, draws=30), 190.8), (score(3, 1, draws=2), 120.4)):
        fitted = ratings([("b", "a", result)], prior_draws=0)
        assert fitted["a"] == 0 and fitted["b"] == pytest.approx(expected, abs=0.05)


def test_the_prior_of_two_players_is_one_drawn_game() -> None:
    assert ratings([("b", "a", score(3, 0))])["b"] == pytest.approx(elo.difference(3.5 / 4))
    split = [("b", "a", score(2, 0)), ("a", "b", score(0, 1))]  # one pair, however often it met
    assert ratings(split) == pytest.approx(ratings([("b", "a", score(3, 0))]))


def test_the_band_of_two_players_is_the_deltamethods() -> None:
    rating = elo.fit([("b", "a", score(75, 25))], anchor="a", prior_draws=0)["b"]
    half = 1.96 * elo.SCALE / math.sqrt(100 * 0.75 * 0.25)
    assert (rating.low, rating.high) == pytest.approx((rating.elo - half, rating.elo + half))


def test_a_chain_adds_up_and_its_band_widens() -> None:
    fitted = elo.fit([("b", "a", score(75, 25)), ("c", "b", score(75, 25))], anchor="a", prior_draws=0)
    assert fitted["c"].elo == pytest.approx(2 * fitted["b"].elo)
    width = {name: rating.high - rating.low for name, rating in fitted.items()}
    assert width["a"] == 0 and width["c"] == pytest.approx(math.sqrt(2) * width["b"])
    assert list(fitted) == ["c", "b", "a"]  # the strongest first


def test_the_anchor_only_shifts() -> None:
    results = [("b", "a", score(70, 30)), ("c", "b", score(60, 40)), ("c", "a", score(80, 20))]
    one, other = ratings(results, anchor="a"), ratings(results, anchor="c")
    assert {name: one[name] - one["c"] for name in one} == pytest.approx(other, abs=1e-6)


def test_neither_order_nor_side_matters() -> None:
    results = [
        ("b", "a", score(7, 3)),
        ("c", "b", score(6, 2, draws=2)),
        ("c", "a", score(9, 1)),
        ("b", "a", score(1, 2)),
    ]
    expected = elo.fit(results, anchor="a")
    for order in itertools.permutations(results):
        assert elo.fit(order, anchor="a") == expected
    turned = [(second, first, score(s.losses, s.wins, draws=s.draws)) for first, second, s in results]
    assert elo.fit(turned, anchor="a") == expected


def test_all_wins_and_all_losses_have_finite_ratings() -> None:
    fitted = ratings([("b", "a", score(128, 0)), ("a", "c", score(128, 0)), ("b", "c", score(10_000, 0))])
    assert 500 < fitted["b"] < 2000 and fitted["c"] == pytest.approx(-fitted["b"])


def test_players_who_cannot_be_compared_are_named() -> None:
    apart = [("b", "a", score(5, 5)), ("c", "d", score(5, 5))]
    with pytest.raises(ValueError, match="do not tie 'c', 'd' to 'a'"):
        elo.fit(apart, anchor="a")
    with pytest.raises(ValueError, match="do not tie 'b' to 'a'"):
        elo.fit([("b", "a", score(5, 0))], anchor="a", prior_draws=0)
    with pytest.raises(ValueError, match="`anchor` is 'e', but nobody"):
        elo.fit(apart, anchor="e")
    with pytest.raises(ValueError, match="'a' against itself"):
        elo.fit([("a", "a", score(5, 5))], anchor="a")


@pytest.mark.parametrize("prior_draws", [math.inf, math.nan, -1.0, -math.inf])
def test_a_prior_of_no_number_of_games_is_refused(prior_draws: float) -> None:
    with pytest.raises(ValueError, match=f"`prior_draws` is {prior_draws}, expected a finite number"):
        elo.fit([("b", "a", score(3, 1))], anchor="a", prior_draws=prior_draws)


@pytest.mark.parametrize("counts", [(0, 0, 0), (-1, 5, 0), (5, -1, 0), (5, 5, -1), (math.inf, 0, 0), (0, 0, math.nan)])
def test_a_score_that_no_match_has_is_refused(counts: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"`results` has Score\(.* of 'b' against 'a', expected finite counts"):
        elo.fit([("c", "a", score(3, 1)), ("b", "a", score(*counts))], anchor="a")


@pytest.mark.parametrize("prior_draws", [1e-300, 1e-9, 1e9, 1e300])
def test_odd_priors_and_counts_come_to_an_end(prior_draws: float) -> None:
    results = [("b", "a", score(10**15, 0)), ("c", "b", score(1, 0)), ("a", "c", score(0, 0, draws=1))]
    assert all(math.isfinite(elo) for elo in ratings(results, prior_draws=prior_draws).values())


def test_simulated_ratings_are_recovered_and_bands_cover_them() -> None:
    """Ladders of five players whose strength is known: 95 % of the bands hold the truth, and nobody is biased."""
    draw, truth = random.Random(0), {"a": 0.0, "b": 150.0, "c": 250.0, "d": 400.0, "e": 500.0}
    pairs = [*itertools.pairwise(truth), *(("a", name) for name in "cde")]

    def meet(first: str, second: str) -> tuple[str, str, Score]:
        expected = 1 / (1 + 10 ** ((truth[second] - truth[first]) / 400))
        wins = sum(draw.random() < expected for _ in range(64))
        return first, second, score(wins, 64 - wins)

    errors, covered = [], []
    for _ in range(200):
        fitted = elo.fit([meet(*pair) for pair in pairs], anchor="a")
        for name in "bcde":
            errors.append(fitted[name].elo - truth[name])
            covered.append(fitted[name].low <= truth[name] <= fitted[name].high)
    assert abs(np.mean(errors)) < 6  # of 325: the prior shrinks a little
    assert 0.92 < np.mean(covered) < 0.98
