"""The commands that a run prints are read back as a shell would."""

import dataclasses
import math
import shlex
from pathlib import Path

import numpy as np
import pytest

from train import __main__ as cli
from train import checkpoint, messages, run_folder
from train.config import Config
from train.presets import debug
from train.run_state import Status

NAMES = ["plain", "my run", "it's", "$HOME; rm *", "a#b & c", "ümlaut"]


def words_after(text: str, start: str) -> list[str]:
    """The words of the command in the line that begins with `start`, without what is said in brackets after it."""
    (line,) = (line for line in text.splitlines() if line.startswith(start))
    return shlex.split(line.removeprefix(start).partition("    (")[0])


def make_run(runs: Path, name: str = "run", minutes: float = math.inf) -> tuple[Config, Path]:
    config = dataclasses.replace(debug(), runs=str(runs), name=name, minutes=minutes)
    folder = run_folder.create(config)
    checkpoint.save(folder / run_folder.AGENTS, 1, {"weight": np.zeros(1)})
    return config, folder


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_every_command_whatever_the_folder_is_called(name: str, tmp_path: Path) -> None:
    config, folder = make_run(tmp_path / "all runs", name)
    assert shlex.split(messages.command("train.report", folder)) == ["python", "-m", "train.report", str(folder)]
    said = messages.stopped(config, folder, Status(played=1), "")
    assert words_after(said, "Resume:") == ["python", "-m", "train", "--resume", str(folder)]
    assert words_after(said, "Ask:") == ["python", "-m", "train.ask", str(folder)]
    (load,) = (line for line in said.splitlines() if line.startswith("Load:"))
    assert eval(load.partition("load_agent")[2]) == str(folder)


def minutes_asked(words: list[str]) -> float | None:
    """What a command `python -m train --resume` asks for."""
    command = cli.parse(words[words.index("--resume") : words.index("--resume") + 4])[1]
    assert isinstance(command, cli.Resume)
    return command.minutes


@pytest.mark.parametrize(
    ("own", "given", "used", "asked"),
    [
        (math.inf, None, 3.0, None),
        (5.0, None, 3.0, None),
        (5.0, None, 5.5, None),  # its last matches are still to be played
        (5.0, 30.0, 7.0, 30.0),
        (5.0, 1234567.25, 7.0, 1234567.25),
        (5.0, math.inf, 7.0, math.inf),
        (math.inf, 30.0, 7.0, 30.0),
        (5.0, 30.0, 30.5, 62.0),  # 30 would be refused
    ],
)
def test_a_stopped_run_goes_on_by_the_limit_it_had(
    own: float, given: float | None, used: float, asked: float | None, tmp_path: Path
) -> None:
    config, folder = make_run(tmp_path, minutes=own)
    sitting = config if given is None else dataclasses.replace(config, minutes=given)
    said = messages.stopped(sitting, folder, Status(played=1, minutes=used), "")
    assert minutes_asked(words_after(said, "Resume:")) == asked


@pytest.mark.parametrize("used", [1e-9, 2.0, 2.99999, 1e6])
def test_a_run_whose_time_is_over_is_given_a_limit_that_lets_it_go_on(used: float, tmp_path: Path) -> None:
    config, folder = make_run(tmp_path, "my run", minutes=1e-9)
    finished = messages.finished(config, folder, Status(closed=1, minutes=used, finished=True), "")
    interrupted = messages.interrupted(config, folder, used)
    for said in (finished.partition("give more with ")[2].partition(". Nothing")[0], interrupted.partition(" by ")[2]):
        asked = minutes_asked(shlex.split(said))
        assert asked is not None and used + 1 <= asked <= used + 2.1


@pytest.mark.parametrize("own", [math.inf, 0.5])
def test_a_run_ended_by_the_limit_of_a_sitting_is_given_more(own: float, tmp_path: Path) -> None:
    config, folder = make_run(tmp_path, minutes=own)
    said = messages.out_of_time(config, folder, 1, 3.0)
    asked = minutes_asked(shlex.split(said.partition("give more with ")[2]))
    assert asked is not None and 4 <= asked <= 7


def test_an_interrupted_run_whose_time_is_not_over_needs_no_limit(tmp_path: Path) -> None:
    config, folder = make_run(tmp_path, minutes=5.0)
    assert messages.interrupted(config, folder, 4.9) == f"python -m train --resume {folder}"
