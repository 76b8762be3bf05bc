"""Every rule against numbers worked out by hand on one node, F1: four legal edges, values on [-1, 1].

The numbers are from float64 arithmetic, printed to six digits; float32 must match to 1e-5.
"""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmcts
from jaxmcts import halving, qvalue, readout
from jaxmcts.qvalue import by_siblings
from jaxmcts.rules import gumbel, pick, puct, uct
from jaxmcts.tree import Node, legal_log_softmax
from tests import worlds
from tests.jaxmcts.nodes import F1, FRESH, PRIOR, close, make_node
from tests.jaxmcts.searching import QUICK_TO_COMPILE

PLAIN_C = {"c_init": 1.25, "c_base": 1e30}  # C(s) = 1.25: the logarithm vanishes


# PUCT


def puct_on_raw_q(node: Node, c: float, fpu: qvalue.Fpu) -> jax.Array:
    """Q + U with Q on [-1, 1], a user's own rule made of the library's parts."""
    return qvalue.complete(node, fpu(node)) + puct.exploration_bonus(node, c)


def test_exploration_bonus_at_a_new_node_follows_the_prior():
    close(puct.exploration_bonus(FRESH, 1.25), [0.625, 0.3125, 0.1875, 0.125])


def test_puct_on_raw_q_with_constant_c():
    close(puct_on_raw_q(F1, 1.25, qvalue.fpu_zero), [0.627273, 0.85, -0.125, 0.5])


def test_alphazero_constant_grows_with_visits():
    wanted = {0: 1.250051, 1: 1.250102, 100: 1.255126, 800: 1.289950, 10_000: 1.661384, 100_000: 3.056417}
    for total_visits, c in wanted.items():
        node = dataclasses.replace(F1, total_visits=jnp.int32(total_visits))
        close(puct.alphazero_c(node, 1.25, 19652.0), c, atol=1e-6)


@pytest.mark.parametrize(
    ("fpu", "wanted"),
    [
        (qvalue.fpu_zero, [0.627430, 0.850173, -0.124741, 0.500346]),
        (qvalue.fpu_lose, [0.627430, 0.850173, -0.124741, -0.499654]),
    ],
)
def test_growing_constant_on_raw_q(fpu, wanted):
    close(puct_on_raw_q(F1, puct.alphazero_c(F1, 1.25, 19652.0), fpu), wanted)


def test_alphazero_scores_map_values_to_the_unit_interval():
    close(puct.alphazero_scores(F1), [0.927430, 1.050173, 0.625259, 0.500346])


def test_alphazero_scores_equal_twice_the_constant_on_raw_values():
    """(Q on [-1, 1], 2C) scores 2x - 1 of (Q on [0, 1], C): the identity that decides every constant."""
    twin = puct_on_raw_q(F1, 2 * puct.alphazero_c(F1, 1.25, 19652.0), qvalue.fpu_lose)
    close(twin, [0.854860, 1.100346, 0.250519, 0.000692])
    close(twin, 2 * puct.alphazero_scores(F1) - 1)


@pytest.mark.parametrize(
    ("fpu", "wanted"),
    [
        (qvalue.fpu_lose, -1.0),
        (qvalue.fpu_zero, 0.0),
        (qvalue.fpu_win, 1.0),
        (partial(qvalue.fpu_constant, value=0.7), 0.7),
        (qvalue.fpu_parent, 0.381250),
        (partial(qvalue.fpu_reduction, k=0.2), 0.191513),
        (partial(qvalue.fpu_reduction, k=0.25), 0.144079),
        (partial(qvalue.fpu_reduction, k=0.33), 0.068185),
    ],
)
def test_first_play_urgency(fpu, wanted):
    """FPU is in raw units; it fills unvisited edges only, and the map to [0, 1] comes afterwards."""
    close(fpu(F1), wanted)
    close(qvalue.complete(F1, fpu(F1)), [0.4, 0.6, -0.5, wanted])
    bonus = puct.exploration_bonus(F1, 1.25)
    close(puct.alphazero_scores(F1, fpu=fpu, **PLAIN_C)[3] - bonus[3], (wanted + 1) / 2)


def test_reduction_is_finite_where_nothing_is_visited():
    close(qvalue.fpu_reduction(FRESH, k=0.2), 0.2)


def test_reduction_counts_visited_mass_only():
    node = dataclasses.replace(F1, visits=jnp.array([0, 4, 0, 1]))
    close(qvalue.fpu_reduction(node, k=1.0), 0.38125 - math.sqrt(0.35))


