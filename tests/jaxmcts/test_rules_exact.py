"""Every rule and backup in the compiled search against its twin in plain Python, whole trees, node by node.

A new rule is tested by adding its name to `CASES`. Worlds, and what is left out of them, are those of `test_exact`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from jaxmcts import amaf, backup, qvalue, uncertainty
from jaxmcts.rules import engines, gates, muzero, puct, regularised, uct, variance
from tests import oracle_rules as plain
from tests import oracles, worlds
from tests.jaxmcts import hlo, trees
from tests.jaxmcts.searching import QUICK_TO_COMPILE, params_of, same_rule

NUM_SIMULATIONS = 20
FAMILIES: tuple[Mapping[str, Any], ...] = (
    {},
    worlds.EVERYTHING,
    {"illegal": 0.6, "terminated": 0.4, "truncated": 0.2, "rewards": 1.0},
    {"levels": (-1.0, 0.0, 1.0), "illegal": 0.2, "truncated": 0.2, "rewards": 0.5, "same_mover": 0.2},
)
WORLDS_PER_FAMILY = 6
NUM_ROWS = WORLDS_PER_FAMILY * len(FAMILIES)
CAPACITY = NUM_SIMULATIONS + 1
NUM_ACTIONS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parts:
    """What a search is made of: one rule everywhere unless something else is said of the root."""

    select: Any
    root_select: Any = None
    backup: Any = jaxmcts.mean_backup
    rule_state: Callable[[int, int, int], Any] = lambda batch_size, capacity, num_actions: ()

    def named(self) -> dict[str, Any]:
        """The arguments of `jaxmcts.search` and `run`."""
        return {"select": self.select, "root_select": self.root_select or self.select, "backup": self.backup}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case(Parts):
    """A rule of the library and its twin."""

    oracle: plain.By
    node_type: type[oracles.Node] = oracles.Node


def bounds(batch_size: int, capacity: int, num_actions: int) -> jax.Array:
    return backup.no_bounds(batch_size, capacity)


own_amaf = functools.partial(amaf.no_amaf, players=1)


def as_large_as_the_value(node: jaxmcts.Node) -> jax.Array:
    return jnp.abs(node.raw_value)


ZERO = oracles.fpu_constant(0.0)
PLAIN_PUCT = plain.puct(1.5, fpu=oracles.fpu_parent)
PUCT = Partial(puct.alphago, c=1.5, offset=1.0, fpu=qvalue.fpu_parent)


PLAIN_UCT = plain.uct(math.sqrt(2), 1)  # tries whatever a gate lets in


def gated(rule: Callable[..., Any], gate: Callable[..., Any], **constants: float) -> Partial:
    return Partial(gates.gated, rule=rule, gate=Partial(gate, **constants))


CASES: dict[str, Case] = {
    "greedy": Case(select=uct.greedy, oracle=plain.by(plain.greedy(oracles.fpu_constant(math.inf)))),
    "greedy by fpu": Case(select=Partial(uct.greedy, fpu=qvalue.fpu_zero), oracle=plain.by(plain.greedy(ZERO))),
    "uct, n = S": Case(select=Partial(uct.uct, offset=0.0), oracle=plain.by(plain.uct(math.sqrt(2), 0))),
    "uct_browne": Case(select=uct.uct_browne, oracle=plain.by(plain.uct(1.0, 1))),
    "alphago": Case(select=puct.alphago, oracle=plain.by(plain.puct(5.0, offset=0, fpu=ZERO))),
    "alphago, floor": Case(
        select=Partial(puct.alphago, c=0.8, floor=1.0, fpu=qvalue.fpu_lose),
        oracle=plain.by(plain.puct(0.8, offset=0, floor=1, fpu=oracles.fpu_lose)),
    ),
    "polynomial": Case(
        select=Partial(puct.polynomial, exponent=0.75), oracle=plain.by(plain.puct(1.25, exponent=0.75, fpu=ZERO))
    ),
    "log_shaped": Case(select=puct.log_shaped, oracle=plain.by(plain.log_shaped)),
    "shrunk": Case(select=puct.shrunk, oracle=plain.by(plain.shrunk)),
    "muzero": Case(select=muzero.muzero, oracle=plain.by(plain.muzero)),
    "muzero_tree": Case(
        select=jaxmcts.Live(muzero.muzero_tree),
        oracle=plain.by(plain.muzero_tree),
        backup=backup.bounds_backup,
        rule_state=bounds,
    ),
    "lc0": Case(select=engines.lc0, oracle=plain.by(plain.lc0)),
    "leela_zero": Case(select=engines.leela_zero, oracle=plain.by(plain.leela_zero)),
    "katago": Case(select=engines.katago, oracle=plain.by(plain.katago)),
    "katago_by_variance": Case(
        select=engines.katago_by_variance,
        oracle=plain.by(plain.katago_by_variance),
        backup=backup.variance_backup,
        rule_state=backup.no_spread,
    ),
    "katago_by_weight": Case(
        select=Partial(uncertainty.by_weight, rule=engines.katago),
        oracle=plain.by(plain.katago_by_weight),
        backup=uncertainty.weighted_backup(Partial(uncertainty.error_weight, error=as_large_as_the_value)),
        rule_state=uncertainty.no_weights,
        node_type=plain.UncertainNode,
    ),
    "uct_v_p": Case(
        select=variance.uct_v_p,
        oracle=plain.by(plain.uct_v_p),
        backup=backup.variance_backup,
        rule_state=backup.no_spread,
    ),
    "puct_v": Case(
        select=variance.puct_v,
        oracle=plain.by(plain.puct_v),
        backup=backup.variance_backup,
        rule_state=backup.no_spread,
    ),
    "regularised": Case(select=regularised.regularised, oracle=plain.by(plain.regularised)),
    "rave": Case(
        select=Partial(amaf.rave, beta=Partial(amaf.beta_by_hand, k=20.0)),
        oracle=plain.by(plain.rave(plain.beta_by_hand)),
        backup=amaf.amaf_backup,
        rule_state=own_amaf,
    ),
    "rave by edge, with a bonus": Case(
        select=Partial(amaf.rave, beta=Partial(amaf.beta_by_edge, k=20.0), c=0.3),
        oracle=plain.by(plain.rave(plain.beta_by_edge, c=0.3)),
        backup=amaf.amaf_backup,
        rule_state=own_amaf,
    ),
    "rave by bias": Case(
        select=Partial(amaf.rave, beta=Partial(amaf.beta_by_bias, bias=0.1)),
        oracle=plain.by(plain.rave(plain.beta_by_bias(0.1))),
        backup=amaf.amaf_backup,
        rule_state=amaf.no_amaf,
    ),
    "grave": Case(
        select=amaf.grave(least_visits=4, bias=0.1),
        oracle=plain.by(plain.grave(4, 0.1)),
        backup=amaf.amaf_backup,
        rule_state=amaf.no_amaf,
    ),
    "policy_filter": Case(
        select=gated(uct.uct, gates.policy_filter, threshold=0.2),
        oracle=plain.by(plain.only(PLAIN_UCT, plain.above(0.2))),
    ),
    "widening": Case(select=gated(uct.uct, gates.widening), oracle=plain.by(plain.only(PLAIN_UCT, plain.widening))),
    "can_catch_up": Case(
        select=PUCT,
        root_select=gated(PUCT, gates.can_catch_up, num_simulations=float(NUM_SIMULATIONS)),
        oracle=plain.by(PLAIN_PUCT, plain.only(PLAIN_PUCT, plain.can_catch_up(NUM_SIMULATIONS))),
    ),
    "forced_playouts": Case(
        select=PUCT,
        root_select=gated(PUCT, gates.forced_playouts, k=2.1),
        oracle=plain.by(PLAIN_PUCT, plain.only(PLAIN_PUCT, plain.forced(2.1))),
    ),
    "recompute_backup": Case(
        select=PUCT,
        oracle=plain.by(PLAIN_PUCT),
        backup=Partial(backup.recompute_backup, raw_weight=3.0),
        node_type=plain.WeightedNode,
    ),
    "max_backup": Case(select=PUCT, oracle=plain.by(PLAIN_PUCT), backup=backup.max_backup, node_type=plain.MaxNode),
    "max_mean_backup": Case(
        select=PUCT,
        oracle=plain.by(PLAIN_PUCT),
        backup=Partial(backup.max_mean_backup, max_weight=0.3),
        node_type=plain.MaxMeanNode,
    ),
    "power_mean_backup": Case(
        select=PUCT,
        oracle=plain.by(PLAIN_PUCT),
        backup=Partial(backup.power_mean_backup, power=3.0, low=-3.0, high=3.0),
        node_type=plain.PowerMeanNode,
    ),
}


def draw(case: Case) -> list[tuple[worlds.World, oracles.Node]]:
    """Search worlds of every family with the oracle; those whose choices rounding could turn round are drawn again."""
    kept: list[tuple[worlds.World, oracles.Node]] = []
    for number, family in enumerate(FAMILIES):
        attempt, wanted = 0, len(kept) + WORLDS_PER_FAMILY
        while len(kept) < wanted:
            world = worlds.random_world(np.random.default_rng([number, attempt]), num_actions=NUM_ACTIONS, **family)
            root = oracles.search(world, case.oracle, NUM_SIMULATIONS, node_type=case.node_type)
            if not oracles.is_delicate(root):
                kept.append((world, root))
            attempt += 1
            assert attempt < 500, f"too few worlds of {family} without a delicate choice"
    return kept


@functools.cache
def compiled_case(name: str) -> Callable[..., jaxmcts.Tree]:
    """Compile the search of a case, once for all tests of it: `run(params, state, rule_state)`."""
    case = CASES[name]
    return jax.jit(
        lambda params, state, rule_state: jaxmcts.search(
            params,
            jax.random.key(0),
            state,
            worlds.MODEL,
            num_simulations=NUM_SIMULATIONS,
            rule_state=rule_state,
            **case.named(),
        ),
        compiler_options=QUICK_TO_COMPILE,
    )


def searched(name: str, drawn: list[worlds.World]) -> jaxmcts.Tree:
    """Search `NUM_ROWS` worlds under x64; the tree keeps its invariants and has no number that is not one."""
    with jax.enable_x64(True):
        params = params_of(*drawn, dtype=np.float64)
        tree = compiled_case(name)(
            params, worlds.roots(NUM_ROWS), CASES[name].rule_state(NUM_ROWS, CAPACITY, NUM_ACTIONS)
        )
        jaxmcts.validate(tree)
        assert not (tree.flags & jaxmcts.Flags.NOT_FINITE).any()
        return tree


@pytest.mark.parametrize("name", CASES)
def test_the_compiled_search_is_the_oracle_s(name):
    """Visits equal, also 0 at what is illegal; q and values to 1e-8."""
    drawn = draw(CASES[name])
    got = trees.host(searched(name, [world for world, _ in drawn]))
    for row, (_, root) in enumerate(drawn):
        trees.assert_same_tree(trees.by_path(got, row), oracles.by_path(root), atol=1e-8, name=f"{name}, world {row}")


@pytest.mark.parametrize("name", CASES)
def test_no_rule_is_tempted_and_none_reads_the_labels(name):
    """Illegal edges that win at once and have all the network's favour are never visited; and with actions called by
    other names, illegal ones too, the tree is the same under those names."""
    order = np.array([3, 0, 4, 1, 2])
    drawn = [tempting(np.random.default_rng([21, i])) for i in range(NUM_ROWS // 2)]
    tree = searched(name, [*drawn, *(worlds.relabelled(world, order) for world in drawn)])
    got = trees.host(tree)
    states, visits = np.asarray(tree.state), got["visits"]
    for row, world in enumerate(drawn):
        used = got["total_visits"][row] > 0
        legal = world.legal_action_mask[states[row, used, 1]]
        assert not visits[row, used][~legal].any()
        assert visits[row, 0].sum() == NUM_SIMULATIONS
        original = trees.by_path(got, row)
        renamed = trees.renamed(trees.by_path(got, row + len(drawn)), order)
        trees.assert_same_tree(renamed, original, atol=1e-9, name=f"{name}, world {row}")


def tempting(rng: np.random.Generator) -> worlds.World:
    """A world with everything in which every illegal edge would win most at once, and the prior would want it so."""
    world = worlds.random_world(rng, num_actions=NUM_ACTIONS, **worlds.EVERYTHING | {"illegal": 0.5})
    illegal = ~world.legal_action_mask
    return dataclasses.replace(
        world,
        reward=np.where(illegal, 3.0, world.reward),
        discount=np.where(illegal, 0.0, world.discount),
        prior_logits=np.where(illegal, 30.0, world.prior_logits),
    )


@pytest.mark.parametrize("name", ["katago_by_variance", "muzero_tree", "grave"])
def test_no_loop_copies_what_a_backup_keeps(name):
    """Compiled as users compile it, with the tree donated."""
    case = CASES[name]
    params = params_of(*(worlds.random_world(np.random.default_rng(i)) for i in range(NUM_ROWS)))
    tree = jaxmcts.init(
        params,
        jax.random.key(0),
        worlds.roots(NUM_ROWS),
        worlds.MODEL,
        capacity=CAPACITY,
        rule_state=case.rule_state(NUM_ROWS, CAPACITY, NUM_ACTIONS),
    )
    run = jax.jit(
        lambda params, tree: jaxmcts.run(params, tree, worlds.MODEL, num_simulations=NUM_SIMULATIONS, **case.named()),
        donate_argnums=1,
    )
    assert hlo.copies_in_loops(run.lower(params, tree).compile().as_text(), rows=NUM_ROWS, nodes=CAPACITY) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("katago_by_variance", r"is a tuple, expected `Spread`.*`backup=variance_backup`"),
        ("uct_v_p", r"`rule_state=no_spread\(B, capacity, A\)`"),
        ("muzero_tree", r"expected an array of shape \(2,\).*`rule_state=no_bounds\(B, capacity\)`"),
        ("rave", r"is a tuple, expected `Amaf`.*`rule_state=no_amaf"),
        ("grave", r"is a tuple, expected `Amaf`"),
    ],
)
def test_a_rule_without_its_backup_says_so(name, message):
    rule = CASES[name].select
    params = params_of(worlds.random_world(np.random.default_rng(0)))
    with pytest.raises(TypeError, match=message):
        jaxmcts.search(
            params, jax.random.key(0), worlds.roots(1), worlds.MODEL, num_simulations=2, **same_rule(rule)
        )  # fmt: skip
