"""The rules of the field against numbers worked out by hand in float64, most on one node, F1 (see `nodes`)."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmcts import amaf, backup, qvalue, root
from jaxmcts.model import Evaluation
from jaxmcts.rules import engines, final, gates, muzero, pruning, puct, regularised, sampled, uct, variance
from jaxmcts.rules.engines import LEELA_ZERO_FPU
from jaxmcts.tree import Node, clean
from tests.jaxmcts.nodes import F1, FRESH, PRIOR, close, make_node

INF = math.inf


def spread(edges, node=0.0):
    return backup.Spread(edges=jnp.asarray(edges, jnp.float32), node=jnp.float32(node))


# F1 with a spread of returns: their mean square is 0.35, counting the node's own evaluation.
SPREAD = dataclasses.replace(F1, rule_state=spread([1.5, 0.77, 0.0, 0.0], 16 * (0.35 - 0.38125**2)))
C = {"c": 1.25}

SCORES: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "uct, n = N(s)": (uct.uct_scores, [1.144659, 1.777410, 1.854820, INF]),
    "uct, n = S": (partial(uct.uct_scores, offset=0.0), [1.135942, 1.763626, 1.827252, INF]),
    "alphago": (partial(puct.alphago_scores, **C), [0.620056, 0.842061, -0.136908, 0.484123]),
    "alphago, sqrt(N(s))": (partial(puct.alphago_scores, **C, offset=1.0), [0.627273, 0.850000, -0.125000, 0.500000]),
    "alphago, sqrt(S + 0.01)": (
        partial(puct.alphago_scores, **C, offset=0.01),
        [0.620129, 0.842142, -0.136787, 0.484284],
    ),
    "polynomial": (partial(puct.polynomial_scores, exponent=0.75), [0.854545, 1.100000, 0.250000, 1.000000]),
    "polynomial 0.5": (puct.polynomial_scores, [0.627273, 0.850000, -0.125000, 0.500000]),
    "log-shaped": (puct.log_shaped_scores, [0.717193, 0.835236, -0.276835, 0.210402]),
    "log-shaped, the article's base": (
        partial(puct.log_shaped_scores, c_base=19652.0),
        [0.992532, 1.039433, -0.083117, 0.393041],
    ),
    "shrunk": (puct.shrunk_scores, [0.583692, 0.722061, 0.113092, 0.484123]),
    "muzero": (muzero.muzero_scores, [1.045612, 1.250173, 0.375259, 0.500346]),
    "muzero, bounds of the tree": (
        partial(muzero.muzero_tree_scores, bounds=jnp.array([-0.7, 0.8])),
        [0.960763, 1.116840, 0.508593, 0.500346],
    ),
    "lc0": (engines.lc0_scores, [0.707481, 0.938229, 0.007344, 0.744643]),
    "leela zero": (engines.leela_zero_scores, [0.771234, 0.878358, 0.367537, 0.610170]),
    "katago": (
        lambda node: engines.katago_scores(node, factor=engines.stdev_factor(node)),
        [0.604620, 0.825082, -0.162378, 0.607239],
    ),
    "uct-v-p": (variance.uct_v_p_scores, [1.373028, 1.625911, 0.623832, 0.831777]),
    "puct-v": (variance.puct_v_scores, [1.286795, 1.528704, 0.623832, 0.831777]),
}


def leela_zero_bonus(node: Node) -> jax.Array:
    winrates = qvalue.unit_interval(qvalue.complete(node, LEELA_ZERO_FPU(node)))
    return engines.leela_zero_scores(node) - winrates


BONUSES: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "alphago": (lambda node: puct.exploration_bonus(node, 1.25, offset=0), [0.220056, 0.242061, 0.363092, 0.484123]),
    "polynomial": (lambda node: puct.prior_bonus(node, 1.25 * 16**0.75), [0.454545, 0.5, 0.75, 1.0]),
    "log-shaped, the article's base": (
        lambda node: puct.log_shaped_scores(node, c_base=19652.0) - node.q, [0.592532, 0.439433, 0.416883, 0.393041]
    ),
    "leela zero": (leela_zero_bonus, [0.071234, 0.078358, 0.117537, 0.156715]),  # 3.134308 c P / (1 + N)
}  # fmt: skip


@pytest.mark.parametrize("name", BONUSES)
def test_bonuses(name):
    bonus, wanted = BONUSES[name]
    close(bonus(F1), wanted)


def test_what_scores_are_made_of():
    """AlphaZero's constant; KataGo's before its factor, and the spread behind that; Leela Zero's unvisited edge."""
    close(puct.alphazero_c(F1, 1.25, 19652.0), 1.250865)
    close(puct.growing_c(jnp.array(15), c_init=1.0, c_factor=0.45, c_base=500.0), 1.013301)
    close(engines.stdev_factor(SPREAD, stdev_scale=1.0) * 0.4, 0.469024)
    close(qvalue.unit_interval(LEELA_ZERO_FPU(F1)), 0.453454)


