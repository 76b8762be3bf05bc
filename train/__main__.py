"""The command `python -m train [PRESET] [--field value ...]`.

Only the standard library and tyro are imported until the command line is understood, so that `--help`
and a mistyped flag answer at once.
"""

import dataclasses
import difflib
import inspect
import sys
from collections.abc import Sequence

import tyro

from train.config import Config
from train.presets import PRESETS

DEFAULT_PRESET = "connect_four"
DESCRIPTION = """Train an agent by self-play, from nothing: `python -m train [PRESET] [--field value ...]`.

Presets (the first is the default; give one as the first argument, then override any of its fields):

{presets}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done, 1 diverged, 2 not understood, 130 interrupted at once."""
    try:
        preset, config = parse(list(sys.argv[1:] if arguments is None else arguments))
        from train import loop, stages  # imports JAX

        built = stages.build(config)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    expected = PRESETS[preset]()
    print(inspect.getdoc(PRESETS[preset]), end="\n\n", flush=True)
    if dataclasses.replace(config, name=expected.name, runs=expected.runs) != expected:
        print("Some fields are overridden: time and result will differ from these.\n", flush=True)
    try:
        loop.train(built)
    except (FloatingPointError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted: the last checkpoint, if there is one, is whole.", file=sys.stderr)
        return 130
    return 0


def parse(arguments: list[str]) -> tuple[str, Config]:
    """Read the name of a preset and the config: the preset's with the given fields overridden.

    Raises `ValueError` for an unknown preset or a value out of range; exits on `--help` and unknown flags.
    """
    named = bool(arguments) and not arguments[0].startswith("-")
    preset = arguments[0] if named else DEFAULT_PRESET
    if preset not in PRESETS:
        known = sorted(PRESETS, key=lambda name: -difflib.SequenceMatcher(None, name, preset).ratio())
        raise ValueError(f"Unknown preset `{preset}`: the presets are {', '.join(known)} (nearest first).")
    config = tyro.cli(
        Config,
        default=PRESETS[preset](),
        args=arguments[1:] if named else arguments,
        prog=f"python -m train {preset}",
        description=DESCRIPTION.format(presets="\n\n".join(map(_describe, PRESETS))),
    )
    return preset, config


def _describe(preset: str) -> str:
    return f"{preset}: " + " ".join((inspect.getdoc(PRESETS[preset]) or "").split())


if __name__ == "__main__":
    sys.exit(main())
