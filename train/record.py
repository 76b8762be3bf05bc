"""What a run has written down so far: `config.json` and the lines of `metrics.jsonl`.

A run may be going on, or may have been killed in the middle of a line: whatever can be read is read.
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train import checkpoint, names, run_folder
from train.checkpoint import CheckpointError, Manifest
from train.config import Config

Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """The run of one folder, its lines in the order they were written."""

    folder: Path
    config: Config
    about: Fields  # what `config.json` holds besides the config: versions, device, ...
    iterations: Sequence[Fields]
    matches: Sequence[Fields]  # each in the view of the player called `first`
    unread: int  # lines of `metrics.jsonl` that are damaged
    manifest: Manifest | None  # of the newest checkpoint, if there is one whose manifest can be read

    @property
    def finished(self) -> bool:
        """Whether all is done, the matches at the end too; the lines cannot tell, for a run may go on after them."""
        return self.manifest is not None and self.manifest.notes["finished"]

    @property
    def minutes(self) -> float:
        """How long the run has taken, up to its last line."""
        return max((number(line, "minutes") for line in (*self.iterations, *self.matches)), default=0.0)

    @property
    def iteration(self) -> int:
        """The last iteration that was done, 0 if none was."""
        return max((line["iteration"] for line in self.iterations), default=0)

    @property
    def finals(self) -> Sequence[Fields]:
        """The matches at the end of the run; those of an end after which it went on are none."""
        return [line for line in self.matches if line["final"] and line["iteration"] == self.iteration]

    @property
    def verdict(self) -> Fields | None:
        """The match that says most: that of the newest agent measured against UCT, else the last one if any."""
        against_uct = [
            line
            for line in self.matches
            if line["first"] == names.agent(line["iteration"]) and names.is_uct(line["second"])
        ]
        return next(iter((against_uct or self.matches)[-1:]), None)


def read(folder: Path) -> Record:
    """Read the record of a run. Raises `ValueError` if the folder is no run."""
    (config, about), lines = run_folder.read(folder), run_folder.read_metrics(folder)
    return Record(
        folder=folder,
        config=config,
        about=about,
        iterations=[line for line in lines if line is not None and line.get("kind") == "iteration"],
        matches=[line for line in lines if line is not None and line.get("kind") == "match"],
        unread=lines.count(None),
        manifest=_manifest(folder / run_folder.CHECKPOINTS),
    )


def number(line: Fields, name: str) -> float:
    """Give a number of a line; NaN where it is null, which stands for what JSON lacks, or absent."""
    value = line.get(name)
    return math.nan if value is None else float(value)


def _manifest(checkpoints: Path) -> Manifest | None:
    for step in checkpoint.steps(checkpoints):
        with contextlib.suppress(CheckpointError):
            return checkpoint.read_manifest(checkpoints, step)
    return None
