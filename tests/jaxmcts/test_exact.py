"""The compiled search against the oracle, whole trees, node by node: visits equal, q and values to 1e-9.

Everything runs under x64, so that rounding does not turn a choice round. Worlds in which a choice hangs on less
than that (`oracles.is_delicate`) are drawn again; true ties, where the tie-break rule decides, stay in.
"""

import dataclasses
import functools
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
from tests.jaxmcts.searching import QUICK_TO_COMPILE, params_of

NUM_ACTIONS = 5
WORLDS_PER_FAMILY = 32
FAMILIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sharp": {"logit_scale": 4.0, "gamma": 0.97},
    "masked": {"illegal": 0.4, "terminated": 0.15},
    "everything": worlds.EVERYTHING,
    "equal priors": {"logit_scale": 0.0, "terminated": 0.1, "truncated": 0.1, "same_mover": 0.2},
    "small": {"num_actions": NUM_ACTIONS, "illegal": 0.6, "terminated": 0.4, "truncated": 0.2, "rewards": 1.0},
    "two levels": {"levels": (-0.5, 0.5), "illegal": 0.2, "terminated": 0.2, "same_mover": 0.2},
    "three levels": {"levels": (-1.0, 0.0, 1.0), "illegal": 0.2, "truncated": 0.2, "rewards": 0.5},
}
NUM_WORLDS = WORLDS_PER_FAMILY * len(FAMILIES)

OracleRule = Callable[[np.random.Generator], oracles.Rule]


@dataclasses.dataclass(frozen=True)
class Sample:
    """One world, its rule, and what the oracle made of it."""

    name: str
    world: worlds.World
    rule: oracles.Rule
    root: oracles.Node


def draw(rule: OracleRule, num_simulations: int, max_depth: int | None, seed: int) -> list[Sample]:
    """Draw every family's worlds, those left out whose choices rounding could turn round."""
    return [
        sample
        for f, (name, options) in enumerate(FAMILIES.items())
        for sample in _draw_family(name, options, rule, num_simulations, max_depth, seed + 1000 * f)
    ]


def _draw_family(
    name: str, options: dict[str, Any], rule: OracleRule, num_simulations: int, max_depth: int | None, seed: int
) -> Iterator[Sample]:
    kept = 0
    for attempt in range(200 * WORLDS_PER_FAMILY):
        rng = np.random.default_rng([seed, attempt])
        world = worlds.random_world(rng, **options)
        the_rule = rule(rng)
        root = oracles.search(world, the_rule, num_simulations, max_depth)
        if not oracles.is_delicate(root):
            yield Sample(f"{name} {attempt}", world, the_rule, root)
            kept += 1
        if kept == WORLDS_PER_FAMILY:
            return
    raise AssertionError(f"too few worlds of family {name!r} without a delicate choice: {kept}")


def compare(samples: list[Sample], policy: Callable[..., jaxmcts.PolicyOutput], **arguments: Any) -> None:
    """Search all sampled worlds in one call and compare every tree with the oracle's."""
    assert len(samples) == NUM_WORLDS
    with jax.enable_x64(True):
        params = params_of(*(s.world for s in samples), dtype=np.float64)
        run = jax.jit(
            lambda params, key, state: policy(params, key, state, worlds.MODEL, **arguments),
            compiler_options=QUICK_TO_COMPILE,
        )
        out = run(params, jax.random.key(0), worlds.roots(NUM_WORLDS))
        tree, action = trees.host(out.tree), np.asarray(out.action)
        weights, value = np.asarray(out.action_weights), np.asarray(out.value)
        jaxmcts.validate(out.tree)
    assert tree["q"].dtype == np.float64
    for row, sample in enumerate(samples):
        trees.assert_same_tree(trees.by_path(tree, row), oracles.by_path(sample.root), atol=1e-9, name=sample.name)
        np.testing.assert_allclose(value[row], sample.root.value, atol=1e-9, rtol=0, err_msg=sample.name)
        check_readout(sample, int(action[row]), weights[row])


def check_readout(sample: Sample, action: int, weights: np.ndarray) -> None:
    """The action and the weights follow from the tree: visit shares, or the improved policy."""
    root = sample.root
    if isinstance(sample.rule, oracles.Gumbel):
        want = sample.rule.improved_policy(root)
        assert action == sample.rule.action(root), sample.name
    else:
        most = max(root.visits(a) for a in root.actions)
        assert root.visits(action) == most, sample.name
        want = {a: root.visits(a) / root.num_child_visits for a in root.actions}
    np.testing.assert_allclose(
        weights, [want.get(a, 0.0) for a in range(NUM_ACTIONS)], atol=1e-9, rtol=0, err_msg=sample.name
    )


# AlphaZero: each first-play urgency, budgets and depths.


alphazero = functools.partial(jaxmcts.alphazero_policy, dirichlet_fraction=0.0, temperature=0.0)

FPUS: dict[str, tuple[Any, oracles.Fpu]] = {
    "lose": (jaxmcts.fpu_lose, oracles.fpu_lose),
    "zero": (jaxmcts.fpu_zero, oracles.fpu_constant(0.0)),
    "win": (jaxmcts.fpu_win, oracles.fpu_constant(1.0)),
    "constant": (Partial(jaxmcts.fpu_constant, value=0.3), oracles.fpu_constant(0.3)),
    "parent": (jaxmcts.fpu_parent, oracles.fpu_parent),
    "reduction": (Partial(jaxmcts.fpu_reduction, k=0.25), oracles.fpu_reduction(0.25)),
}


