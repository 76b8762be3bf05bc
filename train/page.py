"""What stands on the page of a report, gathered from the record of a run; `report.html.jinja` says how it looks.

All of it but what an agent is asked for, which `pictures` has.
"""

import contextlib
import dataclasses
import inspect
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from train import curves, ladder, messages, names, run_folder
from train.config import Config
from train.elo import Rating
from train.presets import PRESETS
from train.record import Fields, Record
from train.score import Score

_TEMPLATE = "report.html.jinja"
_FILES = {
    run_folder.CONFIG: "the configuration, the machine and the versions",
    run_folder.METRICS: "the numbers behind this page, one JSON object a line",
    run_folder.CHECKPOINTS: "all that is needed to go on with the run",
    run_folder.AGENTS: "the agents that were measured",
    run_folder.TENSORBOARD: "the curves, for TensorBoard",
}


def gather(record: Record) -> dict[str, Any]:
    """Gather all of the page that needs no agent."""
    ratings = _ratings(record)
    preset, command = _command(record.config)
    return {
        "name": record.folder.resolve().name,
        "folder": shlex.quote(str(record.folder)),
        "config": record.config,
        "infinity": math.inf,
        "title": _game_name(record.config.game),
        "iterations": record.iteration,
        "finished": record.finished,
        "duration": _duration(record.minutes),
        "machine": _machine(record),
        "verdict": record.verdict and _match(record.verdict),
        "rating": record.verdict and ratings.get(record.verdict["first"]),
        "strength": curves.strength(record, ratings),
        "finals": [_match(line) for line in record.finals],
        "learning": curves.learning(record),
        "effort": _effort(record),
        "preset": preset,
        "command": command,
        "fields": _fields(record.config, PRESETS[preset]()),
        "facts": [*_facts(record.about), *([("digest of the run", record.manifest.digest)] if record.manifest else [])],
        "files": [(name, what) for name, what in _FILES.items() if (record.folder / name).exists()],
    }


def missing(record: Record) -> list[str]:
    """Say what the page lacks, a sentence or two each: an end of the run, matches, lines."""
    lines = []
    if not record.finished:
        lines.append(
            f"The run has not finished: {record.iteration} of {record.config.iterations} iterations are done. "
            "It is going on or was interrupted; this is how far it came. A run that was interrupted goes on with "
            f"{messages.interrupted(record.config, record.folder, record.minutes)}"
        )
    elif record.iteration < record.config.iterations:
        more = messages.out_of_time(record.config, record.folder, record.iteration, record.minutes)
        lines.append(f"The run has ended early: {more}")
    if not record.matches:
        lines.append("No match has been played yet, so nothing is known of the agent's strength.")
    if record.unread:
        lines.append(f"{record.unread} lines of {run_folder.METRICS} cannot be read and are left out.")
    return lines


def _ratings(record: Record) -> dict[str, Rating]:
    """Rate the players; nobody where the lines that can be read do not tie all of them to UCT."""
    with contextlib.suppress(ValueError):
        return ladder.ratings(record.matches)
    return {}


def _match(line: Fields) -> dict[str, Any]:
    first, second = names.spell_out(line["first"]), names.spell_out(line["second"])
    return {
        **line,
        "second": second,
        "title": f"{first[:1].upper()}{first[1:]} against {second}",
        "games": Score.of(line).games,
    }


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


def _game_name(game: str) -> str:
    name, bracket, options = game.partition("(")
    words = name.rpartition(":")[2].replace("_", " ").split()  # of a game of one's own, not where it is imported from
    return " ".join(word[0].upper() + word[1:] for word in words) + (f" ({options}" if bracket else "")


def _duration(minutes: float) -> str:
    seconds = round(60 * minutes)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02} min"


def render(page: Mapping[str, Any]) -> str:
    """Lay the page out as HTML, with what `gather`, `missing` and `pictures.show` have found."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(page)
