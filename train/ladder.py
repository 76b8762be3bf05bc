"""Which matches are played to measure a run, and the ratings that follow from them.

At each evaluation the newest agent meets UCT, the yardstick, and the agent before it. At the end the match with
UCT is a long one, for that score is the run's result, and the agent also meets random play. A few agents at even
distances along the run then meet their neighbours among them, unless they have met before, so that the whole climb
is rated by more than a chain of small steps.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxmcts.model import Env
from train import elo, names
from train.checkpoint import CheckpointError
from train.config import Config
from train.elo import Rating
from train.network import Params
from train.players import Entrant, Random, Trained, Uct, meet
from train.score import Score

RUNGS = 5  # agents of the ladder at the end, at most


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match:
    """Who met whom in an evaluation, and how `first` did."""

    iteration: int
    first: str  # as in `train.names`
    second: str
    score: Score
    final: bool  # played at the end of the run

    def to_json(self) -> dict[str, Any]:
        """Make the line of `metrics.jsonl`."""
        low, high = self.score.interval()
        return {
            "kind": "match",
            "iteration": self.iteration,
            "first": self.first,
            "second": self.second,
            **dataclasses.asdict(self.score),
            "score": self.score.mean,
            "low": low,
            "high": high,
            "final": self.final,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ladder:
    """Plays the matches of a run, each of `config.match_games` games."""

    env: Env
    config: Config

    def measure(
        self,
        params: Params,
        iteration: int,
        earlier: Mapping[int, Params],
        key: jax.Array,
        *,
        final: bool,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[Match]:
        """Play what is due for the agent of `iteration`, match by match; that with UCT comes first.

        `earlier` has the parameters of agents by iteration and may read them when asked; those of `iteration` and
        after are not looked at. An agent that cannot be read is left out, and a line says so.
        `stopped` is asked before every `config.match_games` games; once it is true no more are played, and a match
        that is not played to its end is not yielded.
        """
        line = [*sorted(step for step in earlier if step < iteration), iteration]
        agents = self._read(earlier, _rungs(line, final=final)) | {iteration: params}
        entrants = {step: self._agent(step, agents[step]) for step in agents}
        newest, uct = entrants[iteration], self._uct()

        pairs = [(newest, uct, self.config.final_matches if final else 1)]
        met = set(itertools.pairwise(line[:-1]))  # each of them met the one before it when it was the newest
        rungs = itertools.pairwise(sorted(agents))
        pairs += [(entrants[upper], entrants[lower], 1) for lower, upper in rungs if (lower, upper) not in met]
        if final:
            pairs += [(newest, Entrant(name=names.RANDOM, player=Random(self.env)), 1)]
        for number, (first, second, repeats) in enumerate(pairs):
            score = self._play(first, second, jax.random.fold_in(key, number), repeats, stopped)
            if score is None:
                return
            yield Match(iteration=iteration, first=first.name, second=second.name, score=score, final=final)

    def _agent(self, iteration: int, params: Params) -> Entrant:
        return Entrant(name=names.agent(iteration), player=Trained(self.env, self.config), params=params)

    def _uct(self) -> Entrant:
        rollouts = self.config.opponent_num_simulations
        return Entrant(name=names.uct(rollouts), player=Uct(self.env, rollouts))

    def _read(self, earlier: Mapping[int, Params], steps: list[int]) -> dict[int, Params]:
        read = {}
        for step in steps:
            try:
                read[step] = earlier[step]
            except CheckpointError as error:
                print(f"Agent {step} plays no match: {error}.")
        return read

    def _play(
        self, first: Entrant, second: Entrant, key: jax.Array, repeats: int, stopped: Callable[[], bool]
    ) -> Score | None:
        scores: list[np.ndarray] = []
        while len(scores) < repeats:
            if stopped():
                return None
            played = meet(
                first,
                second,
                jax.random.fold_in(key, len(scores)),
                env=self.env,
                games=self.config.match_games,
                opening_plies=self.config.arena_opening_plies,
            )
            scores.append(played)
        return Score.count(np.concatenate(scores))


def _rungs(line: list[int], *, final: bool) -> list[int]:
    """Choose who joins the newest agent, the last in line: the one before it, in the end a few at even distances."""
    places = np.linspace(0, len(line) - 1, min(RUNGS, len(line))) if final else np.arange(len(line))[-2:]
    return [line[round(place)] for place in places[:-1]]


def ratings(lines: Iterable[Mapping[str, Any]]) -> dict[str, Rating]:
    """Rate all players of a run by the lines of its `metrics.jsonl`, UCT being 0; empty if there was no match.

    Raises `ValueError` if nobody played UCT, to which ratings are relative.
    Every match counts alike, whenever it was played: an agent is the same player in all of them.
    """
    results = [(line["first"], line["second"], Score.of(line)) for line in lines if line.get("kind") == "match"]
    if not results:
        return {}
    players = {name for first, second, _ in results for name in (first, second)}
    anchor = next(filter(names.is_uct, players), None)
    if anchor is None:
        raise ValueError(f"Nobody among {sorted(players)} is UCT, whose rating is 0: give a match against it too.")
    return elo.fit(results, anchor=anchor)
