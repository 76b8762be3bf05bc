"""Reading the library's trees as the oracle's are read: every node by the actions that lead to it."""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxmcts.tree import NO_CHILD, ROOT
from tests import oracles

FIELDS = ("visits", "q", "child", "value", "total_visits")


def host(tree: Any) -> dict[str, np.ndarray]:
    """Fetch what comparisons read, once for the whole batch."""
    return {name: np.asarray(getattr(tree, name)) for name in FIELDS}


def slots_by_path(tree: dict[str, np.ndarray], row: int) -> dict[tuple[int, ...], int]:
    """The slot of every node of one row, by the actions that lead to it."""
    slots: dict[tuple[int, ...], int] = {(): ROOT}
    stack: list[tuple[int, ...]] = [()]
    while stack:
        path = stack.pop()
        children = tree["child"][row, slots[path]]
        for action in np.flatnonzero(children != NO_CHILD):
            below = (*path, int(action))
            slots[below] = int(children[action])
            stack.append(below)
    return slots


def by_path(tree: dict[str, np.ndarray], row: int) -> dict[tuple[int, ...], oracles.Record]:
    """The statistics of every node of one row, as `oracles.by_path` gives them."""

    def read(slot: int) -> oracles.Record:
        return oracles.Record(
            visits=tree["visits"][row, slot].tolist(),
            q=tree["q"][row, slot].tolist(),
            value=float(tree["value"][row, slot]),
            total_visits=int(tree["total_visits"][row, slot]),
        )

    return {path: read(slot) for path, slot in slots_by_path(tree, row).items()}


def renamed(records: dict[tuple[int, ...], oracles.Record], order: np.ndarray) -> dict[tuple[int, ...], oracles.Record]:
    """What was found when action `order[a]` was called `a` (`worlds.relabelled`), under the actions' own names."""
    place = np.argsort(order)
    return {
        tuple(int(order[a]) for a in path): dataclasses.replace(
            record, visits=[record.visits[i] for i in place], q=[record.q[i] for i in place]
        )
        for path, record in records.items()
    }


def assert_same_tree(
    got: dict[tuple[int, ...], oracles.Record],
    want: dict[tuple[int, ...], oracles.Record],
    *,
    atol: float,
    name: str = "",
) -> None:
    """Visits equal, q and value within `atol`, node by node; says at which node they part."""
    for path, wanted in sorted(want.items(), key=lambda item: (len(item[0]), item[0])):
        assert path in got, f"{name}: the node at {path} is missing"
        found = got[path]
        assert found.visits == wanted.visits, f"{name}: visits at {path} are {found.visits}, not {wanted.visits}"
        assert found.total_visits == wanted.total_visits, f"{name}: total visits at {path}"
        assert _apart(found.q, wanted.q) <= atol, f"{name}: q at {path} is {found.q}, not {wanted.q}"
        apart = abs(found.value - wanted.value)
        assert apart <= atol, f"{name}: value at {path} is {found.value}, not {wanted.value}"
    assert got.keys() == want.keys(), f"{name}: extra nodes {got.keys() - want.keys()}"


def _apart(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b))


def assert_bit_equal(got: Any, want: Any) -> None:
    """Every leaf equal in every bit (keys by their data)."""

    def plain(x: Any) -> np.ndarray:
        is_key = jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    got_leaves, want_leaves = jax.tree.leaves_with_path(got), jax.tree.leaves(want)
    assert len(got_leaves) == len(want_leaves)
    for (path, a), b in zip(got_leaves, want_leaves):
        np.testing.assert_array_equal(plain(a), plain(b), err_msg=jax.tree_util.keystr(path))
