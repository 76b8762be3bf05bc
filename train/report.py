"""The report of a run: one page that needs nothing from outside and tells what was trained, how and how well.

`python -m train.report RUN` writes `report.html` into the folder of a run. This module says what stands on the
page, `report.html.jinja` how it looks, `charts` draws and `showcase` lets the agent play. A run that has only
begun has a report too: it says what is missing.
"""

import argparse
import contextlib
import dataclasses
import inspect
import math
import re
import shlex
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jinja2
from markupsafe import Markup, escape

import envs
from train import charts, checkpoint, ladder, messages, names, run_folder, showcase
from train import record as run_record
from train.agent import Agent, load_agent
from train.charts import Line
from train.config import Config
from train.elo import Rating
from train.presets import PRESETS
from train.record import Fields, Record, number
from train.score import Score

_TEMPLATE = "report.html.jinja"
_STREAM = 2**32 - 1  # of the randomness here; the run's own streams are numbered by its iterations
_FILES = {
    run_folder.CONFIG: "the configuration, the machine and the versions",
    run_folder.METRICS: "the numbers behind this page, one JSON object a line",
    run_folder.CHECKPOINTS: "all that is needed to go on with the run",
    run_folder.AGENTS: "the agents that were measured",
    run_folder.TENSORBOARD: "the curves, for TensorBoard",
}


def write(folder: str | Path, agent: Agent | None = None, *, search: bool = True) -> Path:
    """Write the report of a run into its folder and return its path; a report that is there is replaced.

    `agent` is the one to show, else the newest in the folder. Without `search` no agent is asked anything: the
    sample game and the map of first moves are left out, and writing takes about a second.
    Raises `ValueError` if the folder is no run.
    """
    record = run_record.read(Path(folder))
    missing = _missing(record)
    games: dict[str, Any] = {"game": None, "opening": None}
    if not search:
        missing.append("The sample game and the map of first moves are left out for now.")
    else:
        try:
            key = jax.random.fold_in(jax.random.key(record.config.seed), _STREAM)
            games = _games(agent or load_agent(record.folder), key)
        except (checkpoint.CheckpointError, ValueError) as error:  # no agent yet, or a game without pictures
            missing.append(f"There is no sample game: {error}")
    path = record.folder / run_folder.REPORT
    part = path.with_name(path.name + ".part")
    part.write_text(_render(_page(record) | games | {"missing": missing}), encoding="utf-8")
    part.replace(path)
    return path


