"""What a run says in words: what it will do, how it ended, how to go on with it."""

import math
import shlex
from pathlib import Path

import jax

from train import checkpoint, run_folder
from train.config import Config
from train.run_state import Status
from train.score import Score


def plan(config: Config, folder: Path, status: Status) -> str:
    """Say what is to come, of a run that begins or goes on."""
    games = config.match_games * config.final_matches
    limit = "" if math.isinf(config.minutes) else f", at most {config.minutes:g} minutes"
    done = f"{status.closed} iterations, {status.updates} updates and {status.minutes:.1f} minutes"
    begin = f"Resumed after {done}.\n" if status.played else ""
    return begin + (
        f"{config.iterations} iterations{limit}: {config.games} games x {config.steps} moves of self-play "
        f"with {config.num_simulations} simulations each, then {config.updates} updates of {config.batch} positions;\n"
        f"at the end {games} games against UCT with {config.opponent_num_simulations} rollouts a move. "
        f"Device: {jax.devices()[0].device_kind}.\nThe run is kept in {folder}. The first iteration also compiles. "
        "Ctrl-C saves the run and stops, within ten seconds; where a stage takes longer, the last checkpoint stands. "
        "Either way it can be resumed.\n"
    )


def ending(config: Config, folder: Path, score: Score, digest: str) -> str:
    """Say how strong the agent became, where it is and how to use it."""
    strength = (
        f"{score}\n          against UCT with {config.opponent_num_simulations} rollouts a move; "
        f"the agent searched {config.agent_num_simulations} simulations a move"
    )
    return f"\nStrength: {strength}\n{_use(folder, digest)}"


def stopped(config: Config, folder: Path, status: Status, digest: str) -> str:
    """Say where a run was stopped and how to go on, by the same limit of time."""
    limit: float | None = config.minutes
    if limit == run_folder.read_config(folder).minutes:  # which holds where none is given
        limit = None
    elif config.minutes <= status.minutes:
        limit = _more(config.minutes, status.minutes)
    return (
        f"\nStopped in iteration {status.closed + 1} after {status.updates} updates; nothing is lost.\n"
        f"Resume:   {_resume(folder, limit)}\n{_use(folder, digest)}"
    )


def finished(config: Config, folder: Path, status: Status, digest: str) -> str:
    """Say that there is nothing to resume, or how to go on where only the time was over."""
    if status.closed >= config.iterations:
        reason = f"all its {config.iterations} iterations are done"
    else:
        reason = out_of_time(config, folder, status.closed, status.minutes)
    return f"This run is finished: {reason}. Nothing is changed.\n{_use(folder, digest)}"


def out_of_time(config: Config, folder: Path, iterations: int, minutes: float) -> str:
    """Say that the time of a run was over after so many iterations and minutes, and how it goes on with more."""
    return (
        f"its {minutes:.1f} minutes are over after {iterations} of {config.iterations} iterations; "
        f"give more with {_resume(folder, _more(config.minutes, minutes))}"
    )


def interrupted(config: Config, folder: Path, minutes: float) -> str:
    """Say how a run goes on that did not end, as far as its folder tells; it has used so many minutes."""
    if minutes < config.minutes:
        return _resume(folder)
    return f"{_resume(folder)} to its last matches, for its time is over; with more by " + _resume(
        folder, _more(config.minutes, minutes)
    )


def command(module: str, *words: str | Path) -> str:
    """Write the command that runs a module, so that a shell reads each word as it is, spaces and all."""
    return shlex.join(["python", "-m", module, *map(str, words)])


def _resume(folder: Path, minutes: float | None = None) -> str:
    limit = () if minutes is None else ("--minutes", f"{minutes:.15g}")
    return command("train", "--resume", folder, *limit)


def _more(limit: float, used: float) -> int:
    """Give a limit of time, in minutes, that lets a run go on for as long again; a minute more is sure to be more."""
    return math.ceil(used + min(limit, used)) + 1


def _use(folder: Path, digest: str) -> str:
    lines = [f"Run:      {folder}", f"Report:   {folder / run_folder.REPORT}", f"Digest:   {digest}"]
    if checkpoint.steps(folder / run_folder.AGENTS):
        lines += [
            f"Load:     agent = train.load_agent({str(folder)!r})",
            f"Ask:      {command('train.ask', folder)}    (then the moves so far, if any; it answers with its own)",
        ]
    return "\n".join(lines)
