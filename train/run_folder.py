"""The folder of one run: `config.json`, `metrics.jsonl`, `checkpoints/`. No run writes into another's."""

import json
import os
import platform
from importlib import metadata
from pathlib import Path

import jax

from train import config
from train.config import Config

CONFIG = "config.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
AGENTS = "agents"


def create(settings: Config) -> Path:
    """Make a new folder for a run, with its config; `name-2`, `name-3`, ... where the name is taken."""
    folder = _unused(Path(settings.runs), settings.name)
    versions = {name: metadata.version(name) for name in ("jax", "flax", "optax", "orbax-checkpoint")}
    contents = {
        "config": config.to_json(settings),
        "versions": versions | {"python": platform.python_version()},
        "device": {"kind": jax.devices()[0].device_kind, "count": jax.device_count(), "cpus": os.cpu_count()},
    }
    (folder / CONFIG).write_text(json.dumps(contents, indent=1) + "\n")
    return folder


def _unused(runs: Path, name: str) -> Path:
    number = 1
    while True:
        folder = runs / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


def read_config(folder: Path) -> Config:
    """Read the config of a run. Raises `ValueError` if the folder is none."""
    path = folder / CONFIG
    if not path.exists():
        raise ValueError(f"`run` is {str(folder)!r}, but it holds no {CONFIG}: give the folder of a run.")
    return config.from_json(json.loads(path.read_text())["config"])