def _render(page: Mapping[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(page)


def _page(record: Record) -> dict[str, Any]:
    """Gather all of the page that needs no agent."""
    ratings = _ratings(record)
    preset, command = _command(record.config)
    return {
        "name": record.folder.resolve().name,
        "config": record.config,
        "infinity": math.inf,
        "title": _game_name(record.config.game),
        "iterations": record.iteration,
        "finished": record.finished,
        "duration": _duration(record.minutes),
        "machine": _machine(record),
        "verdict": record.verdict and _match(record.verdict),
        "rating": record.verdict and ratings.get(record.verdict["first"]),
        "strength": _strength(record, ratings),
        "finals": [_match(line) for line in record.finals],
        "learning": _learning(record),
        "effort": _effort(record),
        "preset": preset,
        "command": command,
        "fields": _fields(record.config, PRESETS[preset]()),
        "facts": [*_facts(record.about), *([("digest of the run", record.manifest.digest)] if record.manifest else [])],
        "files": [(name, what) for name, what in _FILES.items() if (record.folder / name).exists()],
    }


def _ratings(record: Record) -> dict[str, Rating]:
    """Rate the players; nobody where the lines that can be read do not tie all of them to UCT."""
    with contextlib.suppress(ValueError):
        return ladder.ratings(record.matches)
    return {}


def _missing(record: Record) -> list[str]:
    missing = []
    if not record.finished:
        missing.append(
            f"The run has not finished: {record.iteration} of {record.config.iterations} iterations are done. "
            "It is going on or was interrupted; this is how far it came. A run that was interrupted goes on with "
            f"{messages.interrupted(record.config, record.folder, record.minutes)}"
        )
    elif record.iteration < record.config.iterations:
        more = messages.out_of_time(record.config, record.folder, record.iteration, record.minutes)
        missing.append(f"The run has ended early: {more}")
    if not record.matches:
        missing.append("No match has been played yet, so nothing is known of the agent's strength.")
    if record.unread:
        missing.append(f"{record.unread} lines of {run_folder.METRICS} cannot be read and are left out.")
    return missing


# Curves.


def _strength(record: Record, ratings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Draw how strong the agents were, over the minutes at which each was ready: in Elo, and against UCT."""
    ready = {names.agent(line["iteration"]): number(line, "minutes") for line in record.iterations}
    opponent = names.uct(record.config.opponent_num_simulations)
    elo = _banded((ready[name], r.elo, r.low, r.high) for name, r in ratings.items() if name in ready)
    score = _banded(
        (ready[name], score.mean, *score.interval())
        for name, score in _scores(record, opponent).items()
        if name in ready
    )
    levels = [(_player(name), rating.elo) for name, rating in ratings.items() if not names.is_agent(name)]
    return [
        _chart("elo", "Elo over the minutes of training", _ELO, [elo], levels=levels),
        _chart("score", f"Score against {_player(opponent)}", _SCORE, [score], percent=True, limits=(0, 1)),
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


def _learning(record: Record) -> list[dict[str, Any]]:
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
    "can be learned: 0 would be a network that knows what the search finds."
)
_VALUE = "Mean squared difference between the result the network foretells, -1 to 1, and the target it learns from."
_LENGTH = "Mean number of plies (moves of either side) of the games of self-play that ended."
_DRAWS = "Share of the games of self-play that ended without a winner."


def _chart(name: str, title: str, text: str, lines: Sequence[Line], **options: Any) -> dict[str, Any]:
    svg = charts.chart(name, title, lines, x_label="minutes", **options)
    return {"title": title, "text": text, "svg": Markup(svg)}


# Figures.


def _match(line: Fields) -> dict[str, Any]:
    games = line["wins"] + line["draws"] + line["losses"]
    first, second = _player(line["first"]), _player(line["second"])
    return {**line, "second": second, "title": f"{first[:1].upper()}{first[1:]} against {second}", "games": games}


def _effort(record: Record) -> dict[str, Any]:
    """Sum up what the run has cost: counts, and minutes by stage with their share of the whole."""
    last = record.iterations[-1] if record.iterations else {}
    counts = {
        "games of self-play that ended": sum(line.get("games") or 0 for line in record.iterations),
        "moves searched in self-play": last.get("positions"),
        "positions judged by the network in self-play": last.get("evaluations"),
        "optimizer steps": last.get("updates"),
        "optimizer steps skipped, their gradient was not finite": last.get("skipped_updates"),
    }
    seconds: Counter[str] = Counter()
    for line in record.iterations:
        seconds.update(line.get("seconds") or {})
    stages = [(stage, spent / 60) for stage, spent in seconds.items()]
    rest = record.minutes - sum(minutes for _, minutes in stages)
    stages += [("matches, checkpoints and the rest", rest)] if rest > 0 else []
    return {
        "counts": [(name, count) for name, count in counts.items() if count is not None],
        "stages": [(stage, _duration(minutes), minutes / max(record.minutes, 1e-9)) for stage, minutes in stages],
    }


def _fields(config: Config, preset: Config) -> list[dict[str, Any]]:
    """List every field of the config: its value, the preset's where that is another, and what it is."""
    meanings = dict(re.findall(r"^    (\w+): .*?  # (.+)$", inspect.getsource(Config), flags=re.MULTILINE))
    changed = _changes(config, preset)
    return [
        {
            "name": field.name,
            "value": _value(getattr(config, field.name)),
            "usual": _value(getattr(preset, field.name)),
            "changed": field.name in changed,
            "meaning": Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(meanings.get(field.name, ""))))),
        }
        for field in dataclasses.fields(config)
    ]


def _value(value: Any) -> str:
    return "no limit" if value == math.inf else str(value)


def _changes(config: Config, preset: Config) -> dict[str, Any]:
    """Give the fields in which a config differs from a preset; where the run is kept, its name included, is none."""
    names = [field.name for field in dataclasses.fields(config) if field.compare]
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(preset, name)}


def _command(config: Config) -> tuple[str, str]:
    """Find the preset nearest to a config, and the command that trains it again from there."""
    changes = {name: _changes(config, preset()) for name, preset in PRESETS.items()}
    nearest = min(changes, key=lambda name: len(changes[name]))
    words = ["python", "-m", "train", nearest]
    for name, value in changes[nearest].items():
        flag = name.replace("_", "-")
        words += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return nearest, shlex.join(words)


