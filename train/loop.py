"""The training loop: self-play -> targets -> replay -> updates -> arena -> log, again and again.

All randomness of iteration i comes from `fold_in(key(seed), i)`, so no stream depends on how much another used.
"""

import dataclasses
import time
from pathlib import Path

import jax
import numpy as np

from train import checkpoint, run_folder
from train.arena import Score
from train.config import Config
from train.learner import Learner
from train.network import Params
from train.progress import Log, deferred_interrupt
from train.replay import Replay
from train.selfplay import Trajectory
from train.stages import Stages


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """Where the run is and what came of it; no score if it was interrupted."""

    folder: Path
    iterations: int
    score: Score | None


def train(stages: Stages) -> Result:
    """Train an agent and keep it in a new folder under `runs`; interrupted, it keeps what there is."""
    config = stages.config
    folder = run_folder.create(config)
    key = jax.random.key(config.seed)
    with Log(folder / run_folder.METRICS, config.iterations) as log, deferred_interrupt(log) as interrupt:
        log.say(_plan(config, folder))
        watch = _Stopwatch()
        state, games, ring = stages.start(jax.random.fold_in(key, 0))
        agents: dict[int, Params] = {}

        for iteration in range(1, config.iterations + 1):
            play_key, learn_key, match_key = jax.random.split(jax.random.fold_in(key, iteration), 3)

            games, trajectory = stages.play(state.params, games, play_key)
            ring = stages.store(ring, trajectory)
            metrics = {"iteration": iteration} | _game_metrics(trajectory)
            play_seconds = watch.lap()

            state, losses = _learn(stages, state, ring, learn_key)
            log.iteration(metrics | losses, {"play": play_seconds, "learn": watch.lap()})

            last = iteration == config.iterations or interrupt.pressed or watch.total > 60 * config.minutes
            if last or (config.evaluate_every and iteration % config.evaluate_every == 0):
                checkpoint.save(folder / run_folder.CHECKPOINTS, iteration, state)
                saved = checkpoint.save(folder / run_folder.AGENTS, iteration, state.params)
                score = None if interrupt.pressed else _evaluate(stages, state, iteration, agents, match_key, log, last)
                agents[iteration] = jax.device_get(state.params)
                watch.lap()
            if last:
                break
        log.say(_ending(config, folder, saved, score))
    return Result(folder=folder, iterations=iteration, score=score)


def _learn(stages: Stages, state: Learner, ring: Replay, key: jax.Array) -> tuple[Learner, dict[str, float]]:
    """Take all updates of one iteration; scalars are their means, `skipped_updates` counts the whole run.

    Raises `FloatingPointError` if no update of an iteration had finite gradients.
    """
    history = []
    for number in range(stages.config.updates):
        state, metrics = stages.update(state, ring, jax.random.fold_in(key, number))
        history.append(metrics)
    history = jax.device_get(history)
    last = history[-1]
    if last["skipped_in_a_row"] >= len(history):
        raise FloatingPointError(
            "The gradients of a whole iteration were not finite, so nothing is learned any more: "
            "lower `learning_rate`. Checkpoints written so far are sound."
        )
    counts = ("skipped_updates", "skipped_in_a_row")
    losses = {name: float(np.mean([metrics[name] for metrics in history])) for name in last if name not in counts}
    return state, losses | {"skipped_updates": int(last["skipped_updates"])}


def _game_metrics(trajectory: Trajectory) -> dict[str, float]:
    """Count what ended in one iteration; the length is not a number if no game did."""
    done, ply, reward = jax.device_get((trajectory.done, trajectory.ply, trajectory.reward))
    ended = int(done.sum())
    return {
        "games": ended,
        "game_length": float((ply[done] + 1).mean()) if ended else float("nan"),
        "draws": int((reward[done] == 0).sum()),
    }


def _evaluate(
    stages: Stages, state: Learner, iteration: int, earlier: dict[int, Params], key: jax.Array, log: Log, final: bool
) -> Score:
    """Play the matches that are due; returns the agent's score against UCT, which comes first."""
    matches = stages.ladder.measure(state.params, iteration, earlier, key, final=final)
    for match in matches:
        log.write(match.to_json())
        log.say(f"  {match}")
    return matches[0].score


class _Stopwatch:
    """Measures laps of wall clock in seconds."""

    def __init__(self) -> None:
        self._start = self._lap = time.monotonic()

    @property
    def total(self) -> float:
        return time.monotonic() - self._start

    def lap(self) -> float:
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before


def _plan(config: Config, folder: Path) -> str:
    games = config.match_games * config.final_matches
    limit = "" if config.minutes == float("inf") else f", at most {config.minutes:g} minutes"
    return (
        f"{config.iterations} iterations{limit}: {config.games} games x {config.steps} moves of self-play "
        f"with {config.num_simulations} simulations each, then {config.updates} updates of {config.batch} positions;\n"
        f"at the end {games} games against UCT with {config.opponent_num_simulations} rollouts a move. "
        f"Device: {jax.devices()[0].device_kind}.\nThe run is kept in {folder}. The first iteration also "
        "compiles. Ctrl-C stops after the iteration in progress and keeps the agent.\n"
    )


def _ending(config: Config, folder: Path, saved: Path, score: Score | None) -> str:
    strength = (
        "not measured, the run was interrupted"
        if score is None
        else f"{score}\n          against UCT with {config.opponent_num_simulations} rollouts a move; "
        f"the agent searched {config.agent_num_simulations} simulations a move"
    )
    return (
        f"\nStrength: {strength}\nAgent:    {saved}\n"
        f'Load:     agent = train.load_agent("{folder}")\n'
        f"Ask:      python -m train.agent {folder} 3 2    (moves so far; it answers with its own)"
    )
