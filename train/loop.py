"""The training loop: self-play -> targets -> replay -> updates -> arena -> log, again and again.

All randomness of iteration i comes from `fold_in(key(seed), i)`, so no stream depends on how much another used,
and a run that was stopped and resumed is the run that was not.
"""

import dataclasses
from pathlib import Path

import jax

from train import checkpoint, messages, metrics, record, report, run_folder, run_state
from train import stages as training_stages
from train.agent import Agent
from train.config import Config
from train.progress import Log, Stopwatch
from train.run_state import Arrays, Status
from train.score import Score
from train.selfplay import Trajectory
from train.signals import Stop, stop_on_signals
from train.stages import Stages


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """Where the run is and what came of it."""

    folder: Path
    iterations: int  # finished ones
    digest: str  # of all arrays: equal for equal runs, however often they were stopped
    score: Score | None  # of the matches at the end; None if this call did not play them
    exit_status: int  # 0, or what a shell reports for the signal that stopped the run


def train(stages: Stages) -> Result:
    """Train an agent in a new folder under `runs`. Ctrl-C and SIGTERM stop and save it, and `resume` goes on."""
    folder = run_folder.create(stages.config)
    with run_folder.locked(folder):
        return _train(stages, folder, run_state.start(stages), Status())


def resume(folder: str | Path, *, minutes: float | None = None, stages: Stages | None = None) -> Result:
    """Go on with a run from its newest sound checkpoint; one that is finished is left as it is.

    `minutes` replaces the run's limit of time; what was used before counts. `stages` are those of the run's
    config, if they have been built. Raises `ValueError` if the folder is no run, another process writes to it, or
    the new limit is over already, and `CheckpointError` if there are checkpoints but no sound one.
    """
    folder = Path(folder)
    config = run_folder.read_config(folder)
    config = config if minutes is None else dataclasses.replace(config, minutes=minutes)
    stages = training_stages.build(config) if stages is None else dataclasses.replace(stages, config=config)
    with run_folder.locked(folder):
        arrays, status, digest = run_state.load(folder, stages, print)
        done = status.closed >= config.iterations
        if minutes is not None and minutes <= status.minutes and not done:
            raise ValueError(
                f"`minutes` is {minutes:g}, but the run has used {status.minutes:.1f} already: "
                "give more, or leave it out for the run's own limit."
            )
        if done or (status.finished and config.minutes <= status.minutes):
            print(messages.finished(config, folder, status, digest))
            return Result(folder=folder, iterations=status.closed, digest=digest, score=None, exit_status=0)
        if changes := run_folder.changes(folder):
            print(f"Warning: the run goes on, but not bit for bit as it would have: {', '.join(changes)}.")
        run_folder.cut_back(folder, status.closed)
        agents = folder / run_folder.AGENTS
        measured = {line["iteration"] for line in record.read(folder).matches}  # also where an earlier limit ended it
        checkpoint.remove(agents, lambda step: step > status.closed or not (_due(config, step) or step in measured))
        return _train(stages, folder, arrays, dataclasses.replace(status, finished=False))


