"""The command `python -m train [PRESET] [--field value ...]`, and `--resume RUN` to go on with a run.

Only the standard library and tyro are imported until the command line is understood, so that `--help`
and a mistyped flag answer at once.
"""

import dataclasses
import difflib
import inspect
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from train.config import Config
from train.presets import PRESETS

DEFAULT_PRESET = "connect_four"
DESCRIPTION = """Train an agent by self-play, from nothing: `python -m train [PRESET] [--field value ...]`.

A run that was stopped, by Ctrl-C or by the machine, goes on with `python -m train --resume RUN`.

Presets (the first is the default; give one as the first argument, then override any of its fields):

{presets}"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """What the command line asks for: a new run, or to go on with one."""

    profile: bool = False
    """Measure where the time of such a run goes, print a table and leave; nothing is trained."""

    resume: str | None = None
    """Folder of a run to go on with, such as runs/connect_four. It keeps its config: of the fields, only
    --minutes may be given, as a new limit that counts what was used before."""

    config: Annotated[Config, tyro.conf.OmitArgPrefixes]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resume:
    """Go on with a run where its newest sound checkpoint was written; a finished one is left as it is."""

    resume: str
    """Folder of the run, such as runs/connect_four."""

    minutes: float | None = None
    """New limit of wall clock, which counts what was used before; without it the run's own holds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status.

    0 done, 1 diverged or not to be written or read, 2 not understood, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    try:
        preset, command = parse(list(sys.argv[1:] if arguments is None else arguments))
        if isinstance(command, Resume):
            return _resume(command)
        if command.profile:
            return _profile(command.config)
        return _train(preset, command.config)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (FloatingPointError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted before the run had begun.", file=sys.stderr)
        return 130


def _train(preset: str, config: Config) -> int:
    from train import loop, stages  # imports JAX

    built = stages.build(config)
    expected = PRESETS[preset]()
    if config.game == expected.game:
        print(inspect.getdoc(PRESETS[preset]), end="\n\n", flush=True)
    if config != expected:
        print(f"Some fields of {preset} are overridden: time and result will differ from its own.\n", flush=True)
    return loop.train(built).exit_status


def _resume(command: Resume) -> int:
    from train import checkpoint, loop  # imports JAX

    try:
        return loop.resume(command.resume, minutes=command.minutes).exit_status
    except checkpoint.CheckpointError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _profile(config: Config) -> int:
    from train import timing  # imports JAX

    timing.report(config)
    return 0


def parse(arguments: list[str]) -> tuple[str, Command | Resume]:
    """Read the name of a preset and what is asked for: the preset's config with the given fields overridden.

    Raises `ValueError` for an unknown preset, a value out of range or fields that a resumed run cannot change;
    exits on `--help` and unknown flags.
    """
    named = bool(arguments) and not arguments[0].startswith("-")
    preset = arguments[0] if named else DEFAULT_PRESET
    if preset not in PRESETS:
        known = sorted(PRESETS, key=lambda name: -difflib.SequenceMatcher(None, name, preset).ratio())
        raise ValueError(f"Unknown preset `{preset}`: the presets are {', '.join(known)} (nearest first).")
    if any(argument.partition("=")[0] == "--resume" for argument in arguments):
        return preset, _parse_resume(arguments)
    command = tyro.cli(
        Command,
        default=Command(config=PRESETS[preset]()),
        args=arguments[1:] if named else arguments,
        prog=f"python -m train {preset}",
        description=DESCRIPTION.format(presets="\n\n".join(map(_describe, PRESETS))),
    )
    return preset, command


def _parse_resume(arguments: list[str]) -> Resume:
    command, others = tyro.cli(Resume, args=arguments, prog="python -m train", return_unknown_args=True)
    if others:
        raise ValueError(
            f"A resumed run keeps its preset and its config, and here came {' '.join(others)}: "
            "beside --resume RUN only --minutes may be given; for other settings begin a new run."
        )
    return command


def _describe(preset: str) -> str:
    return f"{preset}: " + " ".join((inspect.getdoc(PRESETS[preset]) or "").split())


if __name__ == "__main__":
    sys.exit(main())
