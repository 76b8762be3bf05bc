"""One small game written out simulation by simulation, for PUCT, UCT and Gumbel.

Player 0 moves at the root (v = 0, P = [0.4, 0.6]), player 1 below:
left (v = -0.2, P = [0.7, 0.3]) ends with -1 or +1 for player 1, right (v = 0.1, P = [0.5, 0.5]) with 0 or -0.5.
Best play goes right and draws.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from tests import oracles, worlds
from tests.jaxmcts import trees
from tests.jaxmcts.searching import RAW_PUCT, params_of, same_rule
from tests.worlds import Move, Position

LEFT = Position(value=-0.2, prior=(0.7, 0.3), moves={0: Move(reward=-1), 1: Move(reward=1)})
RIGHT = Position(value=0.1, prior=(0.5, 0.5), moves={0: Move(reward=0), 1: Move(reward=-0.5)})
GAME = worlds.world_of(
    Position(prior=(0.4, 0.6), moves={0: Move(to=LEFT), 1: Move(to=RIGHT)}), num_actions=2, num_states=8
)
PARAMS = params_of(GAME)
PATHS = {"L": (0,), "R": (1,), "Ll": (0, 0), "Lr": (0, 1), "Rl": (1, 0), "Rr": (1, 1)}
NUM_SIMULATIONS = 12


def traces(rules: dict[str, Any], num_simulations: int) -> Iterator[dict[tuple[int, ...], oracles.Record]]:
    """Yield the tree after each simulation: each one is a run of its own."""
    step = jax.jit(lambda tree: jaxmcts.run(PARAMS, tree, worlds.MODEL, num_simulations=1, **rules))
    state = worlds.roots(1)
    tree = jaxmcts.init(PARAMS, jax.random.key(0), state, worlds.MODEL, capacity=num_simulations + 1)
    for _ in range(num_simulations):
        tree = step(tree)
        yield trees.by_path(trees.host(tree), 0)


def edge_visits(tree: dict[tuple[int, ...], oracles.Record], path: tuple[int, ...]) -> int:
    parent = tree.get(path[:-1])
    return parent.visits[path[-1]] if parent else 0


def paths_taken(snapshots: list[dict[tuple[int, ...], oracles.Record]]) -> list[str]:
    """Name the deepest edge whose visits grew at each simulation."""
    names: list[str] = []
    before: dict[str, int] = {}
    for tree in snapshots:
        after = {name: edge_visits(tree, path) for name, path in PATHS.items()}
        grown = [name for name in PATHS if after[name] > before.get(name, 0)]
        names.append(max(grown, key=len))
        before = after
    return names


PUCT_TABLE = [  # path, N(L), N(R), Q(L), Q(R), V(root)
    ("R", 0, 1, 0.0, -0.100000, -0.050000),
    ("L", 1, 1, 0.200000, -0.100000, 0.033333),
    ("Ll", 2, 1, 0.600000, -0.100000, 0.275000),
    ("Lr", 3, 1, 0.066667, -0.100000, 0.020000),
    ("Rl", 3, 2, 0.066667, -0.050000, 0.016667),
    ("Rr", 3, 3, 0.066667, 0.133333, 0.085714),
    ("Rl", 3, 4, 0.066667, 0.100000, 0.075000),
    ("Rl", 3, 5, 0.066667, 0.080000, 0.066667),
    ("Rl", 3, 6, 0.066667, 0.066667, 0.060000),
    ("Lr", 4, 6, -0.200000, 0.066667, -0.036364),
    ("Rl", 4, 7, -0.200000, 0.057143, -0.033333),
    ("Rr", 4, 8, -0.200000, 0.112500, 0.007692),
]


def test_puct_step_by_step():
    """A rule of the user's own: constant c = 1.25 on values as they are, unvisited edges worth 0."""
    snapshots = list(traces(same_rule(RAW_PUCT), NUM_SIMULATIONS))
    assert paths_taken(snapshots) == [row[0] for row in PUCT_TABLE]
    for tree, (_, *visits_and_values) in zip(snapshots, PUCT_TABLE):
        root = tree[()]
        np.testing.assert_allclose([*root.visits, *root.q, root.value], visits_and_values, atol=1e-6)


def edge_sums(tree: dict[tuple[int, ...], oracles.Record], path: tuple[int, ...]) -> list[float]:
    """W = N Q of each edge."""
    return np.multiply(tree[path].visits, tree[path].q).tolist()


