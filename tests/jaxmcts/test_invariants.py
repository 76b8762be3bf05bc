"""What must hold of every search whatever the world: bookkeeping, independence of rows, symmetry, convergence."""

import dataclasses
import functools
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from tests import oracles, worlds
from tests.jaxmcts import trees
from tests.jaxmcts.searching import QUICK_TO_COMPILE, compiled, params_of, plain_alphazero, same_rule

NUM_ACTIONS, NUM_STATES, NUM_WORLDS = 5, 40, 16
ALPHAZERO, UCT = Partial(jaxmcts.rules.puct.alphazero), Partial(jaxmcts.rules.uct.uct)


def messy_worlds(seed: int, count: int = NUM_WORLDS) -> list[worlds.World]:
    return [worlds.random_world(np.random.default_rng([seed, i]), **worlds.EVERYTHING) for i in range(count)]


def start(params: worlds.Tables, capacity: int, batch_size: int = NUM_WORLDS) -> jaxmcts.Tree:
    """Fresh trees at the roots of the first worlds."""
    return _init(params, worlds.roots(batch_size), capacity)


@functools.partial(jax.jit, static_argnums=2)
def _init(params: worlds.Tables, state: jax.Array, capacity: int) -> jaxmcts.Tree:
    return jaxmcts.init(params, jax.random.key(0), state, worlds.MODEL, capacity=capacity)


@functools.cache
def runner(rule: Partial, num_simulations: int, max_depth: int | None = None) -> Any:
    """Compile a run with one rule everywhere."""
    rules = same_rule(rule)
    return jax.jit(
        lambda params, tree: jaxmcts.run(
            params, tree, worlds.MODEL, num_simulations=num_simulations, max_depth=max_depth, **rules
        ),
        compiler_options=QUICK_TO_COMPILE,
    )


# Bookkeeping


@hypothesis.settings(deadline=None, max_examples=20, derandomize=True)
@hypothesis.given(
    seed=st.integers(0, 2**32 - 1),
    illegal=st.sampled_from([0.0, 0.5, 0.9]),
    over=st.sampled_from([0.0, 0.2, 0.6]),
    levels=st.sampled_from([None, (0.0,), (-1.0, 1.0), (0.5, 100.0)]),
    policy=st.sampled_from([jaxmcts.alphazero_policy, jaxmcts.gumbel_policy, jaxmcts.uct_policy]),
    max_depth=st.sampled_from([None, 2]),
)
def test_trees_keep_their_invariants(seed, illegal, over, levels, policy, max_depth):
    """Any mixture of masks, finished states, ties and large numbers; `validate` has the list of invariants."""
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "illegal": illegal,
        "terminated": over,
        "truncated": over / 2,
        "same_mover": 0.3,
        "rewards": 1.0,
        "levels": levels,
    }
    drawn = [worlds.random_world(rng, **options) for _ in range(NUM_WORLDS)]
    run = compiled(policy, num_simulations=24, max_depth=max_depth)
    out = run(params_of(*drawn), jax.random.key(seed % 1000), worlds.roots(NUM_WORLDS))
    jaxmcts.validate(out.tree)
    visits = np.asarray(out.tree.visits)
    assert (visits[:, 0].sum(axis=1) == 24).all()
    for row, world in enumerate(drawn):
        assert world.legal_action_mask[0, int(out.action[row])]
    if max_depth is not None:
        assert int(np.max(np.asarray(out.tree.depth)[np.asarray(out.tree.total_visits) > 0])) <= max_depth
    np.testing.assert_allclose(np.sum(out.action_weights, axis=1), 1, atol=1e-5)


def test_illegal_edges_are_never_visited():
    """Asked of the world and not of the tree's own mask."""
    drawn = messy_worlds(1)
    out = compiled(plain_alphazero, num_simulations=24)(params_of(*drawn), jax.random.key(0), worlds.roots(NUM_WORLDS))
    states, visits = np.asarray(out.tree.state), np.asarray(out.tree.visits)
    used = np.asarray(out.tree.total_visits) > 0
    legal = np.stack([world.legal_action_mask[states[row, :, 1]] for row, world in enumerate(drawn)])
    assert not visits[used][~legal[used]].any()
    assert visits[legal].sum() > 24 * NUM_WORLDS


# Rows are independent


