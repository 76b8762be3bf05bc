"""The report of a run: one page that needs nothing from outside and tells what was trained, how and how well.

`python -m train.report RUN` writes `report.html` into the folder of a run. What stands on it is put together in
`page`, with the `curves` of the run and the `pictures` of its agent at play; `report.html.jinja` says how it looks.
A run that has only begun has a report too: it says what is missing. Nothing here imports JAX before one is written.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.agent import Agent


def write(folder: str | Path, agent: "Agent | None" = None, *, search: bool = True) -> Path:
    """Write the report of a run into its folder and return its path; a report that is there is replaced.

    `agent` is the one to show, else the newest in the folder. Without `search` no agent is asked anything: the
    sample game and the map of first moves are left out, and writing takes about a second.
    Raises `ValueError` if the folder is no run.
    """
    from train import page, pictures, run_folder
    from train import record as run_record
    from train.agent import load_agent
    from train.checkpoint import CheckpointError

    record = run_record.read(Path(folder))
    missing = page.missing(record)
    games: dict[str, Any] = {"game": None, "opening": None}
    if not search:
        missing.append("The sample game and the map of first moves are left out for now.")
    else:
        try:
            games = pictures.show(agent or load_agent(record.folder), record.config.seed)
        except (CheckpointError, ValueError) as error:  # no agent yet, or a game without pictures
            missing.append(f"There is no sample game: {error}")
    path = record.folder / run_folder.REPORT
    part = path.with_name(path.name + ".part")
    part.write_text(page.render(page.gather(record) | games | {"missing": missing}), encoding="utf-8")
    part.replace(path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m train.report RUN`: write the report of a run, finished or not, into its folder."""
    parser = argparse.ArgumentParser(prog="python -m train.report", description=inspect.getdoc(main))
    parser.add_argument("run", help="folder of a run, such as runs/connect_four")
    given = parser.parse_args(arguments)
    try:
        print(write(given.run))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