def _train(stages: Stages, folder: Path, arrays: Arrays, status: Status) -> Result:
    """Do what comes next, one stage a turn, until all is done or a signal comes; then save."""
    config, score, watch = stages.config, None, Stopwatch()
    with Log(folder, config, status) as log:
        with stop_on_signals(log.say, log.restore) as stop:
            log.say(messages.plan(config, folder, status))
            while not status.finished and stop.signal is None:
                iteration = status.closed + 1
                key = jax.random.fold_in(jax.random.key(config.seed), iteration)
                play_key, learn_key, match_key = jax.random.split(key, 3)

                if status.played < iteration:
                    log.phase("self-play")
                    arrays, trajectory = play(stages, arrays, play_key)
                    status = status.after_play(metrics.games(config, trajectory), watch.lap())

                elif status.updates < iteration * config.updates:
                    log.phase("learning")
                    arrays, losses = learn(stages, arrays, learn_key, len(status.losses), stop)
                    status = status.after_updates(losses, watch.lap())

                else:
                    log.iteration(metrics.iteration(status))
                    finished = iteration >= config.iterations or status.minutes >= config.minutes
                    if finished or _due(config, iteration):
                        log.phase("matches")
                        run_state.save(folder, arrays, status)  # matches take long
                        score = _evaluate(stages, folder, arrays, match_key, status, watch, log, stop, final=finished)
                        if stop.signal is not None:
                            break  # whoever resumes plays all of these matches again
                    status = status.after_iteration(watch.lap(), finished=finished)
                    if iteration % config.checkpoint_every == 0 and not finished:
                        run_state.save(folder, arrays, status)
                        _report(folder, log, search=False)

            log.phase("saving")
            digest = run_state.save(folder, arrays, status)
            if stop.signal is not None:
                run_state.keep_agent(folder, arrays, status, config)

        if status.finished and score is not None:
            log.say(messages.ending(config, folder, score, digest))
            _report(folder, log, _agent(stages, arrays, status))
        else:
            log.say(messages.stopped(config, folder, status, digest))
            _report(folder, log, search=False)
    return Result(
        folder=folder,
        iterations=status.closed,
        digest=digest,
        score=score if status.finished else None,
        exit_status=0 if status.finished else stop.exit_status,
    )


def _due(config: Config, iteration: int) -> bool:
    """Tell whether matches follow an iteration that is not the last."""
    return config.evaluate_every > 0 and iteration % config.evaluate_every == 0


def play(stages: Stages, arrays: Arrays, key: jax.Array) -> tuple[Arrays, Trajectory]:
    """Play games with the agent as it is, and keep what there is to learn from them."""
    games, trajectory = stages.play(arrays.learner.playing, arrays.games, key)
    ring = stages.store(arrays.replay, trajectory)
    return dataclasses.replace(arrays, games=games, replay=ring), trajectory


def learn(
    stages: Stages, arrays: Arrays, key: jax.Array, first: int, stop: Stop
) -> tuple[Arrays, list[dict[str, float]]]:
    """Make the updates of one iteration from number `first` on, fewer if a signal comes: their scalars."""
    learner, losses = arrays.learner, []
    for number in range(first, stages.config.updates):
        learner, scalars = stages.update(learner, arrays.replay, jax.random.fold_in(key, number))
        losses.append(scalars)
        if stop.signal is not None:
            break
    scalars = jax.device_get(losses)
    return dataclasses.replace(arrays, learner=learner), [{name: float(x) for name, x in s.items()} for s in scalars]


def _evaluate(
    stages: Stages,
    folder: Path,
    arrays: Arrays,
    key: jax.Array,
    status: Status,
    watch: Stopwatch,
    log: Log,
    stop: Stop,
    *,
    final: bool,
) -> Score | None:
    """Keep the agent as it is and play the matches that are due, until a signal comes: its score against UCT."""
    agents, params = folder / run_folder.AGENTS, arrays.learner.playing
    checkpoint.save(agents, status.played, params)
    scores: list[Score] = []
    matches = stages.ladder.measure(
        params,
        status.played,
        checkpoint.Saved(agents, params),
        key,
        final=final,
        stopped=lambda: stop.signal is not None,
    )
    for match in matches:
        log.match(match.to_json() | {"minutes": status.minutes + watch.elapsed / 60})
        scores.append(match.score)
    return scores[0] if scores else None


def _agent(stages: Stages, arrays: Arrays, status: Status) -> Agent:
    """Make the agent that plays as the run does now."""
    return Agent(env=stages.ladder.env, config=stages.config, params=arrays.learner.playing, iteration=status.played)


def _report(folder: Path, log: Log, agent: Agent | None = None, *, search: bool = True) -> None:
    """Write the report; a failure is told in a line, and so is Ctrl-C where nothing is left to save."""
    log.phase("report")
    try:
        report.write(folder, agent, search=search)
    except (Exception, KeyboardInterrupt) as error:
        log.say(
            f"The report was not written ({type(error).__name__}: {error}); the run is not touched by that. "
            f"To try again: {messages.command('train.report', folder)}"
        )
