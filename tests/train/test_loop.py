"""The whole loop on the debug preset. Its stages are compiled once for all tests of this file."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from train import agent, loop, match, timing
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
        ("agent@1", "uct:4", False),
        ("agent@2", "uct:4", True),
        ("agent@2", "agent@1", True),
        ("agent@2", "random", True),
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
    assert player.iteration == 2
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


@pytest.fixture
def without_reports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Reports take most of the time of small runs; the agents that they would show."""
    shown: list[Any] = []
    monkeypatch.setattr(loop.report, "write", lambda folder, agent, search: shown.append(agent))
    return shown


def test_the_running_mean_plays_and_is_kept(stages: Stages, tmp_path: Path, without_reports: list[Any]) -> None:
    """Updates go on from the newest weights; all else uses their mean, here the newest plus 1."""

    def leaf(params: Any) -> np.ndarray:
        return np.array(jax.tree.leaves(params)[0])

    def with_mean(state: Any) -> Any:
        newest.append(leaf(state.params))
        return dataclasses.replace(state, average=jax.tree.map(lambda x: x + 1, state.params))

    newest: list[np.ndarray] = []
    used: list[np.ndarray] = []  # in the place of newest[...] + 1

    def start(key: jax.Array) -> Any:
        state, *rest = stages.start(key)
        return with_mean(state), *rest

    def play(params: Any, *rest: Any) -> Any:
        np.testing.assert_array_equal(leaf(params), newest[-1] + 1)
        used.append(leaf(params))
        return stages.play(params, *rest)

    def update(state: Any, *rest: Any) -> Any:
        np.testing.assert_array_equal(leaf(state.params), newest[-1])
        state, metrics = stages.update(dataclasses.replace(state, average=None), *rest)
        return with_mean(state), metrics

    def measure(params: Any, *rest: Any, **options: Any) -> Any:
        np.testing.assert_array_equal(leaf(params), newest[-1] + 1)
        used.append(leaf(params))
        return stages.ladder.measure(params, *rest, **options)

    ladder: Any = SimpleNamespace(env=stages.ladder.env, measure=measure)
    spied = with_config(stages, runs=str(tmp_path))
    result = loop.train(dataclasses.replace(spied, start=start, play=play, update=update, ladder=ladder))
    assert len(newest) == 1 + 4 and len(used) == 2 + 2
    for iteration, number in ((1, 2), (2, 4)):
        kept = train.load_agent(result.folder, iteration=iteration)
        np.testing.assert_array_equal(leaf(kept.params), newest[number] + 1)
    np.testing.assert_array_equal(leaf(without_reports[-1].params), newest[-1] + 1)


def test_c055_no_two_stages_get_the_same_key(stages: Stages, tmp_path: Path, without_reports: list[Any]) -> None:
    keys: list[tuple[int, ...]] = []

    def noting(function: Any, place: int) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            keys.append(tuple(jax.random.key_data(arguments[place]).tolist()))
            return function(*arguments, **options)

        return call

    parts = {name: noting(getattr(stages, name), place) for name, place in (("start", 0), ("play", 2), ("update", 2))}
    ladder: Any = SimpleNamespace(env=stages.ladder.env, measure=noting(stages.ladder.measure, 3))
    for seed in (0, 1):
        spied = with_config(stages, runs=str(tmp_path), seed=seed, iterations=3)
        loop.train(dataclasses.replace(spied, ladder=ladder, **parts))
    assert len(keys) == 2 * (1 + 3 * (1 + 2 + 1)) == len(set(keys))


def test_matches_are_compiled_once_however_many_there_are(
    stages: Stages, results: list[Result], tmp_path: Path, without_reports: list[Any]
) -> None:
    program: Any = match.play
    compiled = program._cache_size()
    loop.train(with_config(stages, runs=str(tmp_path), iterations=5))
    assert program._cache_size() == compiled > 0


def test_c093_a_stage_takes_what_it_changes_and_leaves_the_rest(stages: Stages) -> None:
    learner, games, ring = stages.start(jax.random.key(0))
    copy = jax.tree.map(jnp.copy, learner.params)
    after, trajectory = stages.play(learner.playing, games, jax.random.key(1))
    ring = stages.store(ring, trajectory)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((learner, trajectory)))
    stages.update(learner, ring, jax.random.key(2))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((learner.params, games)))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(ring))
    stages.play(copy, after, jax.random.key(3))  # a copy of the weights of before still plays
    with pytest.raises((ValueError, RuntimeError), match="deleted"):  # one or the other by the version of jax
        stages.play(learner.playing, after, jax.random.key(3))