def test_an_illegal_edge_is_not_selected_though_it_scores_best():
    """One legal edge of score -0.38 against an illegal edge of score 0: a prior of 0 alone is no mask."""
    node = make_node([1.0, 0.0], [100, 0], [-0.5, 0.0], legal=[True, False])
    scores = puct_on_raw_q(node, 1.25, qvalue.fpu_zero)
    close(scores, [-0.376238 - 0.0, 0.0], atol=1e-3)
    assert int(jnp.argmax(scores)) == 1
    assert int(pick(scores, node.prior, node.legal_action_mask)) == 0
    assert int(puct.alphazero(node, fpu=qvalue.fpu_win)) == 0


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (puct.alphazero, 1),
        (partial(puct.alphazero, c_init=0.0), 1),
        (partial(puct.alphazero, fpu=qvalue.fpu_win), 3),
        (uct.uct, 3),
        (gumbel.gumbel_interior, 1),
    ],
)
def test_selection_on_f1(rule, wanted):
    assert int(rule(F1)) == wanted


# UCT


def test_uct_scores():
    close(uct.uct_scores(F1)[:3], [1.144659, 1.777410, 1.854820])
    assert uct.uct_scores(F1)[3] == jnp.inf


def test_uct_in_the_form_of_browne():
    """Cp = 1 / sqrt 2 in the form Cp sqrt(2 ln n / N) is c = 1."""
    close(uct.uct_scores(F1, c=1.0)[:3], [0.926554, 1.432555, 1.165109])


@pytest.mark.parametrize(
    ("total_visits", "visits", "wins", "wanted"),
    [
        (100, [40, 35, 25], [28, 15, 14], [1.178423, 0.940027, 1.165162]),
        (40, [18, 20], [10, 15], [1.193863, 1.355552]),
    ],
)
def test_uct_on_a_course_example(total_visits, visits, wins, wanted):
    node = make_node([1 / len(visits)] * len(visits), visits, np.divide(wins, visits))
    node = dataclasses.replace(node, total_visits=jnp.int32(total_visits))
    close(uct.uct_scores(node, c=1.41), wanted)


def test_uct_takes_unvisited_edges_by_prior_then_by_index():
    node = make_node([0.1, 0.2, 0.35, 0.35], [1, 0, 0, 0], [1.0, 0, 0, 0])
    assert int(uct.uct(node)) == 2


# Gumbel


def test_mixed_value():
    close(qvalue.mixed_value(F1), 0.298958)
    close(qvalue.mixed_value(FRESH), 0.2)


def test_mixed_value_of_an_edge_whose_prior_is_zero():
    node = make_node([0.0, 1.0], [3, 0], [0.5, 0.0], raw_value=0.1)
    close(qvalue.mixed_value(node), (0.1 + 3 * 0.5) / 4)


def test_completed_q():
    close(qvalue.completed_q(F1), [0.4, 0.6, -0.5, 0.298958])


def test_rescaled_q():
    close(qvalue.rescale(qvalue.completed_q(F1)), [0.818182, 1.0, 0.0, 0.726326])


def test_rescale_survives_equal_values():
    close(qvalue.rescale(jnp.array([0.4, 0.4])), [0.0, 0.0])


GO_STYLE = {"c_scale": 1.0, "rescale_q": False}


def test_sigma():
    close(gumbel.sigma(F1), [4.909091, 6.0, 0.0, 4.357955])
    close(gumbel.sigma(F1, **GO_STYLE), [24.0, 36.0, -30.0, 17.9375], atol=1e-4)


def test_improved_policy():
    close(gumbel.improved_policy(F1), [0.383735, 0.571186, 0.000849, 0.044229])
    close(gumbel.improved_policy(F1, **GO_STYLE), [0.000012, 0.999988, 0.0, 0.0])


def test_improved_policy_leaves_illegal_edges_out():
    illegal_best = make_node([0.5, 0.5, 0.0], [2, 1, 0], [0.1, 0.2, 0.0], legal=[True, True, False])
    policy = gumbel.improved_policy(illegal_best)
    assert policy[2] == 0
    close(jnp.sum(policy), 1.0)


def test_interior_scores():
    close(gumbel.interior_scores(F1), [-0.241265, 0.321186, -0.061651, 0.044229])


GUMBEL = jnp.array([0.2, -0.1, 0.6, 1.5])


def test_root_scores():
    """Shifting all logits by their maximum shifts all scores alike."""
    scores = gumbel.root_scores(F1, gumbel=GUMBEL)
    close(scores - jnp.max(F1.prior_logits), [5.109091, 5.206853, -0.603973, 4.248517])


