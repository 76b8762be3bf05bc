"""How a backup tells the search what to write and the next level what it should know."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmcts
from jaxmcts import AtEdge, Relay, amaf, uncertainty
from jaxmcts.backup import Added, bounds_backup, variance_backup
from jaxmcts.rules import engines
from tests import worlds
from tests.jaxmcts import nodes
from tests.jaxmcts.searching import QUICK_TO_COMPILE, RAW_PUCT, params_of

NUM_ROWS, NUM_SIMULATIONS, NUM_ACTIONS = 4, 24, 5


def search(
    backup: Any, rule_state: Any, *, model: jaxmcts.Model = worlds.MODEL, select: Any = RAW_PUCT
) -> jaxmcts.Tree:
    params = params_of(*(worlds.random_world(np.random.default_rng(i), **worlds.EVERYTHING) for i in range(NUM_ROWS)))
    run = jax.jit(
        lambda params, state, rule_state: jaxmcts.search(
            params, jax.random.key(0), state, model, select=select, root_select=select, backup=backup,
            num_simulations=NUM_SIMULATIONS, rule_state=rule_state,
        ),
        compiler_options=QUICK_TO_COMPILE,
    )  # fmt: skip
    return run(params, worlds.roots(NUM_ROWS), rule_state)


def per_edge(dtype: Any = jnp.int32) -> jax.Array:
    return jnp.zeros((NUM_ROWS, NUM_SIMULATIONS + 1, NUM_ACTIONS), dtype)


def counting(write: Any) -> Any:
    """The mean, and visits counted once more: `write(parent, edge)` is the new share of `rule_state`."""

    def backup(parent: Any, edge: Any, child: Any, value: jax.Array) -> Any:
        update, value = jaxmcts.mean_backup(parent, edge, child, value)
        return dataclasses.replace(update, rule_state=write(parent, edge)), value

    return backup


def one(edge: Any) -> jax.Array:
    return (jnp.arange(NUM_ACTIONS) == edge.action).astype(jnp.int32)


@pytest.mark.parametrize(
    "write",
    [
        lambda parent, edge: parent.rule_state + one(edge),
        lambda parent, edge: AtEdge(parent.rule_state[edge.action] + 1),
        lambda parent, edge: AtEdge(Added(jnp.int32(1))),
        lambda parent, edge: Added(one(edge)),
    ],
    ids=["whole", "AtEdge", "AtEdge of Added", "Added"],
)
def test_a_row_its_entry_or_what_is_added_to_it_is_written(write):
    tree = search(counting(write), per_edge())
    np.testing.assert_array_equal(tree.rule_state, tree.visits)
    assert tree.visits.sum() > 0


def test_a_message_reaches_the_root_from_where_the_simulation_ended():
    """Here the depth of that node, of which every node keeps the largest."""

    def start(leaf: Any) -> Any:
        return {"value": leaf.raw_value, "depth": leaf.depth}

    def backup(parent: Any, edge: Any, child: Any, message: Any) -> Any:
        update, value = jaxmcts.mean_backup(parent, edge, child, message["value"])
        deepest = jnp.maximum(parent.rule_state, message["depth"])
        return dataclasses.replace(update, rule_state=deepest), {"value": value, "depth": message["depth"]}

    tree = search(Relay(fn=backup, start=start), jnp.zeros((NUM_ROWS, NUM_SIMULATIONS + 1), jnp.int32))
    plain = search(jaxmcts.mean_backup, ())
    np.testing.assert_array_equal(tree.visits, plain.visits)
    deepest = np.array(tree.depth)
    for slot in range(NUM_SIMULATIONS, 0, -1):  # a child's slot is above its parent's
        for row, parent in enumerate(tree.parent[:, slot]):
            if tree.total_visits[row, slot]:
                deepest[row, parent] = max(deepest[row, parent], deepest[row, slot])
    inner = np.asarray(tree.visits).sum(axis=-1) > 0
    np.testing.assert_array_equal(np.asarray(tree.rule_state)[inner], deepest[inner])
    assert deepest.max() > 2


def test_statistics_may_be_arrays_without_elements():
    tree = search(jaxmcts.mean_backup, jnp.zeros((NUM_ROWS, NUM_SIMULATIONS + 1, 0)))
    np.testing.assert_array_equal(tree.visits, search(jaxmcts.mean_backup, ()).visits)


@pytest.mark.parametrize(
    ("backup", "message"),
    [
        (
            counting(lambda parent, edge: AtEdge(jnp.zeros(2, jnp.int32))),
            r"int32\[5, 2\], but the tree holds int32\[5\]",
        ),
        (counting(lambda parent, edge: Added(jnp.zeros(5))), r"float32\[5\], but the tree holds int32\[5\]"),
        (counting(lambda parent, edge: {"n": Added(one(edge))}), "`rule_state` came back with structure"),
        (counting(lambda parent, edge: Added({"n": one(edge)})), "an `AtEdge` or `Added` that holds a dict"),
        (counting(lambda parent, edge: AtEdge((1, 2))), "an `AtEdge` or `Added` that holds a tuple"),
        (counting(lambda parent, edge: Added(AtEdge(1))), "an `AtEdge` or `Added` that holds a AtEdge"),
        (
            Relay(
                fn=lambda parent, edge, child, message: (jaxmcts.mean_backup(parent, edge, child, message[0])[0], 0.0),
                start=lambda leaf: (leaf.raw_value, leaf.depth),
            ),
            "`value to pass up` came back with structure .*, but `start` gave",
        ),
        (
            Relay(
                fn=lambda parent, edge, child, message: (
                    jaxmcts.mean_backup(parent, edge, child, message[0])[0],
                    (message[0], message[1].astype(float)),
                ),
                start=lambda leaf: (leaf.raw_value, leaf.depth),
            ),
            r"`value to pass up`\[1\] came back as float32\[\], but `start` gave int32\[\]",
        ),
    ],
)
def test_what_cannot_be_written_or_passed_up_is_named(backup, message):
    with pytest.raises(TypeError, match=message):
        search(backup, per_edge())


WRONG_START: Any = search  # it needs more than one thing


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"select": 1}, r"`select` is 1, expected a function that is called as `select\(node\)`"),
        ({"select": amaf.grave}, r"`select` is .*grave.* cannot be called as `select\(node\)`"),
        ({"select": jaxmcts.Live(amaf.rave)}, r"rave.* cannot be called as `select\(key, tree, index\)`"),
        ({"root_select": jaxmcts.Live(lambda *_: 0, start=WRONG_START)}, r"cannot be called as `start\(tree\)`"),
        ({"backup": variance_backup}, r"`rule_state=no_spread\(B, capacity, A\)`"),
        ({"backup": bounds_backup}, r"`rule_state=no_bounds\(B, capacity\)`"),
        ({"backup": uncertainty.weighted_backup}, r"cannot be called as `backup\(parent, edge, child, message\)`"),
        ({"backup": Relay(fn=jaxmcts.mean_backup, start=WRONG_START)}, r"cannot be called as `start\(leaf\)`"),
    ],
)
def test_rules_and_backups_that_cannot_work_are_named(given, message):
    rules = {"select": RAW_PUCT, "root_select": RAW_PUCT, "backup": jaxmcts.mean_backup} | given
    params = params_of(worlds.random_world(np.random.default_rng(0), **worlds.EVERYTHING))
    with pytest.raises(TypeError, match=message):
        jaxmcts.search(params, jax.random.key(0), worlds.roots(1), worlds.MODEL, num_simulations=1, **rules)


def test_weights_by_error():
    """KataGo's weights, coeff 0.25 and at most 8."""
    node = dataclasses.replace(nodes.F1, extras=jnp.array([0, 0.1, 0.25, 0.5, 1]))
    nodes.close(uncertainty.error_weight(node), [8, 1.904762, 0.888889, 0.470588, 0.242424], atol=1e-6)
    finished = dataclasses.replace(node, legal_action_mask=jnp.zeros(4, bool))
    nodes.close(uncertainty.error_weight(finished), [8] * 5)


