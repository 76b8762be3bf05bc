"""Checkpoints: Orbax writes the arrays, a manifest of ours says whether they are still what was written.

Orbax does not notice a flipped bit in its data and does not look further back when its newest checkpoint
is broken. So each checkpoint is a folder with Orbax's files in `arrays/` and, written last, `manifest.json`
with a hash of every leaf, one digest of them all, notes, and a checksum of itself; loading takes the newest folder
that verifies. All of Orbax is behind this file.
"""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from orbax.checkpoint import v1 as ocp

MANIFEST = "manifest.json"
FORMAT = 2  # of the manifest and of what runs write into it; 1 had no checksum
_PART = "new.part"  # a checkpoint that is being written
_OLD = ".old"  # behind the name of one that is being replaced


class CheckpointError(Exception):
    """A checkpoint, or each of several, cannot be used; the message says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is known of a checkpoint without its arrays."""

    step: int
    digest: str  # SHA-256 over names, types and contents of all leaves: equal trees have equal digests
    notes: dict[str, Any]  # what the writer added, in JSON's types; no part of the digest
    leaves: dict[str, dict[str, str]]  # by name: `type` and `sha256`

    def to_text(self) -> str:
        """Write it as JSON that tells whether it was changed."""
        contents = {"format": FORMAT} | dataclasses.asdict(self)
        return json.dumps(contents | {"checksum": _checksum(contents)}, indent=1)

    @classmethod
    def from_text(cls, text: str) -> "Manifest":
        """Read what `to_text` wrote. Raises `CheckpointError` if it was changed or is of another format."""
        try:
            contents = json.loads(text)
            written, checksum = contents.get("format", 1), contents.pop("checksum", None)
        except (AttributeError, RecursionError, ValueError) as error:
            raise CheckpointError("its manifest cannot be read") from error
        if written != FORMAT:
            raise CheckpointError(
                f"its manifest has format {written!r}, and this version reads format {FORMAT}: "
                "load it with the version that wrote it"
            )
        if checksum != _checksum(contents):
            raise CheckpointError("its manifest has changed since it was written")
        del contents["format"]
        return cls(**contents)


def save(
    folder: Path, step: int, tree: Any, *, notes: Mapping[str, Any] | None = None, keep: int | None = None
) -> Path:
    """Write `tree` as checkpoint `step` of `folder` and return its path. Arrays may be donated afterwards.

    A checkpoint of the same step is replaced once the new one is complete. With `keep`, only so many of the newest
    stay, and none of a later step; they are removed then.
    """
    path, part, old = (folder.resolve() / name for name in (f"{step:06d}", _PART, f"{step:06d}{_OLD}"))
    recover(folder)
    ocp.save(part / "arrays", tree)
    leaves = _hashes(tree)
    manifest = Manifest(step=step, digest=_digest(leaves), notes=dict(notes or {}), leaves=leaves)
    (part / MANIFEST).write_text(manifest.to_text())
    if path.exists():
        path.rename(old)
    part.rename(path)
    shutil.rmtree(old, ignore_errors=True)
    if keep is not None:
        older = [number for number in steps(folder) if number < step]
        stay = {step, *older[: keep - 1]}
        remove(folder, lambda number: number not in stay)
    return path


def recover(folder: Path) -> None:
    """Clear up after a process that was killed in a `save`: for the only one that writes to `folder`."""
    shutil.rmtree(folder.resolve() / _PART, ignore_errors=True)
    for old in folder.resolve().glob(f"*{_OLD}"):
        path = old.with_suffix("")
        if path.exists():
            shutil.rmtree(old)
        else:  # the new one had not taken its place yet
            old.rename(path)


