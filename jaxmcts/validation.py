"""The invariants of a tree, checked on the host: for tests, and for whoever writes a rule or a backup."""

import jax
import numpy as np

from jaxmcts.tree import FINISHED_CHOICE, NO_CHILD, ROOT, Flags, Tree, demand_tree


def validate(tree: Tree) -> None:
    """Raise `AssertionError` with a sentence for every invariant that a tree breaks.

    Illegal edges have no visits; the visits of the edge into a node are one more than those of its own edges, except
    at finished states and at the depth limit, where descents stop; parents, children, actions and depths agree; a
    hole is unreachable; no number is NaN; q is r + g V(child), as `mean_backup` keeps it; the FINISHED flag says
    whether the root has a legal action. Needs concrete arrays, so call it outside `jax.jit`.
    """
    demand_tree(tree)
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
    nodes = np.flatnonzero(used)
    finished = not (t["prior_logits"][ROOT] > -np.inf).any()
    problems = [] if used[ROOT] else ["the root is not in use"]
    if finished != bool(t["flags"] & Flags.FINISHED.value):
        problems.append("the FINISHED flag and the root's mask disagree")
    return problems + _node_problems(t, nodes) + _link_problems(t, used, nodes[nodes != ROOT])


def _node_problems(t: dict[str, np.ndarray], nodes: np.ndarray) -> list[str]:
    legal = t["prior_logits"][nodes] > -np.inf
    visits, child = t["visits"][nodes], t["child"][nodes]
    mass = np.exp(t["prior_logits"][nodes]).sum(1)
    numbers = ("q", "value", "raw_value", "reward", "discount")
    return _sentences(
        nodes,
        {
            "an illegal edge was visited": (visits == 0) | legal,
            "an edge has negative visits": visits >= 0,
            "total_visits is not 1 + the sum of the visits": t["total_visits"][nodes] == 1 + visits.sum(1),
            "an edge has visits but no child, or a child but no visits": (child == NO_CHILD) == (visits == 0),
            "an unvisited edge has a q": (t["q"][nodes] == 0) | (visits > 0),
            "the prior does not sum to 1": ~legal.any(1) | (np.abs(mass - 1) < 1e-3),
        }
        | {f"{name} is not finite": np.isfinite(t[name][nodes]) for name in numbers},
    )


def _link_problems(t: dict[str, np.ndarray], used: np.ndarray, nodes: np.ndarray) -> list[str]:
    parent, action = t["parent"][nodes], t["action"][nodes]
    edge_visits, q = t["visits"][parent, action], t["q"][parent, action]
    expected = t["reward"][nodes] + t["discount"][nodes] * t["value"][nodes]
    stops = (t["total_visits"][nodes] == 1) | (t["choice"][nodes] == FINISHED_CHOICE)
    return _sentences(
        nodes,
        {
            "a parent comes after its child": parent < nodes,
            "a parent is not in use": used[parent],
            "the parent's edge does not lead back to the node": t["child"][parent, action] == nodes,
            "depth is not the parent's plus 1": t["depth"][nodes] == t["depth"][parent] + 1,
            "visits into a node are not 1 + those of its edges": (edge_visits == t["total_visits"][nodes])
            | (stops & (edge_visits > 0)),
            "q is not r + g V(child)": np.abs(q - expected) < 1e-3 + 1e-3 * np.abs(expected),
        },
    )


def _sentences(nodes: np.ndarray, demands: dict[str, np.ndarray]) -> list[str]:
    """Name each demand that does not hold `[len(nodes), ...]`, with the first node that breaks it."""
    broken = {sentence: ~holds.reshape(len(nodes), -1).all(1) for sentence, holds in demands.items() if len(nodes)}
    return [f"{sentence} (node {nodes[bad][0]})" for sentence, bad in broken.items() if bad.any()]