def assert_final_sums(tree: dict[tuple[int, ...], oracles.Record]) -> None:
    assert tree[()].visits == [4, 8]
    np.testing.assert_allclose(edge_sums(tree, ()), [-0.8, 0.9], atol=1e-6)
    assert tree[(0,)].visits == [1, 2]
    np.testing.assert_allclose(edge_sums(tree, (0,)), [-1, 2], atol=1e-6)
    assert tree[(1,)].visits == [5, 2]
    np.testing.assert_allclose(edge_sums(tree, (1,)), [0, -1], atol=1e-6)


def test_puct_final_edge_sums():
    *_, tree = traces(same_rule(RAW_PUCT), NUM_SIMULATIONS)
    assert_final_sums(tree)


def sqrt_child_visits(node: jaxmcts.Node) -> jax.Array:
    """PUCT as in the text of the AlphaGo paper, sqrt(S) and ties to the lowest index: another rule of a user's."""
    q = jaxmcts.qvalue.complete(node, jaxmcts.fpu_zero(node))
    bonus = 1.25 * node.prior * jnp.sqrt(jnp.sum(node.visits)) / (1 + node.visits)
    return jnp.argmax(jnp.where(node.legal_action_mask, q + bonus, -jnp.inf))


def test_sqrt_of_child_visits_ignores_the_prior_at_first():
    snapshots = list(traces(same_rule(sqrt_child_visits), NUM_SIMULATIONS))
    assert paths_taken(snapshots) == ["L", "R", *(row[0] for row in PUCT_TABLE[2:])]


def lowest_index_uct(node: jaxmcts.Node) -> jax.Array:
    """UCT whose untried actions come in order of their index."""
    scores = jaxmcts.rules.uct.uct_scores(node, c=2**0.5)
    return jaxmcts.rules.pick(scores, jnp.ones_like(node.prior), node.legal_action_mask)


ORDERS = [
    (lowest_index_uct, "L R Ll Lr Rl Rr Rl Lr Rl Rr Rl Rl"),
    (Partial(jaxmcts.rules.uct.uct, c=2**0.5), "R L Ll Lr Rl Rr Rl Lr Rl Rr Rl Rl"),
]


@pytest.mark.parametrize(("rule", "order"), ORDERS)
def test_uct_step_by_step(rule: Callable[..., jax.Array], order: str):
    snapshots = list(traces(same_rule(rule), NUM_SIMULATIONS))
    assert paths_taken(snapshots) == order.split()
    assert snapshots[-1][()].visits == [4, 8]
    np.testing.assert_allclose(edge_sums(snapshots[-1], ()), [-0.8, 0.9], atol=1e-6)


def test_gumbel_step_by_step():
    """gumbel = 0, m = 2, n = 8: the table is 0 0 1 1 2 2 3 3."""
    gumbel = jaxmcts.rules.gumbel
    due = jaxmcts.root.considered_visits(jnp.ones((1, 2), dtype=bool), max_num_considered_actions=2, num_simulations=8)
    rules = {
        "select": gumbel.gumbel_interior,
        "root_select": Partial(gumbel.gumbel_root, gumbel=jnp.zeros((1, 2)), considered_visits=due),
        "backup": jaxmcts.mean_backup,
    }
    snapshots = list(traces(rules, 8))
    assert paths_taken(snapshots) == "R L Ll Rl Lr Rr Rl Lr".split()
    assert_gumbel_result(snapshots[-1])


def assert_gumbel_result(tree: dict[tuple[int, ...], oracles.Record]) -> None:
    assert tree[()].visits == [4, 4]
    np.testing.assert_allclose(tree[()].q, [-0.2, 0.1], atol=1e-6)


def test_gumbel_policy():
    out = jaxmcts.gumbel_policy(
        PARAMS, jax.random.key(0), worlds.roots(1), worlds.MODEL, num_simulations=8, gumbel_scale=0.0
    )
    assert_gumbel_result(trees.by_path(trees.host(out.tree), 0))
    np.testing.assert_allclose(out.action_weights[0], [0.003002, 0.996998], atol=1e-5)
    assert int(out.action[0]) == 1
    root = jaxmcts.read_node(out.tree, 0, 0)
    np.testing.assert_allclose(jaxmcts.rules.gumbel.sigma(root), [0.0, 5.4], atol=1e-5)


def test_oracle_agrees_with_the_written_out_game():
    """The oracle itself is held to the same table (AlphaZero's form with 2C and FPU 0 in the middle is this PUCT)."""
    root = oracles.search(GAME, oracles.AlphaZero(c_init=0.625, c_base=1e18, fpu=oracles.fpu_constant(0.0)), 12)
    record = oracles.by_path(root)
    assert record[()].visits == [4, 8]
    assert_final_sums(record)
    assert oracles.minimax(GAME, 0) == 0
    uct = oracles.by_path(oracles.search(GAME, oracles.Uct(), 12))
    assert uct[()].visits == [4, 8]