@pytest.mark.parametrize("name", SCORES)
def test_scores(name):
    scores, wanted = SCORES[name]
    got = np.asarray(scores(SPREAD))
    seen = np.isfinite(wanted)
    close(got[seen], np.array(wanted)[seen])
    assert (got[~seen] == INF).all()


SELECTED: dict[str, tuple[Callable[..., Any], int]] = {
    "greedy": (uct.greedy, 3),
    "greedy, unvisited worth 0": (partial(uct.greedy, fpu=qvalue.fpu_zero), 1),
    "uct": (uct.uct, 3),
    "uct_browne": (uct.uct_browne, 3),
    "alphago": (partial(puct.alphago, **C), 1),
    "polynomial": (partial(puct.polynomial, exponent=0.75), 1),
    "log-shaped": (puct.log_shaped, 1),
    "shrunk": (puct.shrunk, 1),
    "muzero": (muzero.muzero, 1),
    "lc0": (engines.lc0, 1),
    "leela zero": (engines.leela_zero, 1),
    "katago": (engines.katago, 1),
    "katago_by_variance": (engines.katago_by_variance, 1),
    "uct-v-p": (variance.uct_v_p, 1),
    "puct-v": (variance.puct_v, 1),
    "regularised": (regularised.regularised, 1),
    "robust": (final.robust, 0),
    "highest q": (final.highest_q, 1),
    "secure": (final.secure, 1),
    "lcb": (final.lcb, 0),
    "lcb_student": (final.lcb_student, 0),
}


@pytest.mark.parametrize("name", SELECTED)
def test_selection(name):
    rule, wanted = SELECTED[name]
    assert int(jax.jit(rule)(SPREAD)) == wanted


@pytest.mark.parametrize("name", SELECTED)
def test_selection_never_takes_an_illegal_edge(name):
    """Whatever is best on paper: every edge in turn is the only legal one, visited or not."""
    rule = jax.jit(SELECTED[name][0])
    for only in range(4):
        legal = np.arange(4) == only
        for visits in ([0, 0, 0, 0], np.where(legal, 9, 0)):
            node = make_node(
                legal * 1.0, visits, np.where(legal, -0.9, 0), value=-0.9, legal=legal, rule_state=spread(jnp.zeros(4))
            )
            assert int(rule(node)) == only


# Exploration


@pytest.mark.parametrize(
    ("offset", "floor", "wanted"),
    [
        (0.0, 0.0, [0.0, 0.0, 0.0, 0.0]),
        (1.0, 0.0, [0.625, 0.3125, 0.1875, 0.125]),
        (0.0, 1.0, [0.625, 0.3125, 0.1875, 0.125]),
        (0.01, 0.0, [0.0625, 0.03125, 0.01875, 0.0125]),
        (0.1, 0.0, [0.197642, 0.098821, 0.059293, 0.039528]),
        (1e-8, 0.0, [0.000063, 0.000031, 0.000019, 0.000013]),
    ],
)
def test_the_bonus_at_a_new_node_under_each_convention(offset, floor, wanted):
    close(puct.exploration_bonus(FRESH, 1.25, offset=offset, floor=floor), wanted, atol=1e-6)