@pytest.mark.parametrize("fpu", FPUS)
def test_alphazero_with_each_fpu(fpu):
    library_fpu, oracle_fpu = FPUS[fpu]
    samples = draw(lambda rng: oracles.AlphaZero(fpu=oracle_fpu), 24, None, seed=1)
    compare(samples, alphazero, num_simulations=24, fpu=library_fpu)


@pytest.mark.parametrize(
    ("num_simulations", "max_depth"), [(1, None), (2, None), (64, None), (32, 3), (16, 1), (16, 200)]
)
def test_alphazero(num_simulations, max_depth):
    samples = draw(lambda rng: oracles.AlphaZero(), num_simulations, max_depth, seed=2)
    compare(samples, alphazero, num_simulations=num_simulations, max_depth=max_depth)


def test_alphazero_with_a_small_base_grows_its_constant():
    samples = draw(lambda rng: oracles.AlphaZero(c_init=0.5, c_base=20.0), 24, None, seed=3)
    compare(samples, alphazero, num_simulations=24, c_init=0.5, c_base=20.0)


# UCT


@pytest.mark.parametrize(("num_simulations", "max_depth"), [(1, None), (40, None), (24, 2)])
def test_uct(num_simulations, max_depth):
    samples = draw(lambda rng: oracles.Uct(), num_simulations, max_depth, seed=4)
    compare(samples, jaxmcts.uct_policy, num_simulations=num_simulations, max_depth=max_depth)


def test_uct_with_constants_by_row():
    """Each row has its own c, down to 0: greedy once everything is visited."""
    samples = draw(lambda rng: oracles.Uct(c=float(rng.choice([0.0, 0.3, 3.0]))), 24, None, seed=5)
    c = jnp.array([sample.rule.c for sample in samples])  # type: ignore[attr-defined]
    compare(samples, jaxmcts.uct_policy, num_simulations=24, c=c)


# Gumbel


@pytest.mark.parametrize(
    ("num_simulations", "max_depth", "options"),
    [
        (1, None, {}),
        (3, None, {}),
        (24, None, {}),
        (64, None, {"max_num_considered_actions": 4}),
        (24, 2, {"max_num_considered_actions": 3}),
        (24, None, {"c_scale": 1.0, "rescale_q": False}),
        (24, None, {"c_visit": 20.0, "max_num_considered_actions": 1}),
    ],
)
def test_gumbel(num_simulations, max_depth, options):
    def rule(rng: np.random.Generator) -> oracles.Gumbel:
        return oracles.Gumbel(rng.gumbel(size=NUM_ACTIONS).tolist(), num_simulations, **options)

    samples = draw(rule, num_simulations, max_depth, seed=6)
    draws = np.array([sample.rule.gumbel for sample in samples])  # type: ignore[attr-defined]
    compare(
        samples,
        jaxmcts.gumbel_policy,
        num_simulations=num_simulations,
        max_depth=max_depth,
        root_gumbel=draws,
        **options,
    )


# What a sample must contain for the comparison to mean anything.


def test_samples_reach_what_they_are_for():
    samples = draw(lambda rng: oracles.AlphaZero(), 64, None, seed=2)
    nodes = [node for sample in samples for _, node in oracles.walk(sample.root)]
    repeated_ends = [
        edge for node in nodes for edge in node.edges.values() if edge.child.finished and len(edge.returns) > 1
    ]
    assert max(node.depth for node in nodes) >= 12
    assert sum(edge.discount == 0 for edge in repeated_ends) > 50
    assert sum(edge.discount != 0 and edge.child.raw_value != 0 for edge in repeated_ends) > 50
    assert sum(len(node.actions) < NUM_ACTIONS for node in nodes) > 500
    assert sum(edge.discount > 0 for node in nodes for edge in node.edges.values()) > 500
    assert sum(_is_true_tie(node) for node in nodes) > 500


def _is_true_tie(node: oracles.Node) -> bool:
    """Two legal edges that are alike and have not been told apart yet."""
    fresh = [node.prior[a] for a in node.actions if not node.visits(a)]
    return len(set(fresh)) < len(fresh)


# Zero simulations


def test_zero_simulations_give_the_prior_and_the_raw_value():
    rng = np.random.default_rng(0)
    params = worlds.stack([worlds.random_world(rng, illegal=0.4) for _ in range(8)])
    evaluation = worlds.evaluation(jax.tree.map(jnp.asarray, params), worlds.roots(8))
    legal = np.asarray(evaluation.legal_action_mask)
    logits = np.where(legal, evaluation.prior_logits, -np.inf)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    policies: dict[str, Callable[..., jaxmcts.PolicyOutput]] = {
        "alphazero": alphazero,
        "uct": jaxmcts.uct_policy,
        "gumbel": functools.partial(jaxmcts.gumbel_policy, gumbel_scale=0.0),
    }
    for name, policy in policies.items():
        out = policy(params, jax.random.key(0), worlds.roots(8), worlds.MODEL, num_simulations=0)
        np.testing.assert_allclose(out.action_weights, prior, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(out.value, evaluation.value, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(out.action, prior.argmax(axis=1), err_msg=name)
        assert not np.asarray(out.tree.visits).any()
