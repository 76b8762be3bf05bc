"""The invariants of a tree, checked on the host: for tests, and for whoever writes a rule or a backup."""

import jax
import numpy as np

from jaxmcts.tree import NO_CHILD, ROOT, Flags, Tree


def validate(tree: Tree) -> None:
    """Raise `AssertionError` with a sentence for every invariant that a tree breaks.

    Illegal edges have no visits; the visits of the edge into a node are one more than those of its own edges, except
    at finished states and at the depth limit, where descents stop; parents, children, actions and depths agree; a
    hole is unreachable; and no number is NaN. Needs concrete arrays, so call it outside `jax.jit`.
    """
    host = jax.tree.map(np.asarray, _without_user_arrays(tree))
    problems = [f"row {row}: {problem}" for row in range(tree.batch_size) for problem in _row_problems(host, row)]
    if problems:
        raise AssertionError("the tree breaks its invariants:\n" + "\n".join(problems[:20]))


def _without_user_arrays(tree: Tree) -> dict[str, jax.Array]:
    names = (
        "prior_logits", "visits", "q", "child", "choice", "parent", "action", "reward", "discount",
        "value", "raw_value", "total_visits", "depth", "num_simulations", "flags",
    )  # fmt: skip
    return {name: getattr(tree, name) for name in names}


def _row_problems(tree: dict[str, np.ndarray], row: int) -> list[str]:
    t = {name: array[row] for name, array in tree.items()}
    used = t["total_visits"] > 0
    slots = np.flatnonzero(used)
    legal = t["prior_logits"][slots] > -np.inf
    visits, child = t["visits"][slots], t["child"][slots]
    problems = []

    def demand(holds: np.ndarray | bool, sentence: str) -> None:
        bad = np.flatnonzero(~np.atleast_1d(holds))
        if bad.size:
            problems.append(f"{sentence} (node {slots[min(bad[0], slots.size - 1)]})")

    demand(used[ROOT], "the root is not in use")
    demand(((visits == 0) | legal).all(1), "an illegal edge was visited")
    demand((visits >= 0).all(1), "an edge has negative visits")
    demand(t["total_visits"][slots] == 1 + visits.sum(1), "total_visits is not 1 + the sum of the visits")
    demand(
        ((child == NO_CHILD) == (visits == 0)).all(1),
        "an edge has visits but no child, or a child but no visits",
    )
    demand((t["q"][slots][visits == 0] == 0).all(), "an unvisited edge has a q")
    for name in ("q", "value", "raw_value", "reward", "discount"):
        demand(np.isfinite(t[name][slots]).reshape(slots.size, -1).all(1), f"{name} is not finite")
    mass = np.exp(t["prior_logits"][slots]).sum(1)
    demand(~legal.any(1) | (np.abs(mass - 1) < 1e-3), "the prior does not sum to 1")

    inner = slots[slots != ROOT]
    parent, action = t["parent"][inner], t["action"][inner]
    slots = inner
    demand(parent < inner, "a parent comes after its child")
    demand(used[parent], "a parent is not in use")
    demand(t["child"][parent, action] == inner, "the parent's edge does not lead back to the node")
    demand(t["depth"][inner] == t["depth"][parent] + 1, "depth is not the parent's plus 1")
    edge_visits = t["visits"][parent, action]
    stops = (t["total_visits"][inner] == 1) | (t["choice"][inner] == 0)
    demand(
        (edge_visits == t["total_visits"][inner]) | (stops & (edge_visits > 0)),
        "visits into a node are not 1 + those of its edges",
    )
    expected = t["reward"][inner] + t["discount"][inner] * t["value"][inner]
    demand(np.abs(t["q"][parent, action] - expected) < 1e-3 + 1e-3 * np.abs(expected), "q is not r + g V(child)")
    finished = not (t["prior_logits"][ROOT] > -np.inf).any()
    demand(finished == bool(t["flags"] & Flags.FINISHED.value), "the FINISHED flag and the root's mask disagree")
    return problems
