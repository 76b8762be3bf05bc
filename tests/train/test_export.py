import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from tests.train import runs
from train import export
from train.agent import Agent

# Plays a file in a process where nothing of the project can be imported, nor any package of the trainer.
USER = """
import pathlib, sys
for name in ("jaxmcts", "envs", "train", "flax", "optax", "orbax"):
    sys.modules[name] = None  # importing it raises
import jax, numpy
file, states, key_data, answers = sys.argv[1], numpy.load(sys.argv[2]), numpy.load(sys.argv[3]), sys.argv[4]
exported = jax.export.deserialize(bytearray(pathlib.Path(file).read_bytes()))
numpy.savez(answers, **exported.call({name: states[name] for name in states.files}, key_data))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.untrained(tmp_path_factory.mktemp("runs"), iterations=(1, 2))


@pytest.fixture(scope="module")
def player(folder: Path) -> Agent:
    return train.load_agent(folder)


@pytest.fixture(scope="module")
def file(player: Agent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train.export_agent(player, tmp_path_factory.mktemp("files") / "agent.bin")


def positions(player: Agent, count: int) -> Any:
    """The first `count` of: a new game, a middle of one, and a finished one."""
    states = [player.env.init(jax.random.key(0))]
    for move in (4, 0, 8):
        states.append(player.env.step(states[-1], move))
    for move in (0, 3, 1, 4, 2):
        states[0] = player.env.step(states[0], move)
    return jax.tree.map(lambda *rows: jnp.stack(rows), *states[:count])


@pytest.mark.parametrize("count", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_the_file_plays_as_the_agent_does_with_jax_alone(player: Agent, file: Path, tmp_path: Path, count: int) -> None:
    states = positions(player, count)
    given = [tmp_path / "states.npz", tmp_path / "key.npy", tmp_path / "answers.npz"]
    np.savez(given[0], **vars(states))
    np.save(given[1], jax.random.key_data(jax.random.key(5)))
    command = [sys.executable, "-W", "error", "-c", USER, str(file), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = np.load(given[2])
    action, output = player(states, jax.random.key(5))
    np.testing.assert_array_equal(answers["action"], action)
    np.testing.assert_allclose(answers["action_weights"], output.action_weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(answers["value"], output.value, rtol=1e-4, atol=1e-6)


def test_the_file_tells_what_it_takes_and_where_it_runs(file: Path) -> None:
    exported = jax.export.deserialize(bytearray(file.read_bytes()))
    assert exported.platforms == ("cpu", "cuda", "tpu")
    (state, key_data), _ = jax.tree.unflatten(exported.in_tree, exported.in_avals)
    assert set(state) == {"board", "to_play", "terminated", "truncated", "rewards"}
    assert str(state["rewards"].shape) == "(batch, 2)" and key_data.shape == (2,)


def test_export_from_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.bin"
    assert export.main([str(folder), str(file), "--iteration", "1", "--platforms", "cpu"]) == 0
    assert f"{file}: " in capsys.readouterr().out and file.stat().st_size > 10_000
    assert export.main([str(folder), str(file), "--iteration", "3"]) == 2
    assert "`iteration` is 3" in capsys.readouterr().err
    assert export.main([str(folder), str(tmp_path / "none" / "agent.bin")]) == 2
