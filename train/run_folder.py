"""The folder of one run: its config, metrics, checkpoints and agents. No run writes into another's."""

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from train import config
from train.config import Config

CONFIG = "config.json"  # of the run, with the versions and the device it was begun on
METRICS = "metrics.jsonl"  # one line per iteration and per match
CHECKPOINTS = "checkpoints"  # all that the run goes on from; the last two
AGENTS = "agents"  # the parameters that play, one per evaluation
TENSORBOARD = "tensorboard"  # the metrics again, for TensorBoard
REPORT = "report.html"  # what became of it, for people
LOCK = "lock"  # held by the process that writes


def create(settings: Config) -> Path:
    """Make a new folder for a run, with its config; `name-2`, `name-3`, ... where the name is taken."""
    folder = _unused(Path(settings.runs), settings.name)
    contents = {"config": config.to_json(settings)} | _surroundings()
    (folder / CONFIG).write_text(json.dumps(contents, indent=1) + "\n")
    return folder


def _unused(runs: Path, name: str) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = runs / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1


def read_config(folder: Path) -> Config:
    """Read the config of a run. Raises `ValueError` if the folder is none, or its file is not as a run wrote it."""
    return read(folder)[0]


def changes(folder: Path) -> list[str]:
    """Say in what this machine differs from the one the run was begun on, as far as results depend on it."""
    (_, before), now = read(folder), _surroundings()
    return [
        f"{name} is {value}, was {before.get(part, {}).get(name)}"
        for part, values in now.items()
        for name, value in values.items()
        if before.get(part, {}).get(name) != value
    ]


def _surroundings() -> dict[str, dict[str, Any]]:
    versions = {name: metadata.version(name) for name in ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint")}
    return {
        "versions": versions | {"python": platform.python_version()},
        "device": {
            "kind": jax.devices()[0].device_kind,
            "count": jax.device_count(),
            "cpus": os.cpu_count(),
            "threads": int(os.environ.get("NPROC") or _usable_cpus()),  # as XLA counts them
        },
    }


def _usable_cpus() -> int:
    """Count the CPUs that this process may use; all of them where the system does not tell, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read(folder: Path) -> tuple[Config, dict[str, dict[str, Any]]]:
    """Read the config of a run and what is told beside it: versions, device. Errors as of `read_config`."""
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"`run` is {str(folder)!r}, but it holds no {CONFIG}: give the folder of a run.")
    try:
        contents = json.loads(path.read_text())
        if not isinstance(contents, dict) or not all(isinstance(part, dict) for part in contents.values()):
            raise ValueError("It is not made of objects.")
        return config.from_json(contents.pop("config", None)), contents
    except (ValueError, RecursionError) as error:  # not even text, not JSON, nested without end, no config of ours
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{str(path)!r} cannot be used: {reason}. It must be as the run wrote it: bring it back from a copy, "
            "or give the folder of another run."
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a run. Raises `ValueError` if one does; a dead one holds no lock."""
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"`run` is {str(folder)!r}, but another process is writing to it: "
                "wait until it ends, or stop it, before the run is resumed."
            ) from error
        yield


def cut_back(folder: Path, iterations: int) -> None:
    """Drop from the metrics the lines of later iterations, and those that are none of a run's."""
    path = folder / METRICS
    if not path.exists():
        return
    lines = path.read_text(errors="replace").splitlines(keepends=True)
    kept = "".join(line for line in lines if line.endswith("\n") and 0 < _iteration(line) <= iterations)
    part = path.with_suffix(".part")
    part.write_text(kept)
    part.rename(path)


def _iteration(line: str) -> int:
    """Tell the iteration a line of the metrics is about; 0 if it is none of a run's."""
    fields = read_line(line)
    return fields["iteration"] if fields is not None and fields.get("kind") in _LINES else 0


def read_metrics(folder: Path) -> list[dict[str, Any] | None]:
    """Read the metrics of a run so far, line by line, as `read_line` does; no lines if there is no file yet."""
    path = folder / METRICS
    return [read_line(line) for line in path.read_text(errors="replace").splitlines()] if path.exists() else []


def read_line(line: str) -> dict[str, Any] | None:
    """Read a line of the metrics; None if it is damaged. Of a kind that no run writes it comes back unchecked."""
    try:
        fields: dict[str, Any] = json.loads(line)
        types = _LINES.get(fields.get("kind"))
        if types is not None:
            for name in types.keys() - {*fields}:
                raise KeyError(name)
            for name, value in (fields | fields.get("seconds", {})).items():
                if name in types or value is not None:
                    _check(name, config.typed(name, value, types.get(name, float)))
            if fields["kind"] == "match" and fields["wins"] + fields["draws"] + fields["losses"] == 0:
                raise ValueError("A match has games.")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return fields


def _check(name: str, value: Any) -> None:
    """Raise `ValueError` for what no run writes: numbers no clock or counter comes to, text that is no text."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int | float) and not (0 if name in _COUNTS else -_MOST) <= value <= _MOST:
        raise ValueError(name)


_MOST = 1e12
_COUNTS = ("iteration", "minutes", "wins", "draws", "losses", "games", "positions", "evaluations", "updates")
_ANY: dict[str, Any] = {"kind": str, "iteration": int, "minutes": float}
_LINES: dict[Any, dict[str, Any]] = {  # by kind, what is always there; the rest are numbers, null for what JSON lacks
    "iteration": _ANY | {"seconds": dict},
    "match": _ANY
    | {"first": str, "second": str, "wins": int, "draws": int, "losses": int}
    | {"score": float, "low": float, "high": float, "final": bool},
}