def test_the_first_choice_follows_the_prior_even_where_all_bonuses_are_0():
    node = make_node([0.2, 0.5, 0.3], [0, 0, 0], [0.0] * 3)
    assert int(puct.alphago(node)) == 1


def test_the_form_of_browne_is_another_constant():
    close(uct.uct_scores(F1, c=2**-0.5 * 2**0.5)[:3], [0.926554, 1.432555, 1.165109])
    node = make_node([0.5, 0.5], [40, 20], [0.55, 0.5])
    assert [int(uct.uct_browne(node, cp=cp)) for cp in (0.2, 0.3)] == [0, 1]
    assert int(uct.uct(node, c=0.3)) == 0


@pytest.mark.parametrize(
    ("visits", "constants", "wanted"),
    [
        ([16, 800, 100_000], {"c_init": 1.745, "c_factor": 3.894, "c_base": 38739.0}, [1.746608, 1.824596, 6.712761]),
        ([100, 1600, 10_000], {"c_init": 1.0, "c_factor": 0.45, "c_base": 500.0}, [1.082045, 1.645788, 2.370035]),
        ([1, 101, 801], {"c_init": 1.25, "c_factor": 1.0, "c_base": 19652.0}, [1.250051, 1.255126, 1.289950]),
    ],
)
def test_growing_constants_of_engines(visits, constants, wanted):
    """lc0, KataGo, and AlphaZero's as the same formula with 1 + N(s)."""
    close(puct.growing_c(jnp.array(visits), **constants), wanted)


@pytest.mark.parametrize(("num_visits", "wanted"), [(100, 1.078495), (1600, 1.801802), (10_000, 2.240961)])
def test_the_constant_of_leela_zero_on_values(num_visits, wanted):
    """Its bonus on winrates, doubled and divided by sqrt(S) P: what PUCT on [-1, 1] would call c."""
    node = make_node([0.5, 0.5], [num_visits, 0], [0.0, 0.0])
    bonus = engines.leela_zero_scores(node, fpu=qvalue.fpu_zero)[1] - 0.5
    close(2 * bonus / (0.5 * math.sqrt(num_visits)), wanted)


def test_the_factor_for_the_variance():
    close(qvalue.node_variance(SPREAD) + SPREAD.value**2, 0.35)
    close(engines.stdev_factor(SPREAD), 1.146677)
    close(engines.katago_scale(SPREAD) * engines.stdev_factor(SPREAD), 4.501633)
    fresh = dataclasses.replace(FRESH, rule_state=spread(jnp.zeros(4)))
    close(engines.stdev_factor(fresh), 1.0)


def test_edge_variance_is_0_where_unvisited():
    close(qvalue.edge_variance(SPREAD), [0.15, 0.1925, 0.0, 0.0])


# Values


@pytest.mark.parametrize(
    ("fpu", "wanted"),
    [
        (qvalue.fpu_infinite, INF),
        (partial(qvalue.fpu_parent, minus=0.2), 0.181250),
        (qvalue.fpu_blended, 0.157076),
        (partial(qvalue.fpu_blended, k=0.0), 0.346813),
    ],
)
def test_first_play_urgency(fpu, wanted):
    np.testing.assert_allclose(fpu(F1), wanted, atol=1e-5)
    assert np.isfinite(fpu(FRESH)) or wanted == INF


def test_w_over_n_plus_1():
    close(qvalue.shrunk_q(F1), [0.363636, 0.48, -0.25, 0.0])
    close(qvalue.shrunk_q(make_node([1.0], [1], [0.9])), [0.45])