def replaced(params: worlds.Tables, other: worlds.Tables, keep: int) -> worlds.Tables:
    """The worlds of `other`, except for the first `keep`."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a[:keep], b[keep:]]), params, other)


@pytest.mark.parametrize("policy", [jaxmcts.alphazero_policy, jaxmcts.gumbel_policy, jaxmcts.uct_policy])
def test_a_row_is_bit_equal_whatever_the_other_rows_are(policy):
    mine, others = params_of(*messy_worlds(2)), params_of(*messy_worlds(3))
    run = compiled(policy, num_simulations=24)
    before = run(mine, jax.random.key(1), worlds.roots(NUM_WORLDS))
    after = run(replaced(mine, others, keep=5), jax.random.key(1), worlds.roots(NUM_WORLDS))
    trees.assert_bit_equal(*(jax.tree.map(lambda x: x[:5], out) for out in (before, after)))
    assert (np.asarray(before.tree.visits)[5:] != np.asarray(after.tree.visits)[5:]).any()


def test_a_row_alone_is_the_row_in_a_batch():
    """Visits are equal across batch sizes under x64."""
    drawn = messy_worlds(4)
    with jax.enable_x64(True):
        params, run = params_of(*drawn, dtype=np.float64), compiled(plain_alphazero, num_simulations=24)
        keys = jax.random.split(jax.random.key(0), NUM_WORLDS)
        batch = trees.host(run(params, keys, worlds.roots(NUM_WORLDS)).tree)
        for row in (0, 7, 15):
            alone = trees.host(run(params, keys[row : row + 1], worlds.roots(NUM_WORLDS)[row : row + 1]).tree)
            trees.assert_same_tree(trees.by_path(alone, 0), trees.by_path(batch, row), atol=1e-12)


# Symmetry


def test_relabelling_actions_relabels_the_tree():
    """Every other rule: `test_rules_exact`."""
    drawn, order = messy_worlds(5), np.array([3, 0, 4, 1, 2])
    with jax.enable_x64(True):
        run = compiled(plain_alphazero, num_simulations=24)
        got, want = (
            trees.host(run(params_of(*d, dtype=np.float64), jax.random.key(0), worlds.roots(NUM_WORLDS)).tree)
            for d in ([worlds.relabelled(world, order) for world in drawn], drawn)
        )
    for row in range(NUM_WORLDS):
        renamed = trees.renamed(trees.by_path(got, row), order)
        trees.assert_same_tree(renamed, trees.by_path(want, row), atol=1e-12, name=str(row))


def negated(world: worlds.World, edge_into: int) -> worlds.World:
    """Turn the sign of the discount of every edge into one state."""
    turned = np.where(world.next_state == edge_into, -world.discount, world.discount)
    return dataclasses.replace(world, discount=turned)


def test_the_sign_of_a_discount_matters():
    """Negating the discount into a state that was visited changes the result."""
    drawn = [worlds.random_world(np.random.default_rng([6, i])) for i in range(NUM_WORLDS)]
    run = compiled(plain_alphazero, num_simulations=24)
    before = run(params_of(*drawn), jax.random.key(0), worlds.roots(NUM_WORLDS))
    best = [int(world.next_state[0, int(before.action[i])]) for i, world in enumerate(drawn)]
    after = run(
        params_of(*(negated(world, state) for world, state in zip(drawn, best))),
        jax.random.key(0),
        worlds.roots(NUM_WORLDS),
    )
    assert (np.abs(np.asarray(before.value) - np.asarray(after.value)) > 1e-3).all()


def test_a_forced_move_in_front_changes_the_view_and_nothing_else():
    """Player and opponent swapped: the tree behind the forced move is the same, seen from the other side."""
    world = messy_worlds(7, 1)[0]
    with_ply = _with_forced_move(world)
    with jax.enable_x64(True):
        plain = runner(UCT, 16)(params_of(world, dtype=np.float64), start(params_of(world, dtype=np.float64), 17, 1))
        params = params_of(with_ply, dtype=np.float64)
        shifted = runner(UCT, 17)(params, start(params, 18, 1))
        want, got = (trees.by_path(trees.host(tree), 0) for tree in (plain, shifted))
    for path, record in want.items():
        assert got[(0, *path)].visits == record.visits
    assert got[()].q[0] == pytest.approx(-want[()].value)


def _with_forced_move(world: worlds.World) -> worlds.World:
    """State 0 becomes a new root from which action 0 leads to the old one."""

    def prepend(table: np.ndarray, first: Any) -> np.ndarray:
        return np.concatenate([np.full_like(table[:1], first), table])

    next_state = prepend(world.next_state + 1, 1)
    legal = prepend(world.legal_action_mask, False)
    legal[0, 0] = True
    return worlds.World(
        next_state=next_state,
        reward=prepend(world.reward, 0.0),
        discount=prepend(world.discount, -1.0),
        prior_logits=prepend(world.prior_logits, 0.0),
        value=prepend(world.value, 0.0),
        legal_action_mask=legal,
    )


# Continuing


@pytest.mark.parametrize("rule", [ALPHAZERO, UCT], ids=["alphazero", "uct"])
def test_run_n_then_m_equals_run_n_plus_m(rule):
    params = params_of(*messy_worlds(8))
    tree = start(params, 33)
    in_two = runner(rule, 20)(params, runner(rule, 12)(params, tree))
    trees.assert_bit_equal(in_two, runner(rule, 32)(params, tree))


def test_a_second_run_follows_its_own_rule():
    """The cached choices of the first run's rule are made anew: PUCT, then UCT, as the oracle does it."""
    drawn = messy_worlds(9)
    with jax.enable_x64(True):
        params = params_of(*drawn, dtype=np.float64)
        tree = runner(UCT, 20)(params, runner(ALPHAZERO, 12)(params, start(params, 33)))
        got = trees.host(tree)
    for row, world in enumerate(drawn):
        node = oracles.run(oracles.search(world, oracles.AlphaZero(), 12), oracles.Uct(), 20)
        assert not oracles.is_delicate(node)
        trees.assert_same_tree(trees.by_path(got, row), oracles.by_path(node), atol=1e-9, name=str(row))


