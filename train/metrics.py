"""What an iteration reports in numbers: the lines of `metrics.jsonl`."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from train import search
from train.config import Config
from train.run_state import Status
from train.selfplay import Trajectory


def iteration(status: Status) -> dict[str, Any]:
    """Describe the iteration in progress, all of whose updates are made; its losses are their means.

    Raises `FloatingPointError` if the gradients of more than the last half of its updates were not finite.
    """
    counters = {name: getattr(status, name) for name in ("minutes", "positions", "evaluations", "updates")}
    return {
        "kind": "iteration",
        "iteration": status.played,
        **status.games,
        **counters,  # of the whole run, not of this iteration
        **_means(status.losses),
        "seconds": {name: round(value, 3) for name, value in status.seconds.items()},
    }


def games(config: Config, trajectory: Trajectory) -> dict[str, Any]:
    """Count what one stage of self-play brought; the length is not a number if no game ended."""
    done, ply, reward = jax.device_get((trajectory.done, trajectory.ply, trajectory.reward))
    ended = int(done.sum())
    return {
        "positions": done.size,
        "evaluations": evaluations(config, trajectory),
        "games": ended,
        "game_length": float((ply[done] + 1).mean()) if ended else float("nan"),
        "draws": int((reward[done] == 0).sum()),
    }


def evaluations(config: Config, trajectory: Trajectory) -> int:
    """Count the network evaluations of one stage of self-play: its searches, and its last positions' own values."""
    full = int(np.sum(np.asarray(trajectory.policy_weight) > 0))
    return int(search.count_evaluations(config, full, trajectory.policy_weight.size - full)) + config.games


def _means(losses: Sequence[dict[str, Any]]) -> dict[str, float]:
    last = losses[-1]
    if last["skipped_in_a_row"] > len(losses) / 2:
        raise FloatingPointError(
            "Most gradients of an iteration were not finite, so nothing is learned any more: lower `learning_rate`. "
            "Checkpoints written so far are whole."
        )
    counts = ("skipped_updates", "skipped_in_a_row")  # `skipped_updates` is that of the whole run
    means = {name: float(np.mean([loss[name] for loss in losses])) for name in last if name not in counts}
    return means | {"skipped_updates": int(last["skipped_updates"])}