def test_normalisation():
    close(qvalue.by_siblings(F1), [0.818182, 1.0, 0.0, 0.0])
    close(qvalue.by_siblings(FRESH), [0.0] * 4)
    close(qvalue.between(F1.q, jnp.float32(-0.7), jnp.float32(0.8)), [0.733333, 0.866667, 0.133333, 0.466667])
    close(qvalue.unit_interval(qvalue.complete(F1, qvalue.fpu_lose(F1))), [0.7, 0.8, 0.25, 0.0])


@pytest.mark.parametrize(("low", "high"), [(INF, -INF), (0.4, 0.4)])
def test_bounds_that_span_no_range_change_nothing(low, high):
    close(qvalue.between(F1.q, jnp.float32(low), jnp.float32(high)), F1.q)


# Regularised policy


def test_regularised_policy():
    policy = regularised.regularised_policy(F1, fpu=qvalue.fpu_zero)
    close(policy, [0.399060, 0.534167, 0.031347, 0.035426])
    close(jnp.sum(policy * F1.q), 0.464450)


def test_regularised_policy_has_one_alpha():
    """lambda = 0.254802, and alpha = q + lambda P / pibar is the same for every edge, between its bounds."""
    alpha = F1.q + 0.254802 * F1.prior / regularised.regularised_policy(F1, fpu=qvalue.fpu_zero)
    close(alpha, [0.719252] * 4)
    close([jnp.max(F1.q + 0.254802 * F1.prior), jnp.max(F1.q) + 0.254802], [0.663700, 0.854802])


def test_regularised_policy_of_a_new_node_is_the_prior():
    close(regularised.regularised_policy(FRESH), PRIOR)


@pytest.mark.parametrize("prior", [[1e-30, 1.0], [0.0, 1.0], [1.0, 0.0]])
@pytest.mark.parametrize("q", [[1.0, 0.0], [0.0, 1.0], [100.0, 100.0]])
def test_regularised_policy_is_the_optimum_also_at_the_edges(prior, q):
    """No policy on the support of the prior has a higher pi . q - lambda KL(P || pi)."""
    node = make_node(prior, [8, 8], q, value=0.5)
    policy = np.asarray(regularised.regularised_policy(node), np.float64)
    close(policy.sum(), 1.0)
    assert policy[np.array(prior) == 0].sum() == 0
    strength, support = 1.25 * 4 / (2 + 16), np.array(prior) > 0

    def objective(pi):
        p = np.array(prior)[support]
        return pi @ np.array(q) - strength * (p * np.log(p / np.maximum(pi[support], 1e-300))).sum()

    others = [np.array([x, 1 - x]) for x in np.linspace(0, 1, 501)]
    assert objective(policy) >= max(objective(pi) for pi in others if pi[~support].sum() == 0) - 1e-6


def test_regularised_policy_counts_legal_edges_only():
    node = make_node([0.5, 0.5, 0.0], [3, 1, 0], [0.1, 0.2, 0.0], value=0.1, legal=[True, True, False])
    alone = make_node([0.5, 0.5], [3, 1], [0.1, 0.2], value=0.1)
    policy = regularised.regularised_policy(node)
    close(policy[:2], regularised.regularised_policy(alone))
    assert policy[2] == 0


# Gates