def test_a_second_run_follows_its_own_constants():
    drawn = messy_worlds(10)
    greedy, curious = (Partial(jaxmcts.rules.uct.uct, c=c) for c in (0.1, 4.0))
    with jax.enable_x64(True):
        params = params_of(*drawn, dtype=np.float64)
        tree = runner(curious, 20)(params, runner(greedy, 12)(params, start(params, 33)))
        got = trees.host(tree)
    for row, world in enumerate(drawn):
        node = oracles.run(oracles.search(world, oracles.Uct(c=0.1), 12), oracles.Uct(c=4.0), 20)
        if not oracles.is_delicate(node):
            trees.assert_same_tree(trees.by_path(got, row), oracles.by_path(node), atol=1e-9, name=str(row))


def live_alphazero(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array) -> jax.Array:
    """A live rule that reads the same record as the cached one."""
    del key
    return jaxmcts.rules.puct.alphazero(jaxmcts.read_node(tree, index))


def test_a_live_rule_makes_the_same_tree_as_its_cached_twin():
    params = params_of(*messy_worlds(11))
    tree = start(params, 33)
    live = {
        "select": jaxmcts.Live(live_alphazero),
        "root_select": jaxmcts.Live(live_alphazero),
        "backup": jaxmcts.mean_backup,
    }
    run_live = jax.jit(
        lambda params, tree: jaxmcts.run(params, tree, worlds.MODEL, num_simulations=32, **live),
        compiler_options=QUICK_TO_COMPILE,
    )
    got, want = run_live(params, tree), runner(ALPHAZERO, 32)(params, tree)
    both = (trees.host(tree) for tree in (got, want))
    got_rows, want_rows = ([trees.by_path(tree, row) for row in range(NUM_WORLDS)] for tree in both)
    for a, b in zip(got_rows, want_rows):
        trees.assert_same_tree(a, b, atol=0)


def random_edge(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array) -> jax.Array:
    """Choose by the prior, at random: a rule that needs a key."""
    return jax.random.categorical(key, tree.prior_logits[index])


def test_a_live_rule_draws_anew_at_every_visit():
    """Visits of the root follow the prior; rows with their own keys differ."""
    world = dataclasses.replace(
        worlds.random_world(np.random.default_rng(0)), prior_logits=np.log(np.tile([0.4, 0.3, 0.1, 0.1, 0.1], (40, 1)))
    )
    params = params_of(world)
    state = jnp.zeros((64, 2), jnp.int32)
    rules = {
        "select": jaxmcts.Live(random_edge),
        "root_select": jaxmcts.Live(random_edge),
        "backup": jaxmcts.mean_backup,
    }
    tree = jax.jit(
        lambda params: jaxmcts.search(params, jax.random.key(0), state, worlds.MODEL, num_simulations=64, **rules)
    )(params)
    jaxmcts.validate(tree)
    visits = np.asarray(tree.visits[:, 0])
    np.testing.assert_allclose(visits.sum(axis=0) / visits.sum(), [0.4, 0.3, 0.1, 0.1, 0.1], atol=0.03)
    assert len({row.tobytes() for row in visits}) > 50


# Convergence. How often a worse edge is visited: `test_rule_properties`.


@pytest.mark.parametrize("rule", [ALPHAZERO, UCT], ids=["puct", "uct"])
def test_search_finds_the_minimax_value(rule):
    """Full game trees of depth 3 with a misleading evaluator: values near minimax, and a best move is played."""
    drawn = [worlds.random_tree(np.random.default_rng(i), depth=3, branching=3) for i in range(NUM_WORLDS)]
    params = params_of(*drawn)
    tree = start(params, 3001)
    for _ in range(5):
        tree = runner(rule, 600)(params, tree)
    actions, values = np.asarray(jaxmcts.most_visited(tree)), np.asarray(tree.value[:, 0])
    for row, world in enumerate(drawn):
        best = oracles.minimax(world, 0)
        assert oracles.minimax_q(world, 0, int(actions[row])) == best
        assert values[row] == pytest.approx(best, abs=0.2)
