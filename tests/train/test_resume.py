"""A run that is killed or stopped at any moment, and resumed, is the run that was not.

Most tests stop a small run inside this process, between or in the middle of its stages, with the stages compiled
once; some start the command and kill it for real.
"""

import dataclasses
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from train import checkpoint, loop, record, run_folder, run_state
from train import stages as training_stages
from train.loop import Result
from train.presets import debug
from train.stages import Stages

CONFIG = dataclasses.replace(debug(), iterations=4, updates=3, checkpoint_every=2, evaluate_every=3, games=4, steps=3)
CALLS = 4 * (1 + 1 + 3) + 2  # in the run: play, store, three updates; matches on the way and at the end


class Killed(BaseException):
    """Nothing catches this, so what it interrupts is left as a kill leaves it."""


@pytest.fixture(scope="module", autouse=True)
def without_reports() -> Iterator[None]:
    """Reports take most of the time of such small runs, and `test_loop.py` writes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.report, "write", lambda folder, *_, **__: folder / run_folder.REPORT)
        yield


@pytest.fixture(scope="module")
def stages() -> Stages:
    return training_stages.build(CONFIG)


@pytest.fixture(scope="module")
def whole(stages: Stages, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The run that is never stopped."""
    return loop.train(in_folder(stages, tmp_path_factory.mktemp("whole")))


def in_folder(stages: Stages, runs: Path, **fields: Any) -> Stages:
    return dataclasses.replace(stages, config=dataclasses.replace(stages.config, runs=str(runs), **fields))


