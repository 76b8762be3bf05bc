import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from train import __main__ as cli
from train.config import Config
from train.presets import debug


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_answers_without_jax() -> None:
    began = time.perf_counter()
    done = run("-X", "importtime", "-m", "train", "--help")
    print(f"--help took {time.perf_counter() - began:.2f} s")
    assert done.returncode == 0
    assert "--learning-rate" in done.stdout and "connect_four" in done.stdout
    imported = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "tyro" in imported
    assert not imported & {"jax", "flax", "optax", "orbax", "numpy", "jaxmcts", "envs"}


def test_debug_trains_from_the_command_line_and_answers(tmp_path: Path) -> None:
    done = run("-W", "error", "-m", "train", "debug", "--runs", str(tmp_path), "--evaluate_every", "0")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "python -m train debug" in done.stdout and "95 % interval" in done.stdout
    assert "\x1b" not in done.stdout  # plain lines in a pipe
    folder = tmp_path / "debug"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["iteration"]) for line in lines] == [("iteration", 1), ("iteration", 2)] + 2 * [
        ("match", 2)
    ]
    assert json.loads((folder / "config.json").read_text())["config"]["evaluate_every"] == 0
    for kept in ("checkpoints", "agents"):
        assert (folder / kept / "000002" / "manifest.json").exists()


def config_of(*arguments: str) -> Config:
    command = cli.parse(list(arguments))[1]
    assert isinstance(command, cli.Command)
    return command.config


def test_a_preset_comes_first_and_its_fields_are_overridden() -> None:
    assert cli.parse([])[0] == "connect_four"
    assert cli.parse(["debug"])[0] == "debug"
    config = config_of("debug", "--learning-rate", "0.1", "--no-mirror")
    assert (config.learning_rate, config.mirror, config.games) == (0.1, False, debug().games)
    assert config_of("--seed", "3").seed == 3


def test_a_resumed_run_takes_no_other_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.parse(["--resume", "runs/x", "--minutes", "5"])[1] == cli.Resume(resume="runs/x", minutes=5.0)
    assert cli.parse(["--resume=runs/x"])[1] == cli.Resume(resume="runs/x", minutes=None)
    for extra in (["--seed", "1"], ["debug"]):
        assert cli.main(["--resume", "runs/x", *extra]) == 2
        assert f"here came {' '.join(extra)}: beside --resume RUN only --minutes" in capsys.readouterr().err
    assert cli.main(["debug", "--resume", "runs/x"]) == 2
    assert "here came debug" in capsys.readouterr().err


def test_a_folder_that_is_no_run_cannot_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--resume", str(tmp_path)]) == 2
    assert "it holds no config.json" in capsys.readouterr().err


def test_profile_prints_where_the_time_goes_and_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {"self-play": 6.0, "network": 4.5, "rules": 0.3, "learning": 2.0, "match": 7.0}
    monkeypatch.setattr("train.timing.measure", lambda stages: seconds)
    assert cli.main(["debug", "--profile", "--runs", str(tmp_path / "runs")]) == 0
    rows = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert "self-play 8 games x 4 moves 6.000 75.0% 100.0%".split() in rows
    assert "network 21 x 8 positions 4.500 56.2% 75.0%".split() in rows
    assert "rules 21 x 8 moves 0.300 3.8% 5.0%".split() in rows
    assert "search and the rest 1.200 15.0% 20.0%".split() in rows
    assert "learning 2 x 16 positions 2.000 25.0%".split() in rows
    assert "a match, beside it 8 games 7.000".split() in rows
    assert not (tmp_path / "runs").exists()


def test_an_unknown_preset_or_game_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tictactoe"]) == 2
    assert "the presets are tic_tac_toe" in capsys.readouterr().err
    assert cli.main(["debug", "--game", "conect_four"]) == 2
    assert "known games are connect_four" in capsys.readouterr().err


def test_a_value_out_of_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["debug", "--batch", "0"])
    assert exit_.value.code == 2
    assert "`batch` is 0" in " ".join(capsys.readouterr().err.split())