def first_actions(num_considered: int, num_simulations: int, gumbel_draw: jax.Array) -> list[int]:
    """The root's choices while nothing but the visit counts changes (every q stays what v is)."""
    visits = np.zeros(4, dtype=int)
    due = jnp.asarray(halving.considered_visits(num_considered, num_simulations), jnp.int32)
    actions = []
    for _ in range(num_simulations):
        node = make_node(PRIOR, visits, np.where(visits > 0, 0.2, 0.0), value=0.2, raw_value=0.2)
        actions.append(int(gumbel.gumbel_root(node, gumbel=gumbel_draw, considered_visits=due)))
        visits[actions[-1]] += 1
    return actions


def test_root_candidates_are_the_top_of_gumbel_plus_logits():
    """gumbel + logits = [-0.493, -1.486, -1.297, -0.803]: with two candidates a0 and a3."""
    assert first_actions(2, 4, GUMBEL) == [0, 3, 0, 3]


def test_root_visits_follow_sequential_halving():
    actions = first_actions(4, 8, GUMBEL)
    assert actions == [0, 3, 2, 1, 0, 3, 0, 3]
    assert sorted(np.bincount(actions), reverse=True) == [3, 3, 1, 1]


def test_the_action_is_the_best_among_the_most_visited():
    node = dataclasses.replace(F1, visits=jnp.array([10, 10, 1, 0]))
    assert int(gumbel.gumbel_action(node, gumbel=GUMBEL)) == 1
    assert int(gumbel.gumbel_action(F1, gumbel=GUMBEL)) == 0


# Sequential halving


@pytest.mark.parametrize(
    ("num_considered", "num_simulations", "wanted"),
    [
        (4, 8, [0, 0, 0, 0, 1, 1, 2, 2]),
        (4, 16, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        (8, 16, [0] * 8 + [1, 1, 1, 1, 2, 2, 3, 3]),
        (3, 8, [0, 0, 0, 1, 1, 2, 2, 3]),
        (2, 8, [0, 0, 1, 1, 2, 2, 3, 3]),
        (16, 16, [0] * 16),
        (16, 5, [0] * 5),
        (1, 4, [0, 1, 2, 3]),
        (0, 4, [0, 1, 2, 3]),
        (4, 0, []),
    ],
)
def test_considered_visits(num_considered, num_simulations, wanted):
    assert list(halving.considered_visits(num_considered, num_simulations)) == wanted


@pytest.mark.parametrize(
    ("num_considered", "num_simulations", "wanted"),
    [
        (4, 8, [3, 3, 1, 1]),
        (4, 16, [6, 6, 2, 2]),
        (3, 8, [4, 3, 1]),
        (16, 32, [4] * 4 + [2] * 4 + [1] * 8),
        (16, 50, [12] * 2 + [5] * 2 + [2] * 4 + [1] * 8),
        (16, 200, [49] * 2 + [21] * 2 + [9] * 4 + [3] * 8),
    ],
)
def test_visits_by_final_rank(num_considered, num_simulations, wanted):
    """If the order of the candidates never changes, each due visit goes to the first with that count."""
    visits = [0] * num_considered
    for due in halving.considered_visits(num_considered, num_simulations):
        visits[visits.index(due)] += 1
    assert visits == wanted


def test_table_has_a_row_for_every_number_of_candidates():
    table = halving.considered_visits_table(5, 12)
    assert table.shape == (6, 12)
    for m in range(6):
        assert tuple(table[m]) == halving.considered_visits(m, 12)


# Ties


@pytest.mark.parametrize("size", [1.0, 1000.0, 1e9])
def test_ties_go_to_the_higher_prior_then_to_the_lower_index(size):
    """Also for scores so large that an added noise of 1e-7 would be lost."""
    scores = jnp.array([0.5, 1.0, 1.0, 1.0]) * size
    everything = jnp.ones(4, dtype=bool)
    assert int(pick(scores, jnp.array([0.7, 0.1, 0.1, 0.1]), everything)) == 1
    assert int(pick(scores, jnp.array([0.6, 0.1, 0.1, 0.2]), everything)) == 3
    assert int(pick(scores, jnp.array([0.6, 0.1, 0.1, 0.2]), jnp.array([True, True, True, False]))) == 1


def test_pick_of_strange_scores():
    everything, prior = jnp.ones(3, dtype=bool), jnp.array([0.2, 0.3, 0.5])
    assert int(pick(jnp.array([jnp.nan, 0.1, 0.0]), prior, everything)) == 1
    assert int(pick(jnp.array([-jnp.inf, -jnp.inf, 0.0]), prior, jnp.array([True, True, False]))) == 1
    assert int(pick(jnp.array([jnp.inf, 0.0, 0.0]), prior, everything)) == 0
    assert int(pick(jnp.array([1.0, 0.0, 0.0]), prior, jnp.zeros(3, dtype=bool))) == 0


@pytest.mark.parametrize("lowest", [jnp.nan, -jnp.inf])
def test_pick_is_allowed_whatever_the_numbers_are(lowest):
    allowed = jnp.array([False, True, True])
    for prior in ([jnp.nan] * 3, [0.1, jnp.nan, 0.2], [0.1, 0.2, jnp.nan]):
        assert int(pick(jnp.array([5.0, lowest, lowest]), jnp.array(prior), allowed)) in (1, 2)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int32])
