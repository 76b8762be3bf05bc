import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmcts
import train
from tests.train import runs
from train import checkpoint
from train.agent import Agent
from train.checkpoint import CheckpointError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.untrained(tmp_path_factory.mktemp("runs"), iterations=(1, 2, 10))


@pytest.fixture(scope="module")
def player(folder: Path) -> Agent:
    return train.load_agent(folder)


def positions(player: Agent, moves: list[int]) -> Any:
    """The start of a game and the position after each move, as a batch."""
    states = [player.env.init(jax.random.key(0))]
    for move in moves:
        states.append(player.env.step(states[-1], move))
    return jax.tree.map(lambda *rows: jnp.stack(rows), *states)


def test_one_position_is_answered_as_in_a_batch(player: Agent) -> None:
    states = positions(player, [4, 0, 8])
    actions, outputs = player(states)
    assert actions.shape == (4,) and outputs.action_weights.shape == (4, 9)
    for row in range(4):
        action, output = player(jax.tree.map(lambda x, row=row: x[row], states))
        assert action.shape == output.value.shape == output.flags.shape == ()
        assert action == actions[row]
        np.testing.assert_allclose(output.action_weights, outputs.action_weights[row], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(output.value, outputs.value[row], rtol=1e-4, atol=1e-6)
        assert "4 simulations" in jaxmcts.view(output.tree, row=0)


def test_the_key_may_be_left_out(player: Agent) -> None:
    states = positions(player, [4, 0, 8])
    np.testing.assert_array_equal(player(states)[0], player(states, jax.random.key(7))[0])


def test_a_finished_game_is_flagged(player: Agent) -> None:
    action, output = player(jax.tree.map(lambda x: x[-1], positions(player, [0, 3, 1, 4, 2])))
    assert action == 0 and output.flags == jaxmcts.Flags.FINISHED and not output.action_weights.any()


def test_the_newest_agent_is_loaded_or_that_of_an_iteration(folder: Path, player: Agent) -> None:
    assert player.iteration == 10
    second = train.load_agent(folder, iteration=2, num_simulations=7)
    assert (second.iteration, second.config.agent_num_simulations) == (2, 7)
    kernels = [jax.tree.leaves(loaded.params)[0] for loaded in (player, second)]
    assert not np.array_equal(*kernels)


def test_what_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`iteration` is 3, but .* keeps agents of \[1, 2, 10\]"):
        train.load_agent(folder, iteration=3)
    with pytest.raises(ValueError, match=r"`run` is .* but it holds no config.json"):
        train.load_agent(tmp_path)
    with pytest.raises(ValueError, match="keeps no agent yet"):
        train.load_agent(runs.untrained(tmp_path, iterations=()))


def test_a_damaged_agent_is_passed_over_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runs.untrained(tmp_path, iterations=(1, 2))
    manifest = folder / "agents" / "000002" / checkpoint.MANIFEST
    manifest.write_text(json.dumps({"step": 2}))
    assert train.load_agent(folder).iteration == 1
    assert "000002" in capsys.readouterr().out
    with pytest.raises(CheckpointError, match="manifest"):
        train.load_agent(folder, iteration=2)
