"""Elo ratings from the results of matches: the Bradley-Terry model, fitted with a weak prior.

Player i scores 1 / (1 + 10^((R_j - R_i) / 400)) a game against player j, a draw counting one half: a
difference of 100 is a score of 64 %, one of 400 is 91 %. Only differences mean something, so one player, the
anchor, is set to 0. All results are used at once, whoever met whom: the likelihood is concave and Newton's
method finds its top (Hunter 2004, "MM algorithms for generalized Bradley-Terry models").

The prior is of the kind that BayesElo uses (Coulom 2005, https://www.remi-coulom.fr/Bayesian-Elo/): a drawn game
or so that was never played, spread over those a player met. It gives players who won or lost everything a finite
rating, fades as games are played, and for two players it is Jeffreys' prior of the score.
"""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from train.score import Score

SCALE = 400 / math.log(10)  # Elo in one unit of log-odds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rating:
    """Elo above the anchor, and its 95 % band; the anchor itself is 0 without a band."""

    elo: float
    low: float
    high: float


def difference(score: float) -> float:
    """Give the Elo difference at which a score (0 to 1, points a game) is expected; infinite for 0 and 1."""
    if score in (0, 1):
        return math.inf if score else -math.inf
    return SCALE * math.log(score / (1 - score))


def fit(
    results: Iterable[tuple[str, str, Score]], *, anchor: str, prior_draws: float = 1.0, z: float = 1.96
) -> dict[str, Rating]:
    """Rate all players in `results`, each `(first, second, score of the first)`; by name, the strongest first.

    A pair may come several times and in either order. `prior_draws` drawn games are added for every two players:
    half of one for each player, spread over its opponents as its games are; with 0 this is maximum likelihood. The
    band is `z` standard errors of the difference to the anchor, from the inverse of the observed information; it is
    too narrow on the far side of a player who won or lost everything.

    Raises `ValueError` if `prior_draws` or a score is negative or not finite, a score has no games, the anchor played
    nothing or a player cannot be compared with it: there is no chain of games between them or, with `prior_draws` 0,
    no chain of points in both directions (Ford 1957).
    """
    if not 0 <= prior_draws < math.inf:
        raise ValueError(f"`prior_draws` is {prior_draws}, expected a finite number of games, 0 or more: 1 is usual.")
    names, points = _table(results, prior_draws)
    if anchor not in names:
        raise ValueError(f"`anchor` is {anchor!r}, but nobody of that name played: choose one of {names}.")
    zero = names.index(anchor)
    _check_comparable(names, points, zero)
    strength, information = _climb(points, zero)
    others = np.arange(len(names)) != zero
    error = np.zeros(len(names))
    error[others] = np.sqrt(np.diag(np.linalg.inv(information[np.ix_(others, others)])))
    low, high = SCALE * (strength - z * error), SCALE * (strength + z * error)
    return {
        names[i]: Rating(elo=float(SCALE * strength[i]), low=float(low[i]), high=float(high[i]))
        for i in np.argsort(-strength, kind="stable")
    }


def _table(results: Iterable[tuple[str, str, Score]], prior_draws: float) -> tuple[list[str], np.ndarray]:
    """Sum up who scored how many points against whom: names, and `points[i, j]` of i against j."""
    results = list(results)
    names = sorted({name for first, second, _ in results for name in (first, second)})
    points = np.zeros((len(names), len(names)))
    for first, second, score in results:
        if first == second:
            raise ValueError(f"`results` has a match of {first!r} against itself: that tells nothing; leave it out.")
        if not (min(score.wins, score.draws, score.losses) >= 0 and 0 < score.games < math.inf):
            raise ValueError(
                f"`results` has {score!r} of {first!r} against {second!r}, expected finite counts of 0 or more and at "
                "least one game: correct it, or leave the match out."
            )
        i, j = names.index(first), names.index(second)
        points[i, j] += score.wins + score.draws / 2
        points[j, i] += score.losses + score.draws / 2
    games = points + points.T
    share = games / np.maximum(games.sum(axis=1, keepdims=True), 1)  # of a player's games that it played with each
    return names, points + prior_draws / 4 * (share + share.T)


def _check_comparable(names: list[str], points: np.ndarray, zero: int) -> None:
    reach = (points > 0) | np.eye(len(names), dtype=bool)
    for _ in names:
        reach = reach @ reach  # of bools: "and", then "or"
    apart = [name for name, near in zip(names, reach[zero] & reach[:, zero]) if not near]
    if apart:
        raise ValueError(
            f"`results` do not tie {', '.join(map(repr, apart))} to {names[zero]!r}, so their ratings cannot be "
            "compared: let them play each other or somebody both have met (without a prior, also until each has "
            "scored)."
        )


def _climb(points: np.ndarray, zero: int) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the log-likelihood, player `zero` held at 0: strengths [P] in log-odds, information [P, P] there."""
    others = np.arange(len(points)) != zero
    strength = np.zeros(len(points))
    while True:
        gap = strength[:, None] - strength
        expected = (1 + np.tanh(gap / 2)) / 2  # the logistic function, without overflow
        weight = (points + points.T) * expected * (1 - expected)
        information = np.diag(weight.sum(axis=1)) - weight
        gradient = (points - (points + points.T) * expected).sum(axis=1)
        step = np.zeros(len(points))
        step[others] = np.linalg.solve(information[np.ix_(others, others)], gradient[others])
        gain = gradient @ step  # twice what a full step promises
        if gain < 1e-12 * points.sum():
            return strength + step, information
        # A full step can overshoot far from the top: halve it until it keeps a part of its promise.
        while _log_likelihood(points, strength + step) < _log_likelihood(points, strength) + 0.1 * (gradient @ step):
            step /= 2
        strength = strength + step


def _log_likelihood(points: np.ndarray, strength: np.ndarray) -> float:
    return -float(np.sum(points * np.logaddexp(0, strength - strength[:, None])))