def _machine(record: Record) -> str:
    device = record.about.get("device", {})
    kind, count, cpus = device.get("kind", "an unknown device"), device.get("count", 1), device.get("cpus")
    cores = "" if cpus is None else f"{cpus} CPU core{'s' if cpus != 1 else ''}"
    if cores and kind == "cpu":
        return cores
    devices = str(kind) if count == 1 else f"{count} × {kind}"
    return f"{devices}, {cores}" if cores else devices


def _facts(about: Fields, prefix: str = "") -> list[tuple[str, str]]:
    """Lay out nested fields as pairs."""
    facts = []
    for name, value in about.items():
        facts += _facts(value, f"{prefix}{name}: ") if isinstance(value, Mapping) else [(prefix + name, str(value))]
    return facts


# The agent's games.


def _games(agent: Agent, key: jax.Array) -> dict[str, Any]:
    """Let the agent play itself and judge the first moves; both as pictures."""
    game_key, opening_key = jax.random.split(key)
    game = showcase.play_itself(agent, game_key)
    chances = showcase.first_moves(agent, opening_key)
    env = agent.env
    ground, boards = _boards(env, game)
    values = [ply.value if ply.player == 0 else -ply.value for ply in game.plies]
    course = charts.chart(
        "course",
        "Value over the sample game, in the view of X",
        [Line(label="value", x=range(1, len(values) + 1), y=values)],
        x_label="move",
        levels=[("even", 0.0)],
        limits=(-1.05, 1.05),
    )
    start = game.plies[0].state
    best = max((chance, action) for action, chance in enumerate(chances.tolist()) if not math.isnan(chance))
    return {
        "game": {
            "ground": ground,
            "boards": boards,
            "course": Markup(course),
            "result": _result(game.end),
            "is_large": env.observation_shape[1] > 8,
        },
        "opening": {
            "board": Markup(envs.to_svg(env, start, heat=chances)),
            "best": _move_name(env, best[1]),
            "chance": best[0],
            "iteration": agent.iteration,
        },
    }


def _boards(env: Any, game: showcase.Game) -> tuple[Markup, list[dict[str, Any]]]:
    """Draw each position with the weights its search gave the moves, and the last one as it is."""
    before = [None, *(ply.action for ply in game.plies)]  # the move that led to each position
    pictures = [envs.to_svg(env, ply.state, shares=ply.weights, last=last) for ply, last in zip(game.plies, before)]
    ground, pictures = charts.share_ground([*pictures, envs.to_svg(env, game.end, last=before[-1])], "ground")
    boards: list[dict[str, Any]] = [
        {
            "number": number,
            "player": _MARKS[ply.player],
            "move": _move_name(env, ply.action),
            "weight": float(ply.weights[ply.action]),
            "value": ply.value,
            "svg": Markup(picture),
        }
        for number, (ply, picture) in enumerate(zip(game.plies, pictures), start=1)
    ]
    return Markup(ground), [*boards, {"number": None, "svg": Markup(pictures[-1])}]


_MARKS = "XO"  # as in `envs.to_text`


def _move_name(env: Any, action: int) -> str:
    """Name a move as it is written beside the board: a column by its number, a cell by letter and row."""
    height, width, _ = env.observation_shape
    if env.num_actions == width:
        return str(action)
    if action >= height * width:
        return "swap"
    return f"{string.ascii_lowercase[action % width]}{action // width + 1}"


def _result(end: Any) -> str:
    if not end.terminated:
        return "cut short, undecided"
    rewards = end.rewards.tolist()
    return f"{_MARKS[rewards.index(max(rewards))]} won" if max(rewards) > 0 else "a draw"


# Words.


def _game_name(game: str) -> str:
    name, bracket, options = game.partition("(")
    return name.replace("_", " ").strip().title() + (f" ({options}" if bracket else "")


def _player(name: str) -> str:
    """Spell out a player's name in `metrics.jsonl`."""
    return names.spell_out(name)


def _duration(minutes: float) -> str:
    seconds = round(60 * minutes)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02} min"


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m train.report RUN`: write the report of a run, finished or not, into its folder."""
    parser = argparse.ArgumentParser(prog="python -m train.report", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    given = parser.parse_args(arguments)
    try:
        print(write(given.run))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