@pytest.mark.parametrize(
    ("total_visits", "wanted"), [(1, 1), (2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (16, 4), (17, 5)]
)
def test_widening(total_visits, wanted):
    """ceil(sqrt(N(s))) edges: one less does not suffice, so the next comes in; with as many, none does."""
    for num_visited, allowed in ((wanted - 1, wanted), (wanted, wanted)):
        node = make_node(np.full(6, 1 / 6), np.arange(6) < num_visited, np.zeros(6))
        node = dataclasses.replace(node, total_visits=jnp.int32(total_visits))
        np.testing.assert_array_equal(gates.widening(node), np.arange(6) < allowed)


def test_widening_goes_by_the_prior_of_legal_edges():
    node = make_node([0.2, 0.0, 0.5, 0.2, 0.1], [0, 0, 9, 0, 0], np.zeros(5), legal=[True, False, True, True, True])
    np.testing.assert_array_equal(gates.widening(node), [True, False, True, False, False])


def test_policy_filter():
    np.testing.assert_array_equal(gates.policy_filter(F1, threshold=0.2), [True, True, False, False])
    np.testing.assert_array_equal(gates.policy_filter(F1, threshold=0.9), [True, False, False, False])


def test_can_catch_up():
    node = make_node([1 / 3] * 3, [700, 380, 1], [0.0] * 3)
    for left, factor, wanted in ((400, 1.33, False), (400, 1.0, True), (319, 1.0, False), (320, 1.0, True)):
        allowed = gates.can_catch_up(node, num_simulations=1081 + left, factor=factor)
        np.testing.assert_array_equal(allowed, [True, wanted, False])


def test_a_gate_that_allows_nothing_allows_all():
    shut = partial(gates.gated, rule=puct.alphazero, gate=lambda node: jnp.zeros(4, bool))
    assert int(shut(F1)) == int(puct.alphazero(F1)) == 1
    first = partial(gates.gated, rule=puct.alphazero, gate=lambda node: jnp.arange(4) == 0)
    assert int(first(F1)) == 0


# Forced playouts and what to take out of the target

ROOT_NODE = make_node([0.5, 0.3, 0.15, 0.05], [70, 20, 8, 2], [0.2, 0.1, -0.3, -0.1])
SCALE = partial(puct.puct_scale, c=1.1, offset=0.0)


def test_forced_visits():
    close(gates.forced_visits(ROOT_NODE), [10.0, 7.745967, 5.477226, 3.162278])
    np.testing.assert_array_equal(gates.forced_playouts(ROOT_NODE), [False, False, False, True])
    done = dataclasses.replace(ROOT_NODE, visits=jnp.array([70, 20, 8, 0]))
    np.testing.assert_array_equal(gates.forced_playouts(done), [True] * 4)


def test_pruned_visits():
    close(puct.prior_bonus(ROOT_NODE, SCALE(ROOT_NODE)) + ROOT_NODE.q, [0.277465, 0.257143, -0.116667, 0.083333])
    close(pruning.justified_visits(ROOT_NODE, scale=SCALE), [70.0, 17.595238, 1.857317, 0.457090], atol=1e-4)
    close(pruning.pruned_visits(ROOT_NODE, scale=SCALE), [70, 18, 2, 1])
    close(pruning.pruned_forced_visits(ROOT_NODE, scale=SCALE), [70, 18, 3, 0])


def test_the_pruned_target_of_the_paper():
    pruned = pruning.pruned_forced_visits(ROOT_NODE, scale=SCALE)
    close(pruned / jnp.sum(pruned), [0.769231, 0.197802, 0.032967, 0.0])


def test_pruning_keeps_edges_that_beat_the_most_visited():
    node = make_node([0.5, 0.5], [20, 10], [0.1, 0.9])
    close(pruning.pruned_visits(node, scale=SCALE), [20, 10])
    close(pruning.pruned_forced_visits(node, scale=SCALE), [20, 10])


# Final move


@pytest.mark.parametrize(
    ("visits", "q", "mean_square", "wanted"),
    [(20, 0.3, 0.25, 0.3 - 0.447332), (200, 0.25, 0.12, 0.25 - 0.084779), (1, 0.9, 0.81, 0.9 - 2.5)],
)
def test_lower_bounds(visits, q, mean_square, wanted):
    squares = visits * (mean_square - q**2)
    node = make_node([1.0], [visits], [q], rule_state=spread([squares]))
    close(final.lower_bounds(node), [wanted])


def test_student_lower_bounds():
    node = make_node([1.0], [20], [0.6], rule_state=spread([0.04 * 19]))
    close(final.student_quantile(1e-5, jnp.array([19.0])), [5.626766], atol=1e-4)
    close(final.student_lower_bounds(node), [0.348363])


def test_student_quantile_from_tables():
    freedom = jnp.array([1.0, 5.0, 30.0, 1e4])
    close(final.student_quantile(0.025, freedom), [12.7062, 2.5706, 2.0423, 1.9602], atol=2e-3)


def test_a_single_visit_is_no_sample():
    """Two visits at least; where no edge has them, the most visited."""
    node = make_node([0.5, 0.5], [1, 3], [0.9, 0.1], rule_state=spread(jnp.zeros(2)))
    assert int(final.lcb_student(node)) == 1
    node = make_node([0.4, 0.6], [1, 1], [0.9, 0.1], rule_state=spread(jnp.zeros(2)))
    assert int(final.lcb_student(node)) == 0


def test_the_lower_bound_prefers_a_sure_edge_of_enough_visits():
    node = make_node([0.4, 0.4, 0.2], [100, 80, 10], [0.3, 0.4, 0.9], rule_state=spread(jnp.zeros(3)))
    assert [int(rule(node)) for rule in (final.robust, final.lcb, final.lcb_student, final.highest_q)] == [0, 1, 1, 2]


@pytest.mark.parametrize("rule", [final.robust, final.highest_q, final.secure, final.lcb, final.lcb_student])
def test_without_any_visit_the_prior_decides(rule):
    node = make_node([0.2, 0.5, 0.3], [0, 0, 0], [0.0] * 3, rule_state=spread(jnp.zeros(3)))
    assert int(rule(node)) == 1


# Root


def test_alpha_by_actions():
    legal = np.arange(250) < np.array([35, 92, 250])[:, None]
    close(root.alpha_by_actions(legal), [0.285714, 0.108696, 0.04])
    close(root.alpha_by_actions(legal[:1], total=10.83), [0.309429])
    close(root.alpha_by_actions(jnp.ones((1, 362), bool), total=10.83), [0.029917])


def test_noise_is_mixed_among_the_legal():
    """Of a draw over four actions, [0.4, 0.1, 0.3, 0.2], two are legal. Mixed first and masked afterwards, as some
    programs do, the prior would be [0.628571, 0.371429]: an effective share of 0.142857 and not of 0.25."""
    legal = jnp.array([[True, True, False, False]])
    draw = jnp.where(legal, jnp.array([[0.4, 0.1, 0.3, 0.2]]), 0)
    logits = jnp.where(legal, jnp.log(jnp.array([[0.6, 0.4, 1.0, 1.0]])), -jnp.inf)
    noisy = root.mixed_prior_logits(logits, draw / jnp.sum(draw), dirichlet_fraction=0.25)
    close(jnp.exp(noisy), [[0.65, 0.35, 0.0, 0.0]])


def test_shaped_alphas():
    prior = jnp.array([[0.6, 0.39, 0.0085, 0.0010, 0.0005, 0.0]])
    close(root.shaped_alphas(jnp.log(prior)), [[2.982203, 2.982203, 2.699594, 1.083, 1.083, 0.0]], atol=1e-4)
    close(root.shaped_alphas(jnp.log(jnp.array([PRIOR])), total=8.0), [[2.0] * 4])


def test_shaped_dirichlet_has_the_means_of_its_alphas():
    logits = jnp.log(jnp.array([0.6, 0.39, 0.0085, 0.0010, 0.0005, 0.0]))
    keys = jax.random.split(jax.random.key(0), 4000)
    noise = jax.jit(root.shaped_dirichlet)(keys, jnp.broadcast_to(logits, (4000, 6)))
    close(jnp.sum(noise, axis=1), np.ones(4000))
    close(jnp.mean(noise, axis=0), [0.275365, 0.275365, 0.249270, 0.1, 0.1, 0.0], atol=0.01)


@pytest.mark.parametrize(
    ("temperature", "wanted"),
    [(1.25, [0.448034, 0.257328, 0.171005, 0.123633]), (1.359, [0.431263, 0.258961, 0.177824, 0.131952])],
)
def test_tempered_prior(temperature, wanted):
    close(jnp.exp(root.tempered_prior_logits(F1.prior_logits[None], temperature)[0]), wanted)


def test_a_legal_action_stays_legal_however_cold_the_prior_and_far_the_logits():
    evaluation = Evaluation(
        prior_logits=jnp.array([[3e38, -jnp.inf, -3e38]]), value=jnp.zeros(1), legal_action_mask=jnp.ones((1, 3), bool)
    )
    cleaned, flags = clean(evaluation)
    assert jnp.isfinite(cleaned.prior_logits).all() and not flags.any()
    assert jnp.isfinite(root.tempered_prior_logits(cleaned.prior_logits, 0.01)).all()


def test_tempered_prior_leaves_illegal_edges_out():
    tempered = root.tempered_prior_logits(jnp.log(jnp.array([[0.5, 0.5, 0.0]])), 2.0)
    close(jnp.exp(tempered), [[0.5, 0.5, 0.0]])


def test_cooling():
    turns = jnp.array([0, 19, 38, 95])
    close(root.cooling(turns, early=0.75, late=0.15, halflife=19), [0.75, 0.45, 0.3, 0.16875])


# Sampled actions

COUNTS = jnp.array([2, 1, 0, 1])


@pytest.mark.parametrize(
    ("temperature", "wanted"), [(1.0, [0.5, 0.25, 0.0, 0.25]), (2.0, [0.634051, 0.224171, 0.0, 0.141778])]
)
def test_sampled_prior(temperature, wanted):
    logits = jnp.log(jnp.array(PRIOR))
    proposal = jax.nn.log_softmax(logits / temperature)
    corrected = sampled.sampled_prior_logits(logits, proposal, COUNTS)
    close(jnp.exp(corrected), wanted)
    assert corrected[2] == -INF


def test_sample_counts():
    logits = jnp.log(jnp.array([0.5, 0.0, 0.5]))
    draw = jax.jit(jax.vmap(lambda key: sampled.sample_counts(key, logits, 20)))
    counts = draw(jax.random.split(jax.random.key(0), 500))
    assert (counts.sum(axis=1) == 20).all() and (counts[:, 1] == 0).all()
    close(counts.mean(axis=0), [10, 0, 10], atol=0.4)


# All moves as first

AMAF_VISITS, AMAF_Q = jnp.array([40, 30, 25, 20]), jnp.array([0.3, 0.5, 0.1, 0.7])


@pytest.mark.parametrize(
    ("beta", "weights", "mixed"),
    [
        (amaf.beta_by_hand, [0.976831] * 4, [0.302317, 0.502317, 0.086098, 0.683782]),
        (amaf.beta_by_edge, [0.985329, 0.994053, 0.998503, 1.0], None),
        (amaf.beta_by_bias, [0.740741, 0.852273, 0.952381, 1.0], [0.325926, 0.514773, 0.071429, 0.7]),
        (
            partial(amaf.beta_by_bias, bias=1e-5),
            [0.799936, 0.882322, 0.961529, 1.0],
            [0.320006, 0.511768, 0.076918, 0.7],
        ),
    ],
)
def test_all_moves_as_first(beta, weights, mixed):
    close(beta(F1, AMAF_VISITS), weights)
    close(beta(F1, jnp.zeros(4, jnp.int32)), [0.0] * 4)
    if mixed is not None:
        close(amaf.mixed_q(F1, AMAF_VISITS, AMAF_VISITS * AMAF_Q, beta=beta, fpu=qvalue.fpu_zero), mixed)


def test_all_moves_as_first_are_so_many_visits_more():
    """beta is m / (N + m) for the m = n~ / (1 + 4 n~ b^2) that does not depend on N: a mixture is a pseudo-count."""
    close(40 / (1 + 4 * 40 * 0.05**2), 28.571429)
    close(amaf.beta_by_bias(F1, AMAF_VISITS)[0], 28.571429 / (10 + 28.571429))


# Tables of articles and of a course


def test_bonus_by_visits_and_by_prior():
    """P = 0.1, c = 1.5, N(s) = 1600; then for priors of 0.3 to 0.001 without visits."""
    node = make_node([0.1] * 7, [0, 1, 5, 10, 50, 100, 400], [0.0] * 7)
    node = dataclasses.replace(node, total_visits=jnp.int32(1600))
    close(puct.exploration_bonus(node, 1.5), [6, 3, 1, 0.545455, 0.117647, 0.059406, 0.014963])
    node = dataclasses.replace(
        make_node([0.3, 0.1, 0.03, 0.01, 0.001], [0] * 5, [0.0] * 5), total_visits=node.total_visits
    )
    close(puct.exploration_bonus(node, 1.5), [18, 6, 1.8, 0.6, 0.06])


def test_ucb1_against_puct():
    """N = 1000, n = 10: the article leaves out P, which would make its second number ten times less at P = 0.1."""
    node = dataclasses.replace(make_node([1.0], [10], [0.0]), total_visits=jnp.int32(1000))
    close(uct.uct_scores(node, c=1.0), [0.831129])
    close(puct.exploration_bonus(node, 1.0), [2.874798])


@pytest.mark.parametrize(
    ("c_init", "wanted"),
    [(1.5, [1.500051, 1.539950, 1.578319, 3.306417]), (1.25, [1.250051, 1.289950, 1.328319, 3.056417])],
)
def test_dynamic_c_puct_by_visits(c_init, wanted):
    for total_visits, c in zip([0, 800, 1600, 100_000], wanted):
        node = dataclasses.replace(F1, total_visits=jnp.int32(total_visits))
        close(puct.alphazero_c(node, c_init, 19652.0), c)


@pytest.mark.parametrize(
    ("c", "wanted"),
    [
        (1.41, [1.178423, 0.940027, 1.165162]),
        (5.0, [2.396535, 2.242244, 2.705966]),
        (2**0.5, [1.179853, 0.941555, 1.166971]),
    ],
)
def test_a_course_s_tree_by_c(c, wanted):
    """100 visits; wins and visits 28 of 40, 15 of 35, 14 of 25."""
    node = make_node([1 / 3] * 3, [40, 35, 25], [28 / 40, 15 / 35, 14 / 25])
    close(uct.uct_scores(node, c=c, offset=0.0), wanted)


@pytest.mark.parametrize(
    ("total", "visits", "wins", "wanted"),
    [
        (101, [41, 35, 25], [29, 15, 14], [1.180380, 0.940579, 1.165816]),
        (41, [18, 21], [10, 16], [1.195996, 1.354837]),
    ],
)
def test_a_course_s_tree_after_iteration_101(total, visits, wins, wanted):
    """Its counts do not add up (18 + 21 visits below a node of 41), so n is given and not summed."""
    node = make_node([1 / len(visits)] * len(visits), visits, np.divide(wins, visits))
    close(uct.uct_scores(dataclasses.replace(node, total_visits=jnp.int32(total)), c=1.41), wanted)


# Backups

F2_Q, F2_VISITS = jnp.array([0.7, 0.8, 0.25, 0.0]), jnp.array([10, 4, 1, 0])


@pytest.mark.parametrize(("power", "wanted"), [(1, 0.696667), (2, 0.708167), (8, 0.732820), (100, 0.789496)])
def test_power_mean(power, wanted):
    close(backup.power_mean(F2_Q, F2_VISITS, jnp.sum(F2_VISITS), power), wanted)


def test_mean_and_highest_value():
    close(backup.mean_value(F2_Q, F2_VISITS, jnp.sum(F2_VISITS)), 0.696667)
    close(backup.highest_value(F2_Q, F2_VISITS), 0.8)
    close(
        (backup.mean_value(F2_Q, F2_VISITS, jnp.sum(F2_VISITS)) + backup.highest_value(F2_Q, F2_VISITS)) / 2, 0.748333
    )


def test_power_mean_of_losses_is_finite():
    close(backup.power_mean(jnp.zeros(3), jnp.array([1, 2, 0]), 3, 100.0), 0.0)