def test_pick_takes_scores_of_any_dtype(dtype):
    num_actions = 600  # whole numbers up to it are not exact in bfloat16
    for action in (0, 299, 599):
        scores = jnp.zeros(num_actions, dtype).at[action].set(1)
        assert int(pick(scores, jnp.zeros(num_actions, dtype), jnp.ones(num_actions, bool))) == action
    assert int(pick([0, 2, 1], [1, 1, 1], [True, False, True])) == 2


def test_pick_where_the_compiler_rounds_a_score_twice():
    """The product that `by_siblings` ends in is fused with the addition for the maximum, but not for the
    comparison with it: no score equals the maximum then."""
    prior = [0.23960675, 0.06610589, 0.15094788, 0.30300745, 0.10617332, 0.1341587]

    @partial(jax.jit, compiler_options=QUICK_TO_COMPILE)
    def choose(node):
        scores = by_siblings(node) + puct.exploration_bonus(node, 1.25)
        return pick(scores, node.prior, node.legal_action_mask)

    for value in np.linspace(0.1, 0.2, 100):
        node = make_node(prior, [0, 0, 0, 4, 0, 0], [0.0, 0.0, 0.0, 0.33785066, 0.0, 0.0], value=value)
        assert int(choose(node)) == 3


# Logits and masks


def test_softmax_is_over_the_legal_only():
    logits = legal_log_softmax(jnp.array([-3.0, -2.0, -1.0]), jnp.array([True, True, False]))
    close(jnp.exp(logits), [0.268941, 0.731059, 0.0])
    assert logits[2] == -jnp.inf


def test_softmax_of_a_row_without_legal_actions_is_all_minus_infinity():
    assert jnp.all(legal_log_softmax(jnp.array([1.0, 2.0]), jnp.zeros(2, dtype=bool)) == -jnp.inf)


# The move to play


@pytest.mark.parametrize(
    ("temperature", "wanted"),
    [
        (1.0, [0.7, 0.2, 0.1]),
        (0.5, [0.907407, 0.074074, 0.018519]),
        (2.0, [0.522879, 0.279491, 0.197630]),
        (0.25, [0.992969, 0.006617, 0.000414]),
    ],
)
def test_temperature(temperature, wanted):
    """pi is proportional to N^(1/T), N = [70, 20, 10]."""
    logits = readout.tempered_logits(jnp.array([[0.7, 0.2, 0.1]]), temperature)
    close(jax.nn.softmax(logits)[0], wanted)


@pytest.mark.parametrize(
    ("visits", "q", "prior", "wanted"),
    [
        ([3, 5, 4], [0.9, 0.1, 0.8], [0.5, 0.2, 0.3], 1),  # the most visits
        ([5, 5, 4], [0.1, 0.2, 0.8], [0.5, 0.2, 0.3], 1),  # then the best q
        ([5, 5, 5], [0.1, 0.1, 0.1], [0.3, 0.2, 0.5], 2),  # then the highest prior
        ([5, 5, 5], [0.1, 0.1, 0.1], [0.3, 0.4, 0.4], 1),  # then the lowest index
        ([0, 0, 0], [0.0, 0.0, 0.0], [0.3, 0.2, 0.5], 2),  # nothing visited: the prior
    ],
)
def test_most_visited(visits, q, prior, wanted):
    evaluation = jaxmcts.Evaluation(
        prior_logits=jnp.log(jnp.array([prior])), value=jnp.zeros(1), legal_action_mask=jnp.ones((1, 3), bool)
    )
    state, key = jnp.zeros((1, 1)), jax.random.key(0)
    tree = jaxmcts.init((), key, state, worlds.MODEL, capacity=1, root_evaluation=evaluation)
    tree = dataclasses.replace(tree, visits=jnp.array([[visits]]), q=jnp.array([[q]]))
    assert int(jaxmcts.most_visited(tree)[0]) == wanted
