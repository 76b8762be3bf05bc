"""The curves of a report: how strong the agents were, and what changed from iteration to iteration."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from train import charts, names
from train.charts import Line
from train.record import Fields, Record, number
from train.score import Score


def strength(record: Record, ratings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Draw how strong the agents were, over the minutes at which each was ready: in Elo, and against UCT."""
    ready = {names.agent(line["iteration"]): number(line, "minutes") for line in record.iterations}
    opponent = names.uct(record.config.opponent_num_simulations)
    elo = _banded((ready[name], r.elo, r.low, r.high) for name, r in ratings.items() if name in ready)
    score = _banded(
        (ready[name], score.mean, *score.interval())
        for name, score in _scores(record, opponent).items()
        if name in ready
    )
    levels = [(names.spell_out(name), rating.elo) for name, rating in ratings.items() if not names.is_agent(name)]
    return [
        _chart("elo", "Elo over the minutes of training", _ELO, [elo], levels=levels),
        _chart("score", f"Score against {names.spell_out(opponent)}", _SCORE, [score], percent=True, limits=(0, 1)),
    ]


def _banded(points: Iterable[tuple[float, float, float, float]]) -> Line:
    """Make a line of points `(minutes, middle, low, high)` that come in any order."""
    x, y, low, high = tuple(zip(*sorted(points))) or ((),) * 4
    return Line(label="with its 95 % interval", x=x, y=y, low=low, high=high)


def _scores(record: Record, opponent: str) -> dict[str, Score]:
    """Sum up each player's matches against one opponent."""
    points: dict[str, Counter[str]] = {}
    for line in record.matches:
        if line["second"] == opponent:
            points.setdefault(line["first"], Counter()).update(
                {name: line[name] for name in ("wins", "draws", "losses")}
            )
    return {name: Score.of(total) for name, total in points.items()}


def learning(record: Record) -> list[dict[str, Any]]:
    """Draw what changed from iteration to iteration."""

    def line(label: str, value: Callable[[Fields], float]) -> Line:
        minutes = [number(fields, "minutes") for fields in record.iterations]
        return Line(label=label, x=minutes, y=[value(fields) for fields in record.iterations])

    def of(name: str) -> Callable[[Fields], float]:
        return lambda fields: number(fields, name)

    def draws(fields: Fields) -> float:
        return number(fields, "draws") / fields["games"] if fields.get("games") else math.nan

    policy = [line("cross-entropy", of("policy_loss")), line("KL divergence", of("policy_kl"))]
    return [
        _chart("policy", "Error of the policy", _POLICY, policy),
        _chart("value", "Error of the value", _VALUE, [line("squared error", of("value_loss"))]),
        _chart("length", "Length of the games", _LENGTH, [line("plies", of("game_length"))]),
        _chart("draws", "Drawn games", _DRAWS, [line("drawn", draws)], percent=True, limits=(0, 1)),
    ]


_ELO = (
    "From all matches of the run together. 100 points more mean a score of 64 %, 400 more 91 %; UCT is 0. "
    "The band is the 95 % interval, dashed lines are the other players."
)
_SCORE = "Points per game, a draw counting one half. The band is the 95 % interval: fewer games, wider band."
_POLICY = (
    "How far the network's choice of moves is from what the search finds, in nats. The KL divergence is the part that "
    "can be learned: 0 would be a network that knows what the search finds. It may rise at first, for the less the "
    "network knows, the less the search finds that it could learn."
)
_VALUE = "Mean squared difference between the result the network foretells, -1 to 1, and the target it learns from."
_LENGTH = "Mean number of plies (moves of either side) of the games of self-play that ended."
_DRAWS = "Share of the games of self-play that ended without a winner."


def _chart(name: str, title: str, text: str, lines: Sequence[Line], **options: Any) -> dict[str, Any]:
    svg = charts.chart(name, title, lines, x_label="minutes", **options)
    return {"title": title, "text": text.replace(" %", "\N{NO-BREAK SPACE}%"), "svg": Markup(svg)}
