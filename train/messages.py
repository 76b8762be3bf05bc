"""What a run says in words: what it will do, how it ended, how to go on with it."""

import math
from pathlib import Path

import jax

from train import run_folder
from train.arena import Score
from train.config import Config
from train.run_state import Status


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
    kept = run_folder.read_config(folder).minutes  # what holds if no other limit is given
    limit = "" if config.minutes in (kept, math.inf) else f" --minutes {config.minutes:g}"
    return (
        f"\nStopped in iteration {status.closed + 1} after {status.updates} updates; nothing is lost.\n"
        f"Resume:   python -m train --resume {folder}{limit}\n{_use(folder, digest)}"
    )


def finished(config: Config, folder: Path, status: Status, digest: str) -> str:
    """Say that there is nothing to resume."""
    reason = (
        f"all its {config.iterations} iterations are done"
        if status.closed == config.iterations
        else f"its {status.minutes:.1f} minutes are over after {status.closed} of {config.iterations} iterations; "
        "give more with --minutes"
    )
    return f"This run is finished: {reason}. Nothing is changed.\n{_use(folder, digest)}"


def _use(folder: Path, digest: str) -> str:
    return (
        f"Run:      {folder}\n"
        f"Report:   {folder / run_folder.REPORT}\n"
        f"Digest:   {digest}\n"
        f'Load:     agent = train.load_agent("{folder}")\n'
        f"Ask:      python -m train.agent {folder}    (then the moves so far, if any; it answers with its own)"
    )
