"""The whole loop on the debug preset. Its stages are compiled once for all tests of this file."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from train import agent, loop, timing
from train import stages as training_stages
from train.loop import Result
from train.presets import debug
from train.stages import Stages


@pytest.fixture(scope="module")
def stages() -> Stages:
    return training_stages.build(debug())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def results(stages: Stages, runs: Path) -> list[Result]:
    """Two runs of the same seed and name."""
    return [loop.train(with_config(stages, runs=str(runs))) for _ in range(2)]


def with_config(stages: Stages, **fields: Any) -> Stages:
    return dataclasses.replace(stages, config=dataclasses.replace(stages.config, **fields))


def metrics(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]


def test_debug_runs_through_and_measures(results: list[Result]) -> None:
    result = results[0]
    assert result.iterations == 2 and result.score is not None and result.score.games == 16
    lines = metrics(result)
    iterations, matches = ([line for line in lines if line["kind"] == kind] for kind in ("iteration", "match"))
    assert len(lines) == len(iterations) + len(matches)
    assert [line["iteration"] for line in iterations] == [1, 2]
    assert [line["iteration"] for line in matches] == [1, 2, 2, 2]
    assert [line["wins"] + line["draws"] + line["losses"] for line in matches] == [8, 16, 8, 8]
    assert [(line["first"], line["second"], line["final"]) for line in matches] == [
        ("agent 1", "uct 4", False),
        ("agent 2", "uct 4", True),
        ("agent 2", "agent 1", True),
        ("agent 2", "random", True),
    ]
    assert all(np.isfinite(line["loss"]) and line["skipped_updates"] == 0 for line in iterations)
    assert [line["updates"] for line in iterations] == [2, 4]
    assert [line["positions"] for line in iterations] == [32, 64]
    minutes = [line["minutes"] for line in lines]
    assert minutes == sorted(set(minutes)) and minutes[0] > 0  # matches take time too


def test_a_run_leaves_the_other_alone(results: list[Result], runs: Path) -> None:
    assert [result.folder for result in results] == [runs / "debug", runs / "debug-2"]


def test_the_same_seed_gives_the_same_metrics(results: list[Result]) -> None:
    first, second = ([line | {"seconds": 0, "minutes": 0} for line in metrics(result)] for result in results)
    assert first == second
    assert results[0].digest == results[1].digest


def test_another_seed_gives_others(results: list[Result], stages: Stages, tmp_path: Path) -> None:
    other = loop.train(with_config(stages, runs=str(tmp_path), seed=1))
    assert metrics(other)[0]["loss"] != metrics(results[0])[0]["loss"]
    assert other.digest != results[0].digest


def test_the_agent_can_be_loaded_and_asked(results: list[Result]) -> None:
    player = train.load_agent(results[0].folder)
    assert player.step == 2
    state = jax.vmap(player.env.init)(jax.random.split(jax.random.key(0), 3))
    action, output = player(state, jax.random.key(1))
    assert action.shape == (3,) and (action == action[0]).all()  # it plays without noise
    np.testing.assert_allclose(output.action_weights.sum(axis=1), np.ones(3), rtol=1e-5)
    assert "The agent plays" in agent.answer(player, ["b2", "a1"])


def test_a_limit_of_time_ends_the_run_with_a_match(stages: Stages, tmp_path: Path) -> None:
    result = loop.train(with_config(stages, runs=str(tmp_path), minutes=1e-6))
    assert result.iterations == 1 and result.score is not None and result.score.games == 16


@pytest.mark.parametrize("error", [RuntimeError("no fonts"), KeyboardInterrupt("no fonts")])
def test_a_report_that_fails_is_told_and_leaves_the_run_alone(
    error: BaseException,
    results: list[Result],
    stages: Stages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def write(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(loop.report, "write", write)
    result = loop.train(with_config(stages, runs=str(tmp_path)))
    assert (result.exit_status, result.digest, result.score) == (0, results[0].digest, results[0].score)
    said = capsys.readouterr().out
    told = f"The report was not written ({type(error).__name__}: no fonts); the run is not touched"
    assert -1 < said.index("Strength: ") < said.index(told)
    assert f"python -m train.report {result.folder}\n" in said


def test_updates_that_are_never_finite_end_the_run(stages: Stages, tmp_path: Path) -> None:
    def store(*arguments: Any) -> Any:
        ring = stages.store(*arguments)
        broken = dataclasses.replace(ring.items, value=ring.items.value * jnp.nan)
        return dataclasses.replace(ring, items=broken)

    with pytest.raises(FloatingPointError, match="not finite"):
        loop.train(dataclasses.replace(with_config(stages, runs=str(tmp_path)), store=store))


def test_the_parts_of_an_iteration_can_be_timed(stages: Stages) -> None:
    seconds = timing.measure(stages, repeats=1)
    assert set(seconds) == {"self-play", "network", "rules", "learning", "match"}
    assert all(value > 0 for value in seconds.values())


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`run` is .* but it holds no config.json"):
        train.load_agent(tmp_path)


def test_updates_that_diverge_end_the_run_before_anything_is_kept(tmp_path: Path) -> None:
    config = dataclasses.replace(debug(), runs=str(tmp_path), iterations=1, updates=6, learning_rate=1e30)
    with pytest.raises(FloatingPointError, match="not finite"):
        loop.train(training_stages.build(config))
    assert not list((tmp_path / "debug" / "agents").glob("*"))


def test_c070_training_fits_together_in_64_bit_mode(tmp_path: Path) -> None:
    with jax.enable_x64(True):
        built = training_stages.build(dataclasses.replace(debug(), runs=str(tmp_path), games=2, steps=2))
        learner, games, ring = jax.eval_shape(built.start, jax.random.key(0))
        games, trajectory = jax.eval_shape(built.play, learner.playing, games, jax.random.key(0))
        ring = jax.eval_shape(built.store, ring, trajectory)
        after, _ = jax.eval_shape(built.update, learner, ring, jax.random.key(0))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(lambda x: (x.shape, x.dtype), learner)