def load(folder: Path, template: Any, report: Callable[[str], None] = print) -> tuple[int, Any]:
    """Load the newest checkpoint of `folder` that verifies: its step and a tree like `template`.

    `template` has arrays or their shapes (`jax.eval_shape`). A broken checkpoint is skipped and `report` is
    told which and why; raises `CheckpointError` when none is left.
    """
    failures = []
    for path in _paths(folder):
        try:
            return int(path.name), load_step(folder, int(path.name), template)
        except CheckpointError as error:
            failures.append(f"{path}: {error}")
            report(f"Checkpoint skipped: {failures[-1]}.")
    found = "; ".join(failures) or "it holds none"
    raise CheckpointError(f"`{folder}` has no checkpoint that can be loaded: {found}.")


def load_step(folder: Path, step: int, template: Any) -> Any:
    """Load one checkpoint: a tree like `template`. Raises `CheckpointError` if it does not verify."""
    path = folder.resolve() / f"{step:06d}"
    leaves = read_manifest(folder, step).leaves
    types = {name: leaf["type"] for name, leaf in leaves.items()}
    if types != {name: _signature(leaf) for name, leaf in _named_leaves(template)}:
        raise CheckpointError("its arrays differ from those of this network and optimizer in name or shape")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), template)
    try:
        tree = ocp.load(path / "arrays", abstract)
    except Exception as error:  # Orbax raises many kinds for damaged files
        raise CheckpointError(f"its arrays cannot be read: {type(error).__name__}: {error}") from error
    damaged = [name for name, found in _hashes(tree).items() if found != leaves[name]]
    if damaged:
        raise CheckpointError(f"the contents of {', '.join(damaged)} have changed since they were written")
    # Bound to no device, as new arrays are: else every function that takes them would be compiled once more.
    return jax.tree.map(lambda x: jnp.array(np.asarray(x)), tree)


def read_manifest(folder: Path, step: int) -> Manifest:
    """Read what is known of a checkpoint. Raises `CheckpointError` if it has no manifest, or a broken one."""
    path = folder / f"{step:06d}" / MANIFEST
    if not path.is_file():
        raise CheckpointError("it was never finished, or its manifest is lost")
    manifest = Manifest.from_text(path.read_text(errors="replace"))
    if manifest.step != step:
        raise CheckpointError(f"it is checkpoint {manifest.step} under another name")
    return manifest


def steps(folder: Path) -> list[int]:
    """List the steps with a finished checkpoint, the newest first; whether they are sound is not looked at."""
    return [int(path.name) for path in _paths(folder) if (path / MANIFEST).exists()]


def remove(folder: Path, which: Callable[[int], bool]) -> None:
    """Remove the checkpoints of those steps for which `which` is true, finished or not."""
    for path in _paths(folder):
        if which(int(path.name)):
            (path / MANIFEST).unlink(missing_ok=True)  # a removal that is cut short leaves no checkpoint
            shutil.rmtree(path)


class Saved(Mapping[int, Any]):
    """The finished checkpoints of a folder by step; each is read when it is asked for, and kept nowhere."""

    def __init__(self, folder: Path, template: Any):
        self._folder, self._template = folder, template

    def __getitem__(self, step: int) -> Any:
        if step not in steps(self._folder):
            raise KeyError(step)
        return load_step(self._folder, step, self._template)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(steps(self._folder)))

    def __len__(self) -> int:
        return len(steps(self._folder))


def _paths(folder: Path) -> list[Path]:
    """List the folders of checkpoints, the newest first."""
    found = (path for path in folder.resolve().glob("*") if path.name.isascii() and path.name.isdecimal())
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def _hashes(tree: Any) -> dict[str, dict[str, str]]:
    return {
        name: {"type": _signature(leaf), "sha256": hashlib.sha256(np.asarray(leaf).tobytes()).hexdigest()}
        for name, leaf in _named_leaves(tree)
    }


def _checksum(contents: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _digest(leaves: Mapping[str, Mapping[str, str]]) -> str:
    rows = sorted(f"{name} {leaf['type']} {leaf['sha256']}\n" for name, leaf in leaves.items())
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _signature(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"
