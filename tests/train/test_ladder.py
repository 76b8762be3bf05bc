import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import pytest

import envs
from train import elo, ladder, match, presets
from train.checkpoint import CheckpointError
from train.ladder import Ladder, Match
from train.players import Random, Trained, Uct
from train.score import Score

CONFIG = dataclasses.replace(presets.debug(), match_games=8, final_matches=2, opponent_num_simulations=4)
ENV = envs.make(CONFIG.game)
LADDER = Ladder(env=ENV, config=CONFIG)
STRENGTH = {Random: 0, Uct: 50}


@pytest.fixture(autouse=True)
def decided_by_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play no games, which `test_loop.py` does: an agent's parameters say how many of 100 games it would win."""

    def play(
        pair: tuple[Any, Any], params: tuple[Any, Any], key: jax.Array, *, env: Any, games: int, opening_plies: int
    ) -> jax.Array:
        assert env == ENV and opening_plies == CONFIG.arena_opening_plies
        first, second = (
            own if isinstance(player, Trained) else STRENGTH[type(player)] for player, own in zip(pair, params)
        )
        return jax.random.bernoulli(key, (100 + first - second) / 200, (games,)).astype(float)

    monkeypatch.setattr(match, "play", play)


class Kept(Mapping[int, int]):
    """The agents of some iterations, each 10 stronger than the one before, of which one cannot be read."""

    def __init__(self, *iterations: int, damaged: int | None = None):
        self.iterations, self.damaged, self.read = iterations, damaged, set[int]()

    def __getitem__(self, iteration: int) -> int:
        if iteration == self.damaged:
            raise CheckpointError("it was never finished")
        self.read.add(iteration)
        return 10 * iteration

    def __iter__(self) -> Iterator[int]:
        return iter(self.iterations)

    def __len__(self) -> int:
        return len(self.iterations)


def measure(iteration: int, earlier: Mapping[int, Any], *, final: bool) -> list[Match]:
    return list(LADDER.measure(10 * iteration, iteration, earlier, jax.random.key(iteration), final=final))


def pairs(matches: list[Match]) -> list[tuple[str, str, int]]:
    return [(match.first, match.second, match.score.games) for match in matches]


def test_an_evaluation_meets_uct_and_the_agent_before() -> None:
    assert pairs(measure(1, {}, final=False)) == [("agent@1", "uct:4", 8)]
    kept = Kept(1, 2, 3, 4, 9)  # one of the same iteration, as after a resume, and a later one are no earlier ones
    assert pairs(measure(4, kept, final=False)) == [("agent@4", "uct:4", 8), ("agent@4", "agent@3", 8)]
    assert kept.read == {3}


def test_the_end_has_a_long_match_and_a_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    kept = Kept(*range(1, 10), damaged=3)
    matches = measure(10, kept, final=True)
    assert pairs(matches) == [
        ("agent@10", "uct:4", 16),
        ("agent@5", "agent@1", 8),
        ("agent@8", "agent@5", 8),
        ("agent@10", "agent@8", 8),
        ("agent@10", "random", 8),
    ]
    assert capsys.readouterr().out == "Agent 3 plays no match: it was never finished.\n"
    assert kept.read == {1, 5, 8}
    run = [match for step in range(1, 10) for match in measure(step, Kept(*range(1, step)), final=False)]
    rated = ladder.ratings([match.to_json() for match in run + matches])
    assert rated["uct:4"] == elo.Rating(elo=0, low=0, high=0)
    assert set(rated) == {"uct:4", "random", *(f"agent@{step}" for step in range(1, 11))}
    assert rated["random"].elo < rated["agent@1"].elo < rated["agent@5"].elo < rated["agent@10"].elo


def test_a_first_evaluation_may_be_the_last() -> None:
    assert pairs(measure(1, {}, final=True)) == [("agent@1", "uct:4", 16), ("agent@1", "random", 8)]


def test_neighbours_who_met_in_the_run_do_not_meet_again() -> None:
    expected = [("agent@16", "uct:4", 16), ("agent@16", "agent@12", 8), ("agent@16", "random", 8)]
    assert pairs(measure(16, Kept(12, 4, 8), final=True)) == expected


def test_games_of_one_evaluation_are_not_the_same_games_again() -> None:
    ladder = dataclasses.replace(LADDER, config=dataclasses.replace(CONFIG, match_games=64))
    long, *_ = ladder.measure(50, 5, {}, jax.random.key(0), final=True)
    short, *_ = ladder.measure(50, 5, {}, jax.random.key(0), final=False)
    assert long.score.wins != 2 * short.score.wins


@pytest.mark.parametrize(("asked", "whole"), [(0, 0), (1, 0), (2, 1), (4, 3)])
def test_once_stopped_nothing_more_is_played_and_no_part_of_a_match_counts(asked: int, whole: int) -> None:
    """The matches at the end: against UCT of two parts, then against the agent before and random play."""
    answers = iter([False] * asked + [True])
    stopped = lambda: next(answers)  # noqa: E731
    found = list(LADDER.measure(50, 5, Kept(1, 3), jax.random.key(0), final=True, stopped=stopped))
    assert found == list(LADDER.measure(50, 5, Kept(1, 3), jax.random.key(0), final=True))[:whole]


def test_a_match_is_a_line_of_the_metrics() -> None:
    played = Match(
        iteration=12, first="agent@12", second="uct:100", score=Score(wins=60, draws=0, losses=40), final=True
    )
    line = played.to_json()
    assert [line.pop(name) for name in ("score", "low", "high")] == pytest.approx([0.6, 0.502, 0.691], abs=5e-4)
    assert line == {
        "kind": "match",
        "iteration": 12,
        "first": "agent@12",
        "second": "uct:100",
        "wins": 60,
        "draws": 0,
        "losses": 40,
        "final": True,
    }


def test_ratings_read_the_lines_of_matches_alone() -> None:
    played = {"kind": "match", "first": "agent@2", "second": "uct:100", "wins": 75, "draws": 0, "losses": 25}
    lines = [{"kind": "iteration", "iteration": 1}, played, {"kind": "iteration", "iteration": 2}]
    assert ladder.ratings(lines[:1]) == {}
    with pytest.raises(ValueError, match=r"Nobody among \['agent@2', 'random'\] is UCT"):
        ladder.ratings([played | {"second": "random"}])
    assert ladder.ratings(lines)["agent@2"].elo == pytest.approx(elo.difference(75.5 / 101))
