import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from train import __main__ as cli
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
    assert [line.get("iteration") for line in lines] == [1, 2, 2, 2]  # two iterations, two matches
    assert json.loads((folder / "config.json").read_text())["config"]["evaluate_every"] == 0
    assert (folder / "checkpoints" / "000002" / "manifest.json").exists()


def test_a_preset_comes_first_and_its_fields_are_overridden() -> None:
    assert cli.parse([])[0] == "connect_four"
    preset, config = cli.parse(["debug", "--learning-rate", "0.1", "--no-mirror"])
    assert preset == "debug"
    assert (config.learning_rate, config.mirror, config.games) == (0.1, False, debug().games)
    assert cli.parse(["--seed", "3"])[1].seed == 3


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
