"""What a run goes on from: its arrays, and where it is. A checkpoint keeps both.

A run is stages of self-play and optimizer updates, one after the other. Two counters say which comes next, and all
randomness follows from them and the seed; so a run can stop between any two, and goes on as if it had not.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from train import checkpoint, run_folder
from train.config import Config
from train.learner import Learner
from train.replay import Replay
from train.selfplay import Games
from train.stages import Stages

KEPT = 2  # checkpoints: should the newest be damaged, there is the one before


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrays:
    """All arrays that a run goes on from; they are donated to its stages."""

    learner: Learner
    games: Games
    replay: Replay


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
    """Where a run is, in JSON's types. Iteration `closed` + 1 is in progress."""

    played: int = 0  # stages of self-play finished
    updates: int = 0  # optimizer updates made
    closed: int = 0  # iterations finished: updates made, line written, matches played
    finished: bool = False  # no iteration is to come, and the matches at the end are played
    minutes: float = 0.0  # wall clock used, in all sittings
    positions: int = 0  # searched in self-play
    evaluations: int = 0  # of the network, in self-play
    games: dict[str, Any] = dataclasses.field(default_factory=dict)  # what the newest self-play brought
    losses: list[dict[str, float]] = dataclasses.field(default_factory=list)  # of each update since then
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # by stage, since then

    def after_play(self, games: dict[str, Any], seconds: float) -> "Status":
        """Count one stage of self-play, which brought what `metrics.games` says."""
        return dataclasses.replace(
            self,
            played=self.played + 1,
            minutes=self.minutes + seconds / 60,
            positions=self.positions + games["positions"],
            evaluations=self.evaluations + games["evaluations"],
            games=games,
            losses=[],
            seconds={"play": seconds},
        )

    def after_updates(self, losses: list[dict[str, float]], seconds: float) -> "Status":
        """Count updates: all of an iteration, or those made before the run was stopped."""
        return dataclasses.replace(
            self,
            updates=self.updates + len(losses),
            minutes=self.minutes + seconds / 60,
            losses=self.losses + losses,
            seconds=self.seconds | {"learn": self.seconds.get("learn", 0.0) + seconds},
        )

    def after_iteration(self, seconds: float, *, finished: bool) -> "Status":
        """Close the iteration in progress."""
        return dataclasses.replace(self, closed=self.closed + 1, minutes=self.minutes + seconds / 60, finished=finished)


def start(stages: Stages) -> Arrays:
    """Begin with random parameters, fresh games and nothing to learn from."""
    learner, games, ring = stages.start(jax.random.fold_in(jax.random.key(stages.config.seed), 0))
    return Arrays(learner=learner, games=games, replay=ring)


def save(folder: Path, arrays: Arrays, status: Status) -> str:
    """Write a checkpoint of the run in `folder`, the older ones but one are removed then; returns its digest."""
    checkpoints, notes = folder / run_folder.CHECKPOINTS, dataclasses.asdict(status)
    checkpoint.save(checkpoints, status.played, arrays, notes=notes, keep=KEPT)
    return checkpoint.read_manifest(checkpoints, status.played).digest


def keep_agent(folder: Path, arrays: Arrays, status: Status, config: Config) -> None:
    """Keep the agent of a run that stops, under the iterations it has learned from in full.

    In the middle of an iteration it has learned a little more than its number says. So it is not kept where that
    agent was kept when it was measured, nor before the end of the first iteration: nothing of it is lost in either
    case, for the checkpoint has it.
    """
    agents, iteration = folder / run_folder.AGENTS, status.updates // config.updates
    if iteration > 0 and iteration not in checkpoint.steps(agents):
        checkpoint.save(agents, iteration, arrays.learner.playing)


def load(folder: Path, stages: Stages, report: Callable[[str], None]) -> tuple[Arrays, Status, str]:
    """Read the newest sound checkpoint of a run, with its digest; the start of the run if none was finished yet.

    Raises `CheckpointError` if there are checkpoints but no sound one, or agents though there are no checkpoints.
    """
    checkpoints = folder / run_folder.CHECKPOINTS
    for written in (checkpoints, folder / run_folder.AGENTS):
        checkpoint.recover(written)
    if not checkpoint.steps(checkpoints):
        if agents := checkpoint.steps(folder / run_folder.AGENTS):  # a checkpoint comes before each of them
            raise checkpoint.CheckpointError(
                f"`{folder}` has the agents of iterations {sorted(agents)} but no finished checkpoint any more, so it "
                "cannot go on: bring `checkpoints` back, or train anew under another name."
            )
        report("There is no finished checkpoint yet: the run begins anew.")
        return start(stages), Status(), ""
    step, arrays = checkpoint.load(checkpoints, jax.eval_shape(lambda: start(stages)), report)
    manifest = checkpoint.read_manifest(checkpoints, step)
    return arrays, Status(**manifest.notes), manifest.digest