def _evaluate_with_error(params: Any, keys: jax.Array, pending: Any) -> Any:
    evaluation, state = worlds.MODEL.evaluate(params, keys, pending)
    return dataclasses.replace(evaluation, extras=jnp.abs(evaluation.value)), state


def _size_of_value(node: Any) -> jax.Array:
    return jnp.abs(node.raw_value)


def test_the_error_of_a_network_comes_as_extras():
    """A model that hands out |value| as its error searches as one whose weights are those of |value|."""
    model = jaxmcts.Model(step=worlds.MODEL.step, evaluate=_evaluate_with_error)
    select = jax.tree_util.Partial(uncertainty.by_weight, rule=engines.katago)
    start = uncertainty.no_weights(NUM_ROWS, NUM_SIMULATIONS + 1, NUM_ACTIONS)
    given = search(uncertainty.weighted_backup(), start, model=model, select=select)
    weight = jax.tree_util.Partial(uncertainty.error_weight, error=_size_of_value)
    known = search(uncertainty.weighted_backup(weight), start, select=select)
    np.testing.assert_array_equal(given.visits, known.visits)
    np.testing.assert_allclose(given.rule_state.edges, known.rule_state.edges, rtol=1e-6)
    np.testing.assert_allclose(given.rule_state.total, given.rule_state.edges.sum(axis=2), rtol=1e-5)
    plain = search(jaxmcts.mean_backup, (), select=engines.katago)
    assert (given.visits[:, 0] != plain.visits[:, 0]).any()


def test_a_live_rule_hands_a_message_down_from_the_root():
    """Here the depth, counted on the way: what it chooses by it is what the node's own depth would."""

    def by_depth(node: Any, depth: jax.Array) -> jax.Array:
        return jaxmcts.rules.pick(
            -node.visits - 0.1 * depth * jnp.arange(NUM_ACTIONS), node.prior, node.legal_action_mask
        )

    def told(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array, depth: jax.Array) -> tuple[jax.Array, jax.Array]:
        return by_depth(jaxmcts.read_node(tree, index), depth), depth + 1

    def read(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array) -> jax.Array:
        node = jaxmcts.read_node(tree, index)
        return by_depth(node, node.depth)

    handed = search(jaxmcts.mean_backup, (), select=jaxmcts.Live(told, start=lambda tree: jnp.int32(0)))
    plain = search(jaxmcts.mean_backup, (), select=jaxmcts.Live(read))
    np.testing.assert_array_equal(handed.visits, plain.visits)
    assert handed.depth.max() > 2


def test_a_message_of_another_form_is_named():
    def rule(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array, message: jax.Array) -> Any:
        return jnp.int32(0), message.astype(float)

    with pytest.raises(TypeError, match=r"`message to hand down` came back as float32\[\], but `start` gave int32\[\]"):
        search(jaxmcts.mean_backup, (), select=jaxmcts.Live(rule, start=lambda tree: jnp.int32(0)))
    with pytest.raises(TypeError, match="a live rule"):
        search(jaxmcts.mean_backup, (), select=jaxmcts.Live(lambda *_: jnp.int32(0), start=lambda tree: jnp.int32(0)))