def disturbed(stages: Stages, at: int, disturb: Callable[[], None]) -> Stages:
    """The same stages, but call number `at` of them is disturbed."""
    numbers = itertools.count()

    def wrap(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(numbers) == at:
                disturb()
            return function(*arguments, **options)

        return call

    parts = {name: wrap(getattr(stages, name)) for name in ("play", "store", "update")}
    ladder: Any = SimpleNamespace(env=stages.ladder.env, measure=wrap(stages.ladder.measure))
    return dataclasses.replace(stages, ladder=ladder, **parts)


def kill() -> None:
    raise Killed


def killed(stages: Stages, runs: Path, at: int) -> Path:
    """A run that was killed at a call; its folder."""
    with pytest.raises(Killed):
        loop.train(disturbed(in_folder(stages, runs), at, kill))
    return runs / CONFIG.name


def stopped(stages: Stages, runs: Path, at: int, number: int = signal.SIGINT) -> Result:
    """A run that got a signal at a call."""
    return loop.train(disturbed(in_folder(stages, runs), at, lambda: signal.raise_signal(number)))


def records(folder: Path) -> list[dict[str, Any]]:
    """The metrics without the times, which differ from run to run."""
    lines = (folder / run_folder.METRICS).read_text().splitlines()
    return [json.loads(line) | {"seconds": None, "minutes": None} for line in lines]


def assert_same(folder: Path, digest: str, whole: Result) -> None:
    assert digest == whole.digest
    assert records(folder) == records(whole.folder)
    agents = [checkpoint.steps(f / run_folder.AGENTS) for f in (folder, whole.folder)]
    assert agents == [[4, 3], [4, 3]]


def contents(folder: Path) -> dict[Path, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("at", [0, 4, 7, 10, 14, 16, CALLS - 1])
def test_killed_in_a_stage(at: int, stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = killed(stages, tmp_path, at)
    result = loop.resume(folder, stages=stages)
    assert_same(folder, result.digest, whole)
    assert result.score == whole.score


def test_killed_again_and_again(stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = killed(stages, tmp_path, 12)
    for at in (1, 8, 6):
        with pytest.raises(Killed):
            loop.resume(folder, stages=disturbed(stages, at, kill))
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)


def test_killed_while_a_checkpoint_takes_the_place_of_another(
    stages: Stages, whole: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.rename

    def dying_rename(path: Path, target: Path) -> Path:
        if path.name == "new.part" and list(path.parent.glob("*.old")):
            raise Killed
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying_rename)
        with pytest.raises(Killed):
            loop.train(in_folder(stages, tmp_path))
    folder = tmp_path / CONFIG.name
    assert list((folder / run_folder.CHECKPOINTS).glob("*.old"))
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("save", [0, 2, 3])
def test_killed_while_saving(
    save: int,
    written: bool,
    stages: Stages,
    whole: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    numbers = itertools.count()
    real = checkpoint.ocp.save

    def dying_save(path: Path, *arguments: Any) -> None:
        last = next(numbers) == save
        if written or not last:
            real(path, *arguments)
        if last:
            path.mkdir(parents=True, exist_ok=True)
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.ocp, "save", dying_save)
        with pytest.raises(Killed):
            loop.train(in_folder(stages, tmp_path))
    capsys.readouterr()
    folder = tmp_path / CONFIG.name
    result = loop.resume(folder, stages=stages)
    said = capsys.readouterr().out
    assert ("begins anew" if save == 0 else "Resumed after") in said
    assert_same(folder, result.digest, whole)


@pytest.mark.parametrize(("at", "iterations"), [(0, 0), (3, 0), (4, 0), (15, 2), (17, 3), (19, 3), (CALLS - 1, 3)])
def test_stopped_by_ctrl_c(at: int, iterations: int, stages: Stages, whole: Result, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    first = stopped(stages, tmp_path, at)
    assert signal.getsignal(signal.SIGINT) is before
    assert (first.exit_status, first.iterations) == (130, iterations)
    result = loop.resume(first.folder, stages=stages)
    assert_same(first.folder, result.digest, whole)


def test_a_stop_says_how_to_go_on(stages: Stages, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = stopped(stages, tmp_path, 8, signal.SIGTERM)
    said = capsys.readouterr().out
    assert result.exit_status == 143 and result.score is None
    assert f"python -m train --resume {result.folder}\n" in said and result.digest in said
    assert "after 5 updates" in said  # two of iteration 2


@pytest.mark.parametrize(
    ("at", "kept"),
    [(3, []), (4, [1]), (8, [1]), (9, [2]), (14, [3]), (15, [3]), (18, [3]), (CALLS - 2, [4, 3]), (CALLS - 1, [4, 3])],
)
def test_a_stop_keeps_the_agent_under_the_iterations_it_has_learned_from_in_full(
    at: int, kept: list[int], stages: Stages, whole: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = stopped(stages, tmp_path, at).folder / run_folder.AGENTS
    assert checkpoint.steps(agents) == kept
    for measured in {3, 4}.intersection(kept):  # of these the run keeps what it measures, not what came a little later
        digests = [checkpoint.read_manifest(f, measured).digest for f in (agents, whole.folder / run_folder.AGENTS)]
        assert digests[0] == digests[1]
    said = capsys.readouterr().out  # of an agent only if there is one
    assert ("train.load_agent(" in said) == ("python -m train.ask " in said) == bool(kept)


def test_what_is_counted_agrees_after_a_stop_between_two_updates(stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = stopped(stages, tmp_path, 8).folder
    loop.resume(folder, stages=stages)
    arrays, status, _ = run_state.load(folder, stages, print)
    counts = [x for x in jax.tree.leaves(arrays.learner.opt_state) if x.shape == () and x.dtype == np.int32]
    assert status.updates == int(arrays.learner.updates) == max(map(int, counts)) == 12
    last = [record for record in records(folder) if record["kind"] == "iteration"][-1]
    assert (last["updates"], last["positions"]) == (12, 4 * 4 * 3) == (status.updates, status.positions)
    assert last["evaluations"] == last["positions"] * (CONFIG.num_simulations + 1) + 4 * CONFIG.games


def test_the_last_two_checkpoints_are_kept(whole: Result) -> None:
    assert sorted(path.name for path in (whole.folder / run_folder.CHECKPOINTS).iterdir()) == ["000003", "000004"]


def test_a_damaged_checkpoint_is_skipped_and_said_so(
    stages: Stages, whole: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped(stages, tmp_path, 16).folder
    newest = folder / run_folder.CHECKPOINTS / "000004"
    file = max((p for p in (newest / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)
    assert f"Checkpoint skipped: {newest}" in capsys.readouterr().out


def test_a_run_that_lost_its_checkpoints_keeps_the_rest(stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = shutil.copytree(whole.folder, tmp_path / "run")
    shutil.rmtree(folder / run_folder.CHECKPOINTS)
    before = contents(folder)
    with pytest.raises(
        checkpoint.CheckpointError, match=r"the agents of iterations \[3, 4\] but no finished checkpoint"
    ):
        loop.resume(folder, stages=stages)
    assert contents(folder) == before


@pytest.mark.parametrize("line", ["", "null", "{}", "\0", '{"kind": "match"}', '{"iteration": "x"}', "{"])
def test_odd_lines_of_the_metrics_are_left_out(line: str, stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = stopped(stages, tmp_path, 16).folder
    path = folder / run_folder.METRICS
    path.write_text(line + "\n" + path.read_text())
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)


def test_a_finished_run_is_left_as_it_is(stages: Stages, whole: Result, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(whole.folder)
    result = loop.resume(whole.folder, stages=stages)
    assert "finished: all its 4 iterations are done. Nothing is changed." in capsys.readouterr().out
    assert (result.digest, result.exit_status) == (whole.digest, 0)
    assert contents(whole.folder) == before


def test_a_run_with_more_behind_it_than_its_config_asks_for_is_finished(
    stages: Stages, whole: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole.folder, folder)
    path = folder / run_folder.CONFIG
    path.write_text(path.read_text().replace('"iterations": 4', '"iterations": 3'))
    result = loop.resume(folder, stages=stages)
    assert "finished: all its 3 iterations are done" in capsys.readouterr().out and result.digest == whole.digest


def test_a_run_whose_time_was_over_goes_on_with_more(
    stages: Stages, whole: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = loop.train(in_folder(stages, tmp_path, minutes=1e-6)).folder
    ended = record.read(folder)
    assert ended.finished and [line["iteration"] for line in ended.finals] == [1, 1]
    assert loop.resume(folder, stages=stages).iterations == 1
    assert f"give more with python -m train --resume {folder} --minutes 2. Nothing" in capsys.readouterr().out
    with pytest.raises(ValueError, match="`minutes` is 2e-06, but the run has used"):
        loop.resume(folder, minutes=2e-6, stages=stages)
    capsys.readouterr()
    loop.resume(folder, minutes=30.0, stages=disturbed(stages, 5, lambda: signal.raise_signal(signal.SIGINT)))
    assert f"Resume:   python -m train --resume {folder} --minutes 30\n" in capsys.readouterr().out
    assert 1 in checkpoint.steps(folder / run_folder.AGENTS)  # it was measured when the time was over
    went_on = record.read(folder)
    assert went_on.iteration == 2 and not went_on.finished and not went_on.finals
    assert loop.resume(folder, minutes=60.0, stages=stages).digest == whole.digest
    ended = record.read(folder)
    assert ended.finished and [line["iteration"] for line in ended.finals] == [4, 4, 4]


def test_a_run_stopped_between_the_matches_at_the_end_is_not_finished(stages: Stages, tmp_path: Path) -> None:
    def measure(*arguments: Any, **options: Any) -> Any:
        for number, match in enumerate(stages.ladder.measure(*arguments, **options)):
            if options["final"] and number == 1:
                signal.raise_signal(signal.SIGINT)
            yield match

    ladder: Any = SimpleNamespace(env=stages.ladder.env, measure=measure)
    folder = loop.train(dataclasses.replace(in_folder(stages, tmp_path), ladder=ladder)).folder
    stopped = record.read(folder)
    assert stopped.finals and not stopped.finished


def test_two_processes_cannot_write_to_one_run(stages: Stages, whole: Result) -> None:
    with run_folder.locked(whole.folder), pytest.raises(ValueError, match="another process is writing"):
        loop.resume(whole.folder, stages=stages)


def test_another_machine_is_warned_of(
    stages: Stages, whole: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = killed(stages, tmp_path, 12)
    path = folder / run_folder.CONFIG
    told = json.loads(path.read_text())
    told["device"]["threads"] = 77
    told["versions"]["jax"] = "0.0"
    path.write_text(json.dumps(told))
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Warning")]
    assert len(warnings) == 1
    assert "was 77" in warnings[0] and "was 0.0" in warnings[0] and "cpus" not in warnings[0]


def test_a_line_that_was_cut_is_dropped(stages: Stages, whole: Result, tmp_path: Path) -> None:
    folder = killed(stages, tmp_path, 19)
    with (folder / run_folder.METRICS).open("a") as file:
        file.write('{"kind": "iteration", "itera')
    assert_same(folder, loop.resume(folder, stages=stages).digest, whole)


def test_tensorboard_gets_each_step_once(stages: Stages, tmp_path: Path) -> None:
    folder = killed(stages, tmp_path, 19)  # iteration 3 was written, the newest checkpoint is before its end
    loop.resume(folder, stages=stages)
    shown = events(folder, "training/loss")
    lines = [record for record in records(folder) if record["kind"] == "iteration"]
    assert [step for step, _ in shown] == [1, 2, 3, 4] == [record["iteration"] for record in lines]
    np.testing.assert_allclose([loss for _, loss in shown], [record["loss"] for record in lines], rtol=1e-6)
    assert [step for step, _ in events(folder, "score/uct_4")] == [3, 4]


def events(folder: Path, tag: str) -> list[tuple[int, float]]:
    """The scalars of a tag: records of TensorFlow's format, each with its length and two checksums around it."""
    (path,) = (folder / run_folder.TENSORBOARD).iterdir()
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found += [(event.step, value.simple_value) for value in event.summary.value if value.tag == tag]
        data = data[16 + length :]
    return found


def watched(stages: Stages, watch: Callable[[], None]) -> Stages:
    """The same stages, but there is a look at the process before each self-play."""

    def play(*arguments: Any) -> Any:
        watch()
        return stages.play(*arguments)

    return dataclasses.replace(stages, play=play)


def test_every_function_is_traced_once_and_no_array_stays(stages: Stages, tmp_path: Path) -> None:
    """Over many iterations, with checkpoints, matches and what the other tests do with the same functions."""
    alive: list[int] = []
    many = in_folder(stages, tmp_path, iterations=40, evaluate_every=10)
    loop.train(watched(many, lambda: alive.append(len(jax.live_arrays()))))
    for name in ("start", "play", "store", "update"):
        assert getattr(stages, name)._cache_size() == 1, name
    assert len(alive) == 40
    assert max(alive[20:]) <= max(alive[:20])  # after a checkpoint there are more for a while


class Command:
    """`python -m train ...` in a process of its own; compiled programs come from a cache that all of them share."""

    def __init__(self, *arguments: str, cache: Path):
        settings = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in `wait`)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "train", *arguments],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=os.environ | settings,
        )

    def wait(self, status: int) -> str:
        """Wait for the end with this exit status; gives what was printed."""
        found = self.process.wait(timeout=600)
        self._output.seek(0)
        said = self._output.read()
        self._output.close()
        assert found == status, said
        return said

    def wait_for_lines(self, folder: Path, count: int) -> None:
        """Wait until the run has written so many lines of metrics, or ended."""
        path = folder / run_folder.METRICS
        while self.process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") >= count):
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()


def digest(said: str) -> str:
    return re.findall(r"Digest: +(\w{64})", said)[-1]


FIELDS = ("--iterations", "6", "--checkpoint-every", "1", "--evaluate-every", "2")


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_to_the_same_end(tmp_path: Path) -> None:
    cache, runs = tmp_path / "cache", ("--runs", str(tmp_path))
    expected = digest(Command("debug", *FIELDS, *runs, "--name", "whole", cache=cache).wait(0))
    folder = tmp_path / "killed"
    first = Command("debug", *FIELDS, *runs, "--name", "killed", cache=cache)
    first.wait_for_lines(folder, 3)
    first.kill()
    second = Command("--resume", str(folder), cache=cache)
    second.wait_for_lines(folder, 5)
    second.process.terminate()
    assert f"python -m train --resume {folder}" in second.wait(143)
    said = Command("--resume", str(folder), cache=cache).wait(0)
    assert digest(said) == expected
    assert records(folder) == records(tmp_path / "whole")


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path: Path) -> None:
    cache, runs = tmp_path / "cache", ("--runs", str(tmp_path))
    fields = (*FIELDS, "--iterations", "60", "--checkpoint-every", "3", "--evaluate-every", "10")
    expected = digest(Command("debug", *fields, *runs, "--name", "whole", cache=cache).wait(0))
    folder = tmp_path / "killed"
    draw = random.Random(0)
    for number in range(10):
        arguments = ("--resume", str(folder)) if number else ("debug", *fields, *runs, "--name", "killed")
        run = Command(*arguments, cache=cache)
        if number % 2:  # from the middle of the run, not of the start of the process
            lines = folder / run_folder.METRICS
            run.wait_for_lines(folder, lines.read_bytes().count(b"\n") + 2 if lines.exists() else 2)
        time.sleep(draw.uniform(0, 1 if number % 2 else 10))
        run.kill()
    said = Command("--resume", str(folder), cache=cache).wait(0)
    assert digest(said) == expected
    assert records(folder) == records(tmp_path / "whole")


@pytest.mark.slow
def test_memory_stays_flat_over_a_thousand_iterations(stages: Stages, tmp_path: Path) -> None:
    memory: list[float] = []
    alive: list[int] = []

    def watch() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory.append(pages * resource.getpagesize() / 2**20)
        alive.append(len(jax.live_arrays()))

    many = in_folder(stages, tmp_path, iterations=1000, checkpoint_every=20, evaluate_every=100)
    loop.train(watched(many, watch))
    print(f"MiB after 200, 600 and 1,000 iterations: {memory[200]:.1f} {memory[600]:.1f} {memory[-1]:.1f}")
    assert max(alive[200:]) <= max(alive[:200])
    assert memory[-1] - memory[200] < 0.05 * memory[200]
