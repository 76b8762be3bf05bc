import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train import checkpoint, learner
from train.checkpoint import CheckpointError
from train.config import Config
from train.learner import Learner

OPTIMIZER = learner.make_optimizer(Config())


def trained(seed: int = 0, width: int = 256) -> Learner:
    """A learner whose moments are not 0."""
    return _trained(jax.random.key(seed), width)


@functools.partial(jax.jit, static_argnums=1)
def _trained(key: jax.Array, width: int) -> Learner:
    params = {"layers": {0: {"kernel": jax.random.normal(key, (width, 8)), "bias": jnp.ones(8)}}}
    _, opt_state = OPTIMIZER.update(params, OPTIMIZER.init(params), params)
    return Learner(params=params, average=None, opt_state=opt_state, updates=jnp.int32(1))


def shapes(tree: Any) -> Any:
    return jax.eval_shape(lambda: tree)


def assert_equal(one: Any, other: Any) -> None:
    chex.assert_trees_all_equal_structs(one, other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def flip_a_bit(path: Path) -> None:
    """Flip one bit in the middle of the largest file, which holds the arrays."""
    file = max((p for p in (path / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_what_is_saved_comes_back_with_the_moments(tmp_path: Path) -> None:
    state = trained()
    path = checkpoint.save(tmp_path / "run", 7, state)
    step, loaded = checkpoint.load(tmp_path / "run", shapes(state))
    assert (step, path.name) == (7, "000007")
    assert_equal(loaded, state)
    assert max(float(jnp.abs(x).max()) for x in jax.tree.leaves(loaded.opt_state) if x.ndim) > 0


def test_the_newest_is_loaded_and_a_step_can_be_written_again(tmp_path: Path) -> None:
    for step, seed in ((9, 0), (10, 1), (10, 2)):
        checkpoint.save(tmp_path, step, trained(seed))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000009", "000010"]
    step, loaded = checkpoint.load(tmp_path, shapes(trained()))
    assert step == 10
    assert_equal(loaded, trained(2))


def test_a_flipped_bit_is_found_and_the_one_before_is_taken(tmp_path: Path) -> None:
    state = trained()
    checkpoint.save(tmp_path, 1, state)
    flip_a_bit(checkpoint.save(tmp_path, 2, trained(1)))
    said: list[str] = []
    step, loaded = checkpoint.load(tmp_path, shapes(state), said.append)
    assert step == 1
    assert_equal(loaded, state)
    assert len(said) == 1 and "000002" in said[0]


def test_an_unfinished_one_is_skipped(tmp_path: Path) -> None:
    state = trained()
    checkpoint.save(tmp_path, 1, state)
    (checkpoint.save(tmp_path, 2, state) / checkpoint.MANIFEST).unlink()
    assert checkpoint.load(tmp_path, shapes(state), lambda text: None)[0] == 1


def test_a_damaged_manifest_is_skipped(tmp_path: Path) -> None:
    state = trained()
    checkpoint.save(tmp_path, 1, state)
    (checkpoint.save(tmp_path, 2, state) / checkpoint.MANIFEST).write_text('{"step": 2, "lea')
    said: list[str] = []
    assert checkpoint.load(tmp_path, shapes(state), said.append)[0] == 1
    assert "manifest cannot be read" in said[0]


def test_notes_come_back_and_the_digest_is_of_the_arrays_alone(tmp_path: Path) -> None:
    for step, (seed, notes) in enumerate([(0, {"a": [1, 0.1]}), (0, {}), (1, {})]):
        checkpoint.save(tmp_path, step, trained(seed), notes=notes)
    first, same, other = (checkpoint.read_manifest(tmp_path, step) for step in range(3))
    assert first.notes == {"a": [1, 0.1]}
    assert first.digest == same.digest != other.digest


def change_notes(contents: dict[str, Any]) -> None:
    contents["notes"]["closed"] = 5


def lose_notes(contents: dict[str, Any]) -> None:
    contents["notes"] = {}


def change_a_hash(contents: dict[str, Any]) -> None:
    next(iter(contents["leaves"].values()))["sha256"] = "0" * 64


def change_the_digest(contents: dict[str, Any]) -> None:
    contents["digest"] = "0" * 64


def add_a_field(contents: dict[str, Any]) -> None:
    contents["more"] = 1


def lose_the_checksum(contents: dict[str, Any]) -> None:
    del contents["checksum"]


@pytest.mark.parametrize(
    "change", [change_notes, lose_notes, change_a_hash, change_the_digest, add_a_field, lose_the_checksum]
)
def test_a_manifest_that_was_changed_anywhere_is_found(change: Callable[[Any], None], tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, trained(), notes={"closed": 1})
    path = checkpoint.save(tmp_path, 2, trained(), notes={"closed": 2}) / checkpoint.MANIFEST
    contents = json.loads(path.read_text())
    change(contents)
    path.write_text(json.dumps(contents))
    with pytest.raises(CheckpointError, match="manifest has changed"):
        checkpoint.read_manifest(tmp_path, 2)
    assert checkpoint.load(tmp_path, shapes(trained()), lambda text: None)[0] == 1


def test_a_manifest_of_another_format_says_so(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, 1, trained()) / checkpoint.MANIFEST
    contents = json.loads(path.read_text())
    first = {name: contents[name] for name in ("step", "digest", "notes", "leaves")}  # as it was before there were two
    for written, number in ((first, 1), (contents | {"format": 3}, 3)):
        path.write_text(json.dumps(written))
        with pytest.raises(
            CheckpointError, match=f"has format {number}, and this version reads format 2: load it with"
        ):
            checkpoint.load_step(tmp_path, 1, shapes(trained()))


def test_a_checkpoint_under_another_number_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, trained()).rename(tmp_path / "000009")
    with pytest.raises(CheckpointError, match="it is checkpoint 1 under another name"):
        checkpoint.read_manifest(tmp_path, 9)


def test_only_so_many_are_kept_and_none_of_a_later_step(tmp_path: Path) -> None:
    for step in (1, 2, 3, 7, 4):
        checkpoint.save(tmp_path, step, trained(), keep=2)
    assert checkpoint.steps(tmp_path) == [4, 3]
    (checkpoint.save(tmp_path, 5, trained()) / checkpoint.MANIFEST).unlink()
    checkpoint.save(tmp_path, 6, trained(), keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000004", "000006"]  # 5 was never finished


def test_nothing_is_removed_before_the_new_one_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *arguments: Any) -> None:
        path.mkdir(parents=True)
        raise OSError("no space left")

    for step in (1, 2):
        checkpoint.save(tmp_path, step, trained(step), keep=2)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.ocp, "save", fail)
        for step in (3, 2):  # a new one, and one that is there
            with pytest.raises(OSError, match="no space left"):
                checkpoint.save(tmp_path, step, trained(step + 1), keep=2)
    assert checkpoint.steps(tmp_path) == [2, 1]
    step, loaded = checkpoint.load(tmp_path, shapes(trained()))
    assert step == 2
    assert_equal(loaded, trained(2))


def test_saved_ones_are_a_mapping_that_reads_when_asked(tmp_path: Path) -> None:
    for step in (3, 12):
        checkpoint.save(tmp_path, step, trained(step))
    saved = checkpoint.Saved(tmp_path, shapes(trained()))
    assert list(saved) == [3, 12] and len(saved) == 2 and 4 not in saved
    assert_equal(saved[12], trained(12))


def test_a_relative_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint.save(Path("run"), 1, trained())
    assert checkpoint.load(Path("run"), shapes(trained()))[0] == 1


def test_none_left_is_an_error_that_says_why(tmp_path: Path) -> None:
    state = trained()
    with pytest.raises(CheckpointError, match="holds none"):
        checkpoint.load(tmp_path, shapes(state))
    path = checkpoint.save(tmp_path, 1, state)
    for file in (path / "arrays").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    with pytest.raises(CheckpointError, match="cannot be read"):
        checkpoint.load(tmp_path, shapes(state), lambda text: None)


def test_another_network_is_refused(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, trained())
    template = shapes(trained(width=16))
    with pytest.raises(CheckpointError, match="differ"):
        checkpoint.load(tmp_path, template, lambda text: None)
