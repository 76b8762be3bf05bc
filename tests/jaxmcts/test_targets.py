"""Root settings and targets on searched trees: what self-play makes of the rules."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from jaxmcts import backup, readout, root
from jaxmcts.rules import final, gates, pruning, puct, regularised, sampled
from tests import oracle_rules as plain
from tests import oracles, worlds
from tests.jaxmcts.searching import QUICK_TO_COMPILE, params_of, same_rule

NUM_WORLDS, NUM_SIMULATIONS, NUM_ACTIONS = 16, 60, 5
DRAWN = [worlds.random_world(np.random.default_rng([20, i]), **worlds.EVERYTHING) for i in range(NUM_WORLDS)]
LEGAL = np.stack([world.legal_action_mask[0] for world in DRAWN])
PUCT = Partial(puct.alphago, c=1.25, offset=1.0)
SCALE = Partial(puct.puct_scale, c=1.25, offset=1.0)


@functools.cache
def forced_and_noisy() -> tuple[jaxmcts.Tree, jax.Array]:
    """Search with a softened, noised root prior and forced playouts; returns the root's prior logits too."""

    def search(params: worlds.Tables, state: jax.Array) -> Any:
        tree = jaxmcts.init(params, jax.random.key(0), state, worlds.MODEL, capacity=NUM_SIMULATIONS + 1)
        logits = root.tempered_prior_logits(readout.root(tree).prior_logits, 1.25)
        noise = root.shaped_dirichlet(tree.keys, logits)
        logits = root.mixed_prior_logits(logits, noise, dirichlet_fraction=0.25)
        forced = Partial(gates.gated, rule=PUCT, gate=gates.forced_playouts)
        tree = jaxmcts.run(
            params, tree, worlds.MODEL, num_simulations=NUM_SIMULATIONS, select=PUCT, backup=backup.mean_backup,
            root_select=Partial(root.with_prior, rule=forced, prior_logits=logits),
        )  # fmt: skip
        return tree, logits

    return jax.jit(search, compiler_options=QUICK_TO_COMPILE)(params_of(*DRAWN), worlds.roots(NUM_WORLDS))


def test_forced_playouts_reach_what_they_force():
    tree, logits = forced_and_noisy()
    visits = np.asarray(tree.visits[:, 0])
    least = np.sqrt(2 * np.exp(logits) * NUM_SIMULATIONS)
    assert (visits.sum(axis=1) == NUM_SIMULATIONS).all()
    assert not visits[~LEGAL].any()
    # Each edge is one short at most for as many turns as there are edges.
    assert (visits[visits > 0] >= least[visits > 0] - NUM_ACTIONS / 2).all()
    plain_puct = least_visits_without_forcing(logits)
    assert (visits[visits > 0] - least[visits > 0]).min() > plain_puct


def least_visits_without_forcing(logits: jax.Array) -> float:
    """How far the worst edge falls short when nothing is forced."""
    search = jax.jit(
        lambda params, state: jaxmcts.search(
            params, jax.random.key(0), state, worlds.MODEL, num_simulations=NUM_SIMULATIONS, select=PUCT,
            root_select=Partial(root.with_prior, rule=PUCT, prior_logits=logits), backup=backup.mean_backup,
        ),
        compiler_options=QUICK_TO_COMPILE,
    )  # fmt: skip
    visits = np.asarray(search(params_of(*DRAWN), worlds.roots(NUM_WORLDS)).visits[:, 0])
    least = np.sqrt(2 * np.exp(logits) * NUM_SIMULATIONS)
    return float((visits - least)[visits > 0].min())


@pytest.mark.parametrize("prune", [pruning.pruned_visits, pruning.pruned_forced_visits])
def test_pruned_targets(prune):
    """They are shares over legal edges; pruning takes from the others and so gives to the most visited."""
    tree, logits = forced_and_noisy()
    pruned = Partial(root.with_prior, rule=Partial(prune, scale=SCALE), prior_logits=logits)
    shares, target = np.asarray(readout.visit_shares(tree)), np.asarray(readout.pruned_visit_shares(tree, pruned))
    np.testing.assert_allclose(target.sum(axis=1), 1, atol=1e-6)
    assert not target[~LEGAL].any()
    rows, top = np.arange(NUM_WORLDS), np.asarray(jaxmcts.most_visited(tree))
    assert (target[rows, top] >= shares[rows, top] - 1e-6).all()
    assert (target[rows, top] > shares[rows, top] + 0.01).sum() > NUM_WORLDS / 4


