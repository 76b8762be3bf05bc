"""The command that asks an agent: `python -m train.ask runs/connect_four 3 2`, with the moves so far.

Nothing here imports JAX before an agent is loaded.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m train.ask RUN [MOVE ...]`: ask an agent what it would play after these moves."""
    parser = argparse.ArgumentParser(prog="python -m train.ask", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    parser.add_argument(
        "moves",
        nargs="*",
        metavar="MOVE",
        help="from the start of a game, both players', named as the report names them: 3 for a column of Connect Four, "
        "c3 for a cell, swap; an action's number will do too",
    )
    given = parser.parse_args(arguments)

    from train.agent import answer, load_agent
    from train.checkpoint import CheckpointError

    try:
        print(answer(load_agent(given.run), given.moves))
    except (OSError, ValueError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
