"""Checkpoints: Orbax writes the arrays, a manifest of ours says whether they are still what was written.

Orbax does not notice a flipped bit in its data and does not look further back when its newest checkpoint
is broken. So each checkpoint is a folder with Orbax's files in `arrays/` and, written last, `manifest.json`
with a hash of every leaf; loading takes the newest folder that verifies. All of Orbax is behind this file.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from orbax.checkpoint import v1 as ocp

MANIFEST = "manifest.json"


class CheckpointError(Exception):
    """No checkpoint can be used; the message says of each one why."""


def save(folder: Path, step: int, tree: Any) -> Path:
    """Write `tree` as checkpoint `step` of `folder` and return its path. Arrays may be donated afterwards.

    A checkpoint of the same step is replaced.
    """
    path = folder.resolve() / f"{step:06d}"
    (path / MANIFEST).unlink(missing_ok=True)  # until the new one is there, this is no checkpoint
    ocp.save(path / "arrays", tree, overwrite=True)
    manifest = {"step": step, "leaves": _hashes(tree)}
    part = path / (MANIFEST + ".part")
    part.write_text(json.dumps(manifest, indent=1))
    part.rename(path / MANIFEST)
    return path


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
            report(f"Checkpoint skipped: {failures[-1]}")
    found = "; ".join(failures) or "it holds none"
    raise CheckpointError(f"`{folder}` has no checkpoint that can be loaded: {found}.")


def load_step(folder: Path, step: int, template: Any) -> Any:
    """Load one checkpoint: a tree like `template`. Raises `CheckpointError` if it does not verify."""
    path = folder.resolve() / f"{step:06d}"
    if not (path / MANIFEST).exists():
        raise CheckpointError("it was never finished, or its manifest is lost")
    try:
        leaves = json.loads((path / MANIFEST).read_text())["leaves"]
        types = {name: leaf["type"] for name, leaf in leaves.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError("its manifest cannot be read") from error
    if types != {name: _signature(leaf) for name, leaf in _named_leaves(template)}:
        raise CheckpointError("its arrays differ from those of this network and optimizer in name or shape")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), template)
    try:
        tree = ocp.load(path / "arrays", abstract)
    except Exception as error:  # Orbax raises many kinds for damaged files
        raise CheckpointError(f"its arrays cannot be read: {type(error).__name__}: {error}") from error
    damaged = [name for name, digest in _hashes(tree).items() if digest != leaves[name]]
    if damaged:
        raise CheckpointError(f"the contents of {', '.join(damaged)} have changed since they were written")
    return tree


def steps(folder: Path) -> list[int]:
    """List the steps with a finished checkpoint, the newest first; whether they are sound is not looked at."""
    return [int(path.name) for path in _paths(folder) if (path / MANIFEST).exists()]


def _paths(folder: Path) -> list[Path]:
    """List the folders of checkpoints, the newest first."""
    found = (path for path in folder.resolve().glob("*") if path.name.isdigit())
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def _hashes(tree: Any) -> dict[str, dict[str, str]]:
    return {
        name: {"type": _signature(leaf), "sha256": hashlib.sha256(np.asarray(leaf).tobytes()).hexdigest()}
        for name, leaf in _named_leaves(tree)
    }


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _signature(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"