def test_regularised_targets():
    tree, _ = forced_and_noisy()
    got = np.asarray(readout.regularised_targets(tree))
    visits, q, value = (np.asarray(x) for x in (tree.visits[:, 0], tree.q[:, 0], tree.value[:, 0]))
    for row, world in enumerate(DRAWN):
        node = AsSearched(world, world.root)
        node.given = visits[row].tolist(), q[row].tolist(), float(value[row])
        want = plain.regularised_policy(node)
        np.testing.assert_allclose(got[row], [want.get(a, 0.0) for a in range(NUM_ACTIONS)], atol=1e-5)


class AsSearched(oracles.Node):
    """A node of the oracle with given statistics."""

    given: tuple[list[int], list[float], float]

    def visits(self, action: int) -> int:
        return self.given[0][action]

    def q(self, action: int) -> float:
        return self.given[1][action]

    @property
    def num_child_visits(self) -> int:
        return sum(self.given[0])

    @property
    def value(self) -> float:
        return self.given[2]


def test_targets_of_finished_and_of_new_roots():
    over = worlds.world_of(worlds.Position(), num_actions=3, num_states=4)
    fresh = worlds.world_of(
        worlds.Position(prior=(0.7, 0.3), moves={0: worlds.Move(), 1: worlds.Move()}), num_actions=3, num_states=4
    )
    tree = jaxmcts.init(params_of(over, fresh), jax.random.key(0), worlds.roots(2), worlds.MODEL, capacity=1)
    prune = Partial(pruning.pruned_visits, scale=SCALE)
    for target in (readout.regularised_targets(tree), readout.pruned_visit_shares(tree, prune)):
        np.testing.assert_allclose(target, [[0, 0, 0], [0.7, 0.3, 0]], atol=1e-6)
    for move in (final.robust, final.secure, final.highest_q):
        np.testing.assert_array_equal(readout.at_root(tree, move), [0, 0])


def test_drawing_from_the_regularised_policy():
    """The rule draws from pibar of the node as it is, and a search by it never draws what is illegal."""
    tree, _ = forced_and_noisy()
    one = jax.tree.map(lambda x: x[0], tree)
    keys = jax.random.split(jax.random.key(1), 4000)
    drawn = jax.vmap(lambda key: regularised.sampled_regularised(key, one, jnp.int32(0)))(keys)
    wild = jax.vmap(lambda key: regularised.sampled_regularised(key, one, jnp.int32(0), c=jnp.nan))(keys)
    assert jaxmcts.read_node(one, 0).legal_action_mask[wild].all()
    shares = np.bincount(np.asarray(drawn), minlength=NUM_ACTIONS) / 4000
    np.testing.assert_allclose(shares, readout.regularised_targets(tree)[0], atol=0.03)

    rules = same_rule(jaxmcts.Live(regularised.sampled_regularised))
    search = jax.jit(
        lambda params, state: jaxmcts.search(
            params, jax.random.key(1), state, worlds.MODEL, num_simulations=NUM_SIMULATIONS, **rules
        ),
        compiler_options=QUICK_TO_COMPILE,
    )
    jaxmcts.validate(search(params_of(*DRAWN), worlds.roots(NUM_WORLDS)))


def test_a_search_over_sampled_actions():
    """Every node keeps three draws; nothing else is ever visited, and repeated draws weigh more."""

    def evaluate(params: worlds.Tables, keys: jax.Array, state: jax.Array) -> tuple[jaxmcts.Evaluation, jax.Array]:
        given = worlds.evaluation(params, state)
        logits = jnp.where(given.legal_action_mask, given.prior_logits, -jnp.inf)
        alive = jnp.any(given.legal_action_mask, axis=1, keepdims=True)
        counts = jax.vmap(lambda key, logits: sampled.sample_counts(key, logits, 3))(keys, jnp.where(alive, logits, 0))
        counts = jnp.where(given.legal_action_mask, counts, 0)
        prior = jax.vmap(sampled.sampled_prior_logits)(logits, logits, counts)
        return jaxmcts.Evaluation(
            prior_logits=jnp.where(counts > 0, prior, 0), value=given.value, legal_action_mask=counts > 0, extras=counts
        ), state

    model = jaxmcts.Model(step=worlds.MODEL.step, evaluate=evaluate)
    search = jax.jit(
        lambda params, state: jaxmcts.search(
            params, jax.random.key(0), state, model, num_simulations=NUM_SIMULATIONS, **same_rule(PUCT)
        ),
        compiler_options=QUICK_TO_COMPILE,
    )
    tree = search(params_of(*DRAWN), worlds.roots(NUM_WORLDS))
    jaxmcts.validate(tree)
    used = np.asarray(tree.total_visits) > 0
    counts, visits = np.asarray(tree.extras)[used], np.asarray(tree.visits)[used]
    alive = counts.sum(axis=1) > 0
    assert not visits[counts == 0].any()
    np.testing.assert_allclose(np.exp(np.asarray(tree.prior_logits)[used][alive]), counts[alive] / 3, atol=1e-6)
