"""Inputs that broke other people's searches, one test each, named by their number in our list of public reports.

Rows of that list about games, training, tree reuse and tree-wide normalising belong to other tests.
Two players unless said otherwise; a move without `to` ends the game.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from jaxmcts import readout, root
from jaxmcts.tree import Flags
from tests import oracles, worlds
from tests.jaxmcts import trees
from tests.jaxmcts.searching import (
    QUICK_TO_COMPILE,
    RAW_PUCT,
    compiled,
    params_of,
    plain_alphazero,
    raw_puct,
    same_rule,
    search_worlds,
)
from tests.worlds import Move, Position, tic_tac_toe, world_of

SIZE = {"num_actions": 9, "num_states": 256}  # of almost every world here, so that compiled searches are shared
PLAYED_ON = Position(moves={0: Move()})  # a state from which one move draws


def gumbel_without_noise(*args: Any, **arguments: Any) -> jaxmcts.PolicyOutput:
    return jaxmcts.gumbel_policy(*args, gumbel_scale=0.0, **arguments)


POLICIES = {"alphazero": plain_alphazero, "gumbel": gumbel_without_noise, "uct": jaxmcts.uct_policy}
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def search(policy: Any, *positions: Position, num_simulations: int, **arguments: Any) -> jaxmcts.PolicyOutput:
    """Search some positions, a row each, and check the trees' invariants.

    Always three rows, the last position filling up, so that tests share compiled searches.
    """
    drawn = [world_of(position, **SIZE) for position in positions]
    drawn += drawn[-1:] * (3 - len(drawn))
    out = search_worlds(policy, drawn, num_simulations=num_simulations, **arguments)
    jaxmcts.validate(out.tree)
    return out


def search_by(rule: Any, position: Position, *, num_simulations: int, **size: int) -> jaxmcts.Tree:
    """Search one position by a rule of one's own."""
    run = functools.partial(jaxmcts.search, model=worlds.MODEL, num_simulations=num_simulations, **same_rule(rule))
    params = params_of(world_of(position, **size))
    return quickly(run)(params, jax.random.key(0), worlds.roots(1))


def quickly(fn: Any) -> Any:
    return jax.jit(fn, compiler_options=QUICK_TO_COMPILE)


def root_visits(out: jaxmcts.PolicyOutput | jaxmcts.Tree, row: int = 0) -> list[int]:
    tree = out if isinstance(out, jaxmcts.Tree) else out.tree
    return np.asarray(tree.visits[row, 0]).tolist()


def root_q(out: jaxmcts.PolicyOutput | jaxmcts.Tree, row: int = 0) -> list[float]:
    tree = out if isinstance(out, jaxmcts.Tree) else out.tree
    return np.asarray(tree.q[row, 0]).tolist()


def records(out: jaxmcts.PolicyOutput, row: int = 0) -> dict[tuple[int, ...], oracles.Record]:
    return trees.by_path(trees.host(out.tree), row)


def all_numbers(out: Any) -> list[np.ndarray]:
    """Every floating-point leaf of a result, priors' logits left out: they are -inf where illegal."""
    out = dataclasses.replace(out, tree=dataclasses.replace(out.tree, prior_logits=jnp.zeros(()), keys=jnp.zeros(())))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(out) if jnp.issubdtype(leaf.dtype, jnp.floating)]


# A. Terminal states, signs, rewards


@every_policy
def test_c001_terminal_value_is_not_counted(policy):
    wrong = Position(value=-1.0)  # the network's word on a finished game
    position = Position(
        value=-1.0,
        moves={0: Move(reward=0, to=wrong, discount=0.0), 1: Move(reward=1, to=wrong, discount=0.0)},
    )
    out = search(policy, position, num_simulations=16)
    assert root_q(out)[:2] == [0.0, 1.0]
    assert int(out.action[0]) == 1


@every_policy
def test_c002_the_opponent_does_not_help(policy):
    may_win = Position(moves={0: Move(reward=1), 1: Move()})
    draws = Position(moves={0: Move(), 1: Move()})
    position = Position(moves={0: Move(to=may_win), 1: Move(to=draws)})
    few, many = (search(policy, position, num_simulations=n) for n in (16, 64))
    assert int(many.action[0]) == 1
    assert root_q(many)[1] == 0
    assert -1 <= root_q(many)[0] < -0.7
    assert root_q(few)[0] < 0


@every_policy
def test_c003_the_same_player_moves_twice(policy):
    wins = Position(moves={0: Move(reward=1)})
    position = Position(moves={0: Move(to=wins, discount=1.0), 1: Move()})
    out = search(policy, position, num_simulations=16)
    assert int(out.action[0]) == 0
    assert root_q(out)[0] > 0.8


def test_c005_a_leaf_value_is_the_movers_at_the_leaf():
    position = Position(moves={0: Move(to=Position(value=1.0, moves={0: Move()}))})
    out = search(plain_alphazero, position, num_simulations=1)
    assert root_q(out)[0] == -1.0


def test_c006_discounts_are_applied_from_the_leaf_up():
    third = Position(value=8.0, moves={0: Move()})
    second = Position(moves={0: Move(reward=4, to=third, discount=0.5)})
    first = Position(moves={0: Move(reward=2, to=second, discount=0.5)})
    position = Position(moves={0: Move(reward=1, to=first, discount=0.5)})
    nodes = records(search(plain_alphazero, position, num_simulations=3))
    assert nodes[()].q[0] == pytest.approx(7 / 3)
    assert nodes[(0,)].q[0] == pytest.approx(4)
    assert nodes[(0, 0)].q[0] == pytest.approx(8)


@every_policy
def test_c008_a_finished_root_in_the_batch(policy):
    live, finished = tic_tac_toe("XX.OO...."), Position(value=0.0)
    both = search(policy, live, finished, live, num_simulations=8)
    alone = search(policy, live, num_simulations=8)
    trees.assert_same_tree(records(both), records(alone), atol=1e-6)
    assert int(both.action[0]) == int(alone.action[0])
    np.testing.assert_array_equal(both.flags, [0, Flags.FINISHED, 0])
    assert int(both.action[1]) == 0
    assert float(both.value[1]) == 0
    assert root_visits(both, 1) == [0] * 9
    assert not np.asarray(both.action_weights[1]).any()
    assert all(np.isfinite(numbers).all() for numbers in all_numbers(both))


def test_c010_nothing_grows_below_a_finished_state():
    board = tic_tac_toe("XOXXOO.XO")
    (cell,) = board.moves
    for opinion in (0.0, 0.9):
        over = Move(to=Position(value=opinion), discount=0.0)
        out = search(plain_alphazero, Position(moves={cell: over}), num_simulations=32)
        assert root_visits(out)[cell] == 32
        assert root_q(out)[cell] == 0
        assert len(records(out)) == 2
        assert np.count_nonzero(out.tree.total_visits[0]) == 2


@every_policy
def test_c012_a_win_in_one(policy):
    world = world_of(tic_tac_toe("XX.OO...."), **SIZE)
    assert [oracles.minimax_q(world, 0, cell) for cell in (2, 5, 6, 7, 8)] == [1, 0, -1, -1, -1]
    out = search(policy, tic_tac_toe("XX.OO...."), num_simulations=50)
    assert int(out.action[0]) == 2
    assert root_q(out)[2] == 1.0


def play_on(board: str) -> str:
    """Play both sides by search to the end of the game; returns the final board."""
    while moves := tic_tac_toe(board).moves:
        out = search(plain_alphazero, tic_tac_toe(board), num_simulations=200)
        cell = int(out.action[0])
        board = board[:cell] + "XO"[board.count("X") - board.count("O")] + board[cell + 1 :]
        if moves[cell].to is None:
            return board
    return board


def test_c013_a_win_later_is_a_win():
    board = "XX.O..O.."
    world = world_of(tic_tac_toe(board), **SIZE)
    assert {cell: oracles.minimax_q(world, 0, cell) for cell in (2, 4, 5, 7, 8)} == dict.fromkeys((2, 4, 5, 7, 8), 1)
    out = search(plain_alphazero, tic_tac_toe(board), num_simulations=200)
    assert root_q(out)[int(out.action[0])] > 0.8
    final = play_on(board)
    assert any(all(final[cell] == "X" for cell in line) for line in worlds.LINES)
    assert final.count("X") + final.count("O") - 4 <= 5


def test_c013_with_a_discount_sooner_is_better():
    out = search(plain_alphazero, tic_tac_toe("XX.O..O..", gamma=0.99), num_simulations=200)
    assert int(out.action[0]) == 2
    assert root_q(out)[2] == 1.0
    assert max(np.delete(root_q(out), 2)) < 1.0


def test_c015_counts_agree_at_the_root_and_inside():
    reply = Position(moves={a: Move(to=PLAYED_ON) for a in range(3)})
    position = Position(moves={a: Move(to=reply) for a in range(3)})
    out = search(plain_alphazero, position, num_simulations=10)
    assert sum(root_visits(out)) == 10
    nodes = records(out)
    assert nodes[()].total_visits == 11
    inside = {path: node for path, node in nodes.items() if path and any(node.visits)}
    assert len(inside) >= 3
    for path, node in inside.items():
        assert node.total_visits == 1 + sum(node.visits)
        assert nodes[path[:-1]].visits[path[-1]] == node.total_visits


def test_c016_the_first_visit_follows_the_prior():
    position = Position(prior=(0.1, 0.2, 0.7), moves={a: Move(to=PLAYED_ON) for a in range(3)})
    out = search(plain_alphazero, position, num_simulations=1)
    assert root_visits(out)[:3] == [0, 0, 1]


LOST = Position(
    value=-0.9,
    prior=[0.39, 0.17] + [0.0092] * 48,
    moves={a: Move(reward=reward) for a, reward in enumerate([-0.96, -0.60] + [-1.0] * 48)},
)


@pytest.mark.parametrize(("fpu", "first_two", "others"), [(0.0, [11, 41], 1), (-0.9, [12, 88], 0)])
def test_c017_first_play_urgency_in_a_lost_position(fpu, first_two, others):
    rule = Partial(raw_puct, c=1.25, fpu=Partial(jaxmcts.fpu_constant, value=fpu))
    tree = search_by(rule, LOST, num_simulations=100, num_actions=50, num_states=64)
    visits = root_visits(tree)
    assert visits[:2] == first_two
    assert visits[2:] == [others] * 48
    assert int(jaxmcts.most_visited(tree)[0]) == 1


def test_c017_the_default_does_not_widen_in_a_lost_position():
    """`fpu_lose`: none of the 48 hopeless moves is tried."""
    tree = search_by(Partial(jaxmcts.rules.puct.alphazero), LOST, num_simulations=100, num_actions=50, num_states=64)
    assert root_visits(tree)[:2] == [23, 77]


def test_c018_the_edge_reward_counts_once():
    """One player; the next states are cut off, so their values stay as they are and count through the discount."""
    moves = {
        0: Move(reward=1.0, to=Position(value=0.0), discount=0.9),
        1: Move(reward=0.0, to=Position(value=1.0), discount=0.9),
    }
    out = search(plain_alphazero, Position(moves=moves), num_simulations=40)
    np.testing.assert_allclose(root_q(out)[:2], [1.0, 0.9], atol=1e-6)
    assert root_visits(out)[0] > root_visits(out)[1] > 0


# B. Illegal actions, masks, bad network output


def many_rows(policy: Any, position: Position, batch_size: int, **arguments: Any) -> jaxmcts.PolicyOutput:
    """Search one position on many rows, each with its own key."""
    state = jnp.zeros((batch_size, 2), jnp.int32)
    return compiled(policy, **arguments)(params_of(world_of(position, **SIZE)), jax.random.key(0), state)


@pytest.mark.parametrize("policy", [jaxmcts.alphazero_policy, jaxmcts.gumbel_policy], ids=["alphazero", "gumbel"])
def test_c022_illegal_actions_get_no_visits(policy):
    position = Position(logits=(-0.9, 5, 5, 5, -0.6), moves={0: Move(to=PLAYED_ON), 4: Move(to=PLAYED_ON)})
    out = many_rows(policy, position, 256, num_simulations=99)
    illegal = np.array([1, 2, 3, 5, 6, 7, 8])
    assert not np.asarray(out.tree.visits[:, 0])[:, illegal].any()
    assert not np.asarray(out.action_weights)[:, illegal].any()
    np.testing.assert_allclose(np.sum(out.action_weights, axis=1), 1, atol=1e-6)
    assert set(np.asarray(out.action).tolist()) <= {0, 4}


def prior_of(logits: Any, legal: Any, dtype: Any = jnp.float32) -> np.ndarray:
    """The prior that a root gets from these logits and this mask."""
    evaluation = jaxmcts.Evaluation(
        prior_logits=jnp.asarray([logits], dtype),
        value=jnp.zeros(1, dtype),
        legal_action_mask=jnp.asarray([legal], bool),
    )
    tree = jaxmcts.init((), jax.random.key(0), worlds.roots(1), worlds.MODEL, capacity=2, root_evaluation=evaluation)
    return np.asarray(jaxmcts.summary(tree).prior[0])


def test_c024_masking_is_not_multiplying():
    np.testing.assert_allclose(prior_of((-3, -2, -1), (1, 1, 0)), [0.2689, 0.7311, 0], atol=1e-4)


def test_c025_the_mask_comes_before_the_softmax():
    np.testing.assert_array_equal(prior_of((100, -100, -100), (0, 1, 1)), [0, 0.5, 0.5])


@every_policy
def test_c026_illegal_actions_inside_the_tree(policy):
    forced = Position(logits=(10, 0, 0, 0, 0), moves={3: Move(to=PLAYED_ON)})
    position = Position(moves={a: Move(to=forced) for a in range(5)})
    out = search(policy, position, num_simulations=50)
    inside = [node for path, node in records(out).items() if len(path) == 1]
    assert len(inside) > 1
    assert sum(node.visits[3] for node in inside) > 20
    assert all(sum(node.visits) == node.visits[3] for node in inside)


def node_by_hand(legal: list[bool], visits: list[int]) -> jaxmcts.Node:
    mask, counts = jnp.array(legal), jnp.array(visits)
    prior = mask / jnp.maximum(mask.sum(), 1)
    return jaxmcts.Node(
        prior=prior,
        prior_logits=jnp.where(mask, jnp.log(jnp.where(mask, prior, 1)), -jnp.inf),
        visits=counts,
        q=jnp.where(counts > 0, 0.5, 0.0),
        legal_action_mask=mask,
        total_visits=1 + counts.sum(),
        value=jnp.float32(0.3),
        raw_value=jnp.float32(0.3),
        depth=jnp.int32(0),
    )


NODES = {
    "no visits": node_by_hand([True, True, True], [0, 0, 0]),
    "one legal action": node_by_hand([False, True, False], [0, 3, 0]),
    "one legal action, no visits": node_by_hand([False, True, False], [0, 0, 0]),
    "finished": node_by_hand([False, False, False], [0, 0, 0]),
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_c029_no_rule_makes_a_nan_on_the_way(node):
    """Operation by operation under NaN checking, so that a NaN thrown away later is found too."""
    rules = jaxmcts.rules
    with jax.debug_nans(True):
        fresh = dataclasses.replace(node, visits=node.visits * 0, total_visits=jnp.int32(1))
        assert float(jaxmcts.qvalue.mixed_value(fresh)) == np.float32(0.3)
        for rule in (rules.puct.alphazero, rules.uct.uct, rules.gumbel.gumbel_interior):
            assert node.legal_action_mask[rule(node)] or not node.legal_action_mask.any()
        for fpu in (jaxmcts.fpu_parent, jaxmcts.fpu_reduction, jaxmcts.fpu_lose):
            rules.puct.alphazero(node, fpu=fpu)
        draw = {"gumbel": jnp.zeros(3)}
        rules.gumbel.gumbel_root(node, considered_visits=jnp.arange(4), **draw)
        rules.gumbel.gumbel_action(node, **draw)
        rules.gumbel.improved_policy(node)


@every_policy
def test_c029_no_nan_in_a_search(policy):
    forced = Position(moves={0: Move(to=Position(moves={a: Move(to=PLAYED_ON) for a in range(3)}))})
    with jax.debug_nans(True):
        out = search(policy, forced, Position(), num_simulations=8)
    assert root_visits(out)[0] == 8
    assert all(np.isfinite(numbers).all() for numbers in all_numbers(out))


def three_rows(policy: Any, spoil: dict[str, float], states: list[int], num_simulations: int) -> jaxmcts.PolicyOutput:
    """Search three copies of one world; in the middle one `spoil` is written into the tables at `states`."""
    params = params_of(*[world_of(tic_tac_toe("XO.X.O..."), **SIZE)] * 3)
    at = jnp.asarray(states)
    params = {name: table.at[1, at].set(spoil[name]) if name in spoil else table for name, table in params.items()}
    return compiled(policy, num_simulations=num_simulations)(params, jax.random.key(0), worlds.roots(3))


def rows(out: jaxmcts.PolicyOutput, wanted: list[int]) -> jaxmcts.PolicyOutput:
    return jax.tree.map(lambda x: x[jnp.asarray(wanted)], out)


NAN_SOURCES = {
    "logits at the root": ({"prior_logits": np.nan}, [0]),
    "value at the root": ({"value": np.inf}, [0]),
    "logits inside": ({"prior_logits": np.nan}, list(range(1, 200))),
    "value inside": ({"value": np.nan}, list(range(1, 200))),
    "reward": ({"reward": np.nan}, list(range(200))),
    "discount": ({"discount": -np.inf}, list(range(200))),
    "everything": ({"prior_logits": np.nan, "value": np.nan, "reward": np.nan}, list(range(200))),
}


@every_policy
@pytest.mark.parametrize("source", NAN_SOURCES)
def test_c030_a_nan_stays_in_its_row(policy, source):
    spoil, states = NAN_SOURCES[source]
    bad, good = (three_rows(policy, s, states, num_simulations=16) for s in (spoil, {}))
    trees.assert_bit_equal(rows(bad, [0, 2]), rows(good, [0, 2]))
    np.testing.assert_array_equal(bad.flags, [0, Flags.NOT_FINITE, 0])
    assert int(bad.action[1]) in (2, 4, 6, 7, 8)
    assert sum(root_visits(bad, 1)) == 16
    assert all(np.isfinite(numbers).all() for numbers in all_numbers(bad))
    jaxmcts.validate(bad.tree)


def test_c030_logits_that_are_not_finite_become_uniform():
    np.testing.assert_allclose(prior_of((np.nan, 1, 2, 3), (1, 1, 0, 1)), [1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(prior_of((5, 1, np.nan, 5), (1, 0, 0, 1)), [0.5, 0, 0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(prior_of((-np.inf, 1, 1), (1, 1, 1)), [0, 0.5, 0.5], rtol=1e-6)


@every_policy
def test_c031_a_row_without_legal_actions(policy):
    live = Position(moves={a: Move(to=PLAYED_ON) for a in range(3)})
    mixed = search(policy, live, Position(value=0.25), num_simulations=8)
    whole = search(policy, live, num_simulations=8)
    trees.assert_bit_equal(rows(mixed, [0]), rows(whole, [0]))
    assert int(mixed.action[1]) == 0
    assert float(mixed.value[1]) == 0.25
    assert int(mixed.flags[1]) == Flags.FINISHED
    assert not np.asarray(mixed.action_weights[1]).any()


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_c036_half_precision_logits(dtype):
    legal = [1, 0, 0, 1, 0, 0, 1, 0, 0]
    prior = prior_of([-20, 8, 8, -20, 8, 8, -20, 8, 8], legal, dtype)
    assert np.isfinite(prior).all()
    np.testing.assert_array_equal(prior > 0, np.array(legal) > 0)
    np.testing.assert_allclose(prior.sum(), 1, atol=1e-2)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_c036_a_fully_masked_row_in_half_precision(dtype):
    assert not prior_of([-20] * 9, [0] * 9, dtype).any()


# C. Root noise, temperature, ties, seeds


NUM_DRAWS = 2000


@quickly
def draw_noise(seed: int, alpha: float, legal: jax.Array) -> jax.Array:
    keys = jax.random.split(jax.random.key(seed), NUM_DRAWS)
    return root.dirichlet_on_legal(keys, alpha, jnp.broadcast_to(legal, (NUM_DRAWS, legal.size)))


def noise_over(num_legal: int, alpha: float, seed: int = 0) -> np.ndarray:
    """Dirichlet noise over the first of 9 or 361 actions, `[NUM_DRAWS, num_legal]`."""
    num_actions = 9 if num_legal <= 9 else 361
    noise = np.asarray(draw_noise(seed, alpha, np.arange(num_actions) < num_legal))
    assert not noise[:, num_legal:].any()
    return noise[:, :num_legal]


@quickly
def noisy_prior(legal: jax.Array) -> jax.Array:
    """Noisy root priors of a uniform policy, `[NUM_DRAWS, A]`: fraction 0.25, alpha 0.3."""
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    logits = jnp.where(legal, -jnp.log(legal.sum()), -jnp.inf)
    logits = jnp.broadcast_to(logits, (NUM_DRAWS, legal.size))
    return jnp.exp(root.noisy_prior_logits(keys, logits, dirichlet_fraction=0.25, dirichlet_alpha=0.3))


def test_c039_noise_differs_by_row_and_by_action():
    noisy = np.asarray(noisy_prior(np.ones(9, bool)))[:100]
    np.testing.assert_allclose(noisy.sum(axis=1), 1, atol=1e-5)
    assert len({row.tobytes() for row in noisy}) == 100
    assert np.min(noisy.std(axis=1)) > 1e-4


@pytest.mark.parametrize(
    ("num_actions", "alpha", "largest", "within"), [(9, 0.3, 0.49, 0.015), (361, 0.03, 0.19, 0.01)]
)
def test_c039_c040_noise_is_as_peaked_as_alpha_says(num_actions, alpha, largest, within):
    assert noise_over(num_actions, alpha).max(axis=1).mean() == pytest.approx(largest, abs=within)


def test_c041_noise_is_on_legal_actions_only():
    legal = np.array([1, 0, 0, 1, 0, 0, 0, 1, 0], bool)
    noisy = np.asarray(noisy_prior(legal))
    noise = noisy - np.where(legal, 0.75 / 3, 0)
    assert (noisy[:, ~legal] == 0).all()
    np.testing.assert_allclose(noisy.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(noise.sum(axis=1), 0.25, atol=1e-6)
    assert noise.min() > -1e-6


def test_c043_noise_does_not_reach_the_target():
    position = Position(moves={a: Move(to=PLAYED_ON) for a in range(8)}, prior=[0.9, *[0.1 / 7] * 7, 1.0])
    out = many_rows(jaxmcts.alphazero_policy, position, 64, num_simulations=16)
    visits = np.asarray(out.tree.visits[:, 0])
    assert (visits[:, :8] == 0).any()
    np.testing.assert_allclose(out.action_weights, visits / 16, atol=1e-6)
    prior = np.asarray(jaxmcts.summary(out.tree).prior)
    np.testing.assert_allclose(prior[:, 0], 0.9, atol=1e-6)  # the tree keeps the clean prior


def test_c046_tiny_concentrations():
    tiny = np.concatenate([noise_over(4, 1e-4, seed) for seed in range(5)])
    assert np.isfinite(tiny).all()
    np.testing.assert_allclose(tiny.sum(axis=1), 1, atol=1e-5)
    small = np.concatenate([noise_over(3, 0.01, seed) for seed in range(5)])
    assert (np.abs(small - 1 / 3).max(axis=1) < 0.1).mean() < 0.01


def tempered(counts: list[int], temperature: float) -> np.ndarray:
    weights = jnp.array([counts], jnp.float32) / sum(counts)
    return np.asarray(jax.nn.softmax(readout.tempered_logits(weights, temperature)))[0]


@pytest.mark.parametrize(
    ("counts", "temperature", "wanted"),
    [
        ([800, 790, 10], 0.01, [0.7787, 0.2213, 0]),
        ([800, 790, 10], 1e-6, [1, 0, 0]),
        ([60, 30, 10], 1.0, [0.6, 0.3, 0.1]),
        ([60, 30, 10], 0.5, [0.7826, 0.1957, 0.0217]),
        ([60, 30, 10], 0.25, [0.9405, 0.0588, 0.0007]),
        ([60, 0, 40], 100.0, [0.501, 0, 0.499]),
    ],
)
def test_c048_c049_temperature_is_a_power(counts, temperature, wanted):
    np.testing.assert_allclose(tempered(counts, temperature), wanted, atol=1e-4)


def bandit(*values: float) -> Position:
    return Position(moves={a: Move(reward=value) for a, value in enumerate(values)})


def test_c048_temperature_zero_plays_the_most_visited():
    out = search(plain_alphazero, bandit(0.1, 0.2, 0.15), num_simulations=16)
    np.testing.assert_array_equal(out.action, np.argmax(out.tree.visits[:, 0], axis=1))


def test_c049_temperature_shapes_the_choice_and_not_the_target():
    """Half of the rows play at temperature 1, half at 0.5."""
    half = 2048
    temperature = jnp.repeat(jnp.array([1.0, 0.5]), half)
    policy = functools.partial(
        jaxmcts.alphazero_policy, model=worlds.MODEL, num_simulations=20, temperature=temperature
    )
    params = params_of(world_of(bandit(0.1, 0.5), **SIZE))
    run = quickly(functools.partial(policy, dirichlet_fraction=0.0))
    out = run(params, jax.random.key(0), jnp.zeros((2 * half, 2), jnp.int32))
    weights = np.asarray(out.action_weights)
    assert (weights == weights[0]).all()
    np.testing.assert_allclose(weights[0], np.asarray(out.tree.visits[0, 0]) / 20, atol=1e-6)
    for actions, power in zip(np.split(np.asarray(out.action), 2), (1, 2)):
        wanted = weights[0, 1] ** power / (weights[0] ** power).sum()
        assert np.mean(actions == 1) == pytest.approx(wanted, abs=4 * 0.5 / half**0.5)  # four standard errors


def test_c054_rows_have_their_own_randomness():
    """64 equal rows, one key: the rows' choices differ."""
    wide = Position(moves={a: Move(to=PLAYED_ON) for a in range(9)})
    sampled = many_rows(jaxmcts.alphazero_policy, wide, 64, num_simulations=16)
    assert len(set(np.asarray(sampled.action).tolist())) > 5
    drawn = many_rows(jaxmcts.gumbel_policy, wide, 64, num_simulations=9)
    assert len(set(np.asarray(drawn.action).tolist())) > 5


def test_c055_no_key_is_used_twice():
    state, params = worlds.roots(1), params_of(world_of(bandit(0.1, 0.5), **SIZE))
    with jax.debug_key_reuse(True):
        for policy in (jaxmcts.alphazero_policy, jaxmcts.gumbel_policy, jaxmcts.uct_policy):
            quickly(functools.partial(policy, model=worlds.MODEL, num_simulations=4))(params, jax.random.key(0), state)


def test_c055_noise_differs_from_move_to_move():
    wide = Position(moves={a: Move(to=PLAYED_ON) for a in range(9)})
    params, state = params_of(world_of(wide, **SIZE)), worlds.roots(1)
    search_once = compiled(jaxmcts.gumbel_policy, num_simulations=9)
    key = jax.random.key(0)
    actions = [int(search_once(params, jax.random.fold_in(key, ply), state).action[0]) for ply in range(24)]
    assert len(set(actions)) > 4


def test_c056_the_same_seed_gives_the_same_search():
    """Compiled twice, so that nothing is shared but the inputs."""
    params = params_of(*[world_of(tic_tac_toe("XX.OO...."), **SIZE)] * 3)
    first, second = (
        quickly(functools.partial(jaxmcts.alphazero_policy, model=worlds.MODEL, num_simulations=8))(
            params, jax.random.key(7), worlds.roots(3)
        )
        for _ in range(2)
    )
    trees.assert_bit_equal(first, second)


# D. Budget edges, shapes, dtypes, scale


@pytest.mark.parametrize("policy", [plain_alphazero, jaxmcts.uct_policy], ids=["alphazero", "uct"])
def test_c058_one_simulation(policy):
    position = Position(moves={a: Move(to=PLAYED_ON) for a in range(7)})
    out = search(policy, position, num_simulations=1)
    weights = np.asarray(out.action_weights[0])
    assert sorted(weights) == [0] * 8 + [1]
    assert int(out.action[0]) == np.argmax(weights)


def test_c058_one_simulation_of_gumbel():
    position = Position(moves={a: Move(to=PLAYED_ON) for a in range(7)})
    out = search(gumbel_without_noise, position, num_simulations=1)
    assert np.asarray(out.action_weights[0]).sum() == pytest.approx(1)
    assert root_visits(out)[int(out.action[0])] == 1


@every_policy
def test_c059_zero_simulations(policy):
    position = Position(value=0.3, prior=(0.2, 0.3, 0.5), moves={a: Move() for a in (0, 1)})
    out = search(policy, position, num_simulations=0)
    np.testing.assert_allclose(out.action_weights[0, :3], [0.4, 0.6, 0], atol=1e-6)
    assert int(out.action[0]) == 1
    assert float(out.value[0]) == np.float32(0.3)


def test_c061_more_considered_than_legal_actions():
    position = Position(moves={a: Move(to=PLAYED_ON) for a in (2, 7)})
    out = search(jaxmcts.gumbel_policy, position, num_simulations=8)
    assert root_visits(out) == [0, 0, 4, 0, 0, 0, 0, 4, 0]


def test_c062_candidates_are_drawn_without_repetition():
    position = Position(moves={a: Move(to=PLAYED_ON) for a in range(8)})
    gumbel = np.array([[0.1, 1.4, -0.3, 2.2, 0.8, -1.0, 0.9, 0.2, 9.0]])
    policy = functools.partial(
        jaxmcts.gumbel_policy, model=worlds.MODEL, max_num_considered_actions=4, root_gumbel=gumbel
    )
    params = params_of(world_of(position, **SIZE))
    out = quickly(functools.partial(policy, num_simulations=16))(params, jax.random.key(0), worlds.roots(1))
    visits = np.array(root_visits(out))
    assert set(np.flatnonzero(visits)) == {1, 3, 4, 6}
    assert sorted(visits[visits > 0]) == [2, 2, 6, 6]


@every_policy
def test_c065_equal_values_and_a_single_action(policy):
    same = dataclasses.replace(bandit(0.4, 0.4, 0.4), value=0.4)
    out = search(policy, same, Position(moves={5: Move(reward=0.4)}), num_simulations=9)
    assert all(np.isfinite(numbers).all() for numbers in all_numbers(out))
    assert sum(root_visits(out, 0)) == 9
    assert root_visits(out, 1)[5] == 9


def test_c065_with_equal_values_visits_follow_the_prior():
    same = dataclasses.replace(bandit(0.4, 0.4, 0.4), value=0.4, prior=(0.7, 0.2, 0.1))
    out = search(plain_alphazero, same, num_simulations=100)
    np.testing.assert_allclose(root_visits(out)[:3], [70, 20, 10], atol=1)


def test_c066_gumbel_does_not_depend_on_the_scale_of_rewards():
    """Its q is rescaled by the node's own range; AlphaZero's constants are written down as those for [-1, 1]."""
    small, large = (
        search(gumbel_without_noise, bandit(*values), num_simulations=60)
        for values in ((0.1, 0.2, 0.3), (100.0, 200.0, 300.0))
    )
    assert root_visits(small) == root_visits(large)


@pytest.mark.parametrize(("values", "visits"), [((0.1, 0.2, 0.3), [10, 16, 34]), ((100, 200, 300), [60, 0, 0])])
def test_c066_puct_on_raw_values_gets_stuck_on_large_rewards(values, visits):
    """Why raw values are not the silent default."""
    tree = search_by(RAW_PUCT, bandit(*values), num_simulations=60, num_actions=3, num_states=4)
    assert root_visits(tree) == visits


def test_c067_a_missing_batch_axis():
    evaluation = jaxmcts.Evaluation(prior_logits=jnp.zeros(9), value=jnp.zeros(()), legal_action_mask=jnp.ones(9, bool))
    params = params_of(world_of(bandit(0.1), **SIZE))
    with pytest.raises(
        ValueError, match=r"`root_evaluation` gave `prior_logits` of shape \(9,\), expected \(batch, actions\)"
    ):
        jaxmcts.uct_policy(
            params, jax.random.key(0), worlds.roots(1), worlds.MODEL, num_simulations=2, root_evaluation=evaluation
        )
    with pytest.raises(ValueError, match="`state` has leaves of shapes"):
        jaxmcts.uct_policy(params, jax.random.key(0), jnp.int32(0), worlds.MODEL, num_simulations=2)


def test_c068_a_batch_of_one():
    position = tic_tac_toe("XX.OO....")
    params = params_of(world_of(position, **SIZE))
    keys = jax.random.split(jax.random.key(3), 4)
    run = compiled(jaxmcts.gumbel_policy, num_simulations=16)
    one = run(params, keys[:1], jnp.zeros((1, 2), jnp.int32))
    four = run(params, keys, jnp.zeros((4, 2), jnp.int32))
    assert one.action.shape == (1,)
    assert one.action_weights.shape == (1, 9)
    assert one.value.shape == (1,)
    trees.assert_same_tree(records(one), records(four), atol=1e-6)
    assert int(one.action[0]) == int(four.action[0])


def test_c069_rows_do_not_depend_on_their_place():
    drawn = [worlds.random_world(np.random.default_rng(i), num_actions=9, num_states=256) for i in range(8)]
    params, keys = params_of(*drawn), jax.random.split(jax.random.key(5), 8)
    run = compiled(jaxmcts.gumbel_policy, num_simulations=16)
    batch = run(params, keys, worlds.roots(8))
    order = jnp.array([3, 1, 7, 0, 6, 2, 5, 4])
    permuted = run(params, keys[order], worlds.roots(8)[order])
    trees.assert_bit_equal(permuted, rows(batch, order.tolist()))
    for row in (0, 5):
        alone = run(params, keys[row : row + 1], worlds.roots(8)[row : row + 1])
        trees.assert_same_tree(records(alone), records(batch, row), atol=1e-5)


@pytest.mark.parametrize("policy", [plain_alphazero, gumbel_without_noise], ids=["alphazero", "gumbel"])
def test_c070_64_bit_mode(policy):
    world = worlds.random_world(np.random.default_rng(0), num_actions=9, num_states=256, terminated=0.2)
    single = search_worlds(policy, [world], num_simulations=16)
    with jax.enable_x64(True):
        double = compiled(policy, num_simulations=16)(
            params_of(world, dtype=np.float64), jax.random.key(0), worlds.roots(1)
        )
        assert double.value.dtype == jnp.float64
        in_double = records(double)
    trees.assert_same_tree(records(single), in_double, atol=1e-5)


def _strange_step(params, keys, state, action):
    transition, after = worlds.MODEL.step(params, keys, state, action)
    return dataclasses.replace(transition, discount=transition.discount.astype(jnp.int32)), after


def _strange_evaluate(params, keys, state):
    evaluation, state = worlds.MODEL.evaluate(params, keys, state)
    strange = dataclasses.replace(
        evaluation,
        prior_logits=evaluation.prior_logits.astype(jnp.float16),
        value=evaluation.value.astype(jnp.bfloat16),
    )
    return strange, state


def test_c071_other_number_types_are_accepted():
    world = worlds.random_world(
        np.random.default_rng(1), num_actions=9, num_states=256, terminated=0.2, levels=(-0.5, 0.0, 0.25, 1.0)
    )
    strange = jaxmcts.Model(step=_strange_step, evaluate=_strange_evaluate)
    got = compiled(plain_alphazero, strange, num_simulations=16)(params_of(world), jax.random.key(0), worlds.roots(1))
    want = search_worlds(plain_alphazero, [world], num_simulations=16)
    trees.assert_bit_equal(got, want)


def _scalar_reward_step(params, keys, state, action):
    transition, after = worlds.MODEL.step(params, keys, state, action)
    return dataclasses.replace(transition, reward=0.0), after


def test_c071_a_scalar_reward_is_named():
    model = jaxmcts.Model(step=_scalar_reward_step, evaluate=worlds.MODEL.evaluate)
    params = params_of(world_of(bandit(0.1), **SIZE))
    with pytest.raises(ValueError, match=r"`step` gave `reward` of shape \(\), expected \(1,\)"):
        jaxmcts.uct_policy(params, jax.random.key(0), worlds.roots(1), model, num_simulations=2)


def rich_state(node: jax.Array) -> dict[str, jax.Array]:
    """A state with leaves of many types, all derived from the number of the table's state, `[B]`."""
    return {
        "node": node,
        "mask": node[:, None] % jnp.array([[2, 3, 5]]) == 0,
        "board": (node[:, None, None] * jnp.array([[[1, -1], [2, -3]]])).astype(jnp.int8),
        "key": jnp.stack([node, node + 7], axis=1).astype(jnp.uint32),
        "clock": node.astype(jnp.float32) * 0.25,
        "half": node.astype(jnp.bfloat16),
    }


def _rich_step(params, keys, state, action):
    flat = jnp.stack([jnp.zeros_like(state["node"]), state["node"]], axis=1)
    transition, after = worlds.MODEL.step(params, keys, flat, action)
    return transition, rich_state(after[:, 1])


def _rich_evaluate(params, keys, state):
    flat = jnp.stack([jnp.zeros_like(state["node"]), state["node"]], axis=1)
    evaluation, _ = worlds.MODEL.evaluate(params, keys, flat)
    return dataclasses.replace(evaluation, extras={"seen": state["mask"], "twice": state["node"] * 2}), state


def test_c074_states_and_extras_keep_their_types():
    world = worlds.random_world(np.random.default_rng(2), num_actions=9, num_states=256, illegal=0.3)
    start = rich_state(jnp.zeros(2, jnp.int32))
    model = jaxmcts.Model(step=_rich_step, evaluate=_rich_evaluate)
    tree = compiled(plain_alphazero, model, num_simulations=16)(params_of(world), jax.random.key(0), start).tree
    nodes = oracles.search(world, oracles.AlphaZero(), 16)
    states = {path: node.state for path, node in oracles.walk(nodes)}
    for path, slot in trees.slots_by_path(trees.host(tree), 0).items():
        want = rich_state(jnp.array([states[path]], jnp.int32))
        trees.assert_bit_equal(
            jax.tree.map(lambda x, slot=slot: x[0, slot], tree.state), jax.tree.map(lambda x: x[0], want)
        )
        assert int(tree.extras["twice"][0, slot]) == 2 * states[path]
        np.testing.assert_array_equal(tree.extras["seen"][0, slot], want["mask"][0])
    assert jax.tree.map(lambda x: x.dtype, tree.state) == jax.tree.map(lambda x: x.dtype, start)


# E. Tree arrays, compilation


def search_with_capacity(capacity: int, *num_simulations: int) -> jaxmcts.Tree:
    """Run a budget, or several in turn, on a tree of some capacity."""
    world = worlds.random_world(np.random.default_rng(3), num_actions=9, num_states=256, terminated=0.2)
    params = params_of(world)
    rules = same_rule(jaxmcts.rules.puct.alphazero)
    tree = jaxmcts.init(params, jax.random.key(0), worlds.roots(1), worlds.MODEL, capacity=capacity)
    for n in num_simulations:
        tree = quickly(functools.partial(jaxmcts.run, model=worlds.MODEL, num_simulations=n, **rules))(params, tree)
    return tree


def test_c077_capacity_does_not_matter():
    small, large = search_with_capacity(9, 8), search_with_capacity(36, 8)

    def first(x: jax.Array) -> jax.Array:
        return x[:, :9] if x.ndim > 1 else x

    trees.assert_bit_equal(jax.tree.map(first, large), small)
    rest = jax.tree.map(lambda x: x[:, 9:] if x.ndim > 1 else jnp.zeros(1), large)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(dataclasses.replace(rest, keys=())))


def test_c078_more_simulations_than_capacity():
    with pytest.raises(ValueError, match="`num_simulations` is 9 but `capacity` is 8"):
        search_with_capacity(8, 9)


def test_c078_a_full_tree_stops_and_says_so():
    full, exact = search_with_capacity(8, 5, 5), search_with_capacity(8, 5, 2)
    assert int(full.flags[0]) == Flags.FULL
    assert int(exact.flags[0]) == 0
    assert sum(root_visits(full)) == 7
    jaxmcts.validate(full)
    trees.assert_bit_equal(dataclasses.replace(full, flags=exact.flags), exact)


def test_c084_the_value_at_the_depth_limit_counts_again():
    """One player, one action a state, values 0.5: whatever the depth, the edge is worth 0.5."""
    chain = Position(value=0.5)
    for _ in range(5):
        chain = Position(value=0.5, moves={0: Move(to=chain, discount=1.0)})
    out = search(plain_alphazero, chain, num_simulations=6, max_depth=2)
    nodes = records(out)
    assert root_visits(out)[0] == 6
    assert root_q(out)[0] == 0.5
    assert set(nodes) == {(), (0,), (0, 0)}
    assert nodes[(0,)].visits[0] == 5
    assert nodes[(0, 0)].total_visits == 1
    assert nodes[(0, 0)].value == 0.5


def _nan_after_the_end(params, keys, state, action):
    transition, after = worlds.MODEL.step(params, keys, state, action)
    over = ~jnp.any(worlds.look_up(params, "legal_action_mask", state), axis=1)
    return dataclasses.replace(transition, reward=jnp.where(over, jnp.nan, transition.reward)), after


def test_c086_rows_that_wait_do_not_leak():
    """Row 0 ends at once, row 1 is a forced line of 30 moves; stepping a finished state makes NaN."""
    line = Position()
    for _ in range(30):
        line = Position(moves={0: Move(to=line)})
    short = Position(moves={0: Move(reward=1)})
    model = jaxmcts.Model(step=_nan_after_the_end, evaluate=worlds.MODEL.evaluate)

    def run(*positions: Position) -> jaxmcts.PolicyOutput:
        params = params_of(*(world_of(position, **SIZE) for position in positions))
        return compiled(plain_alphazero, model, num_simulations=32)(params, jax.random.key(0), worlds.roots(3))

    mixed, alone = run(short, line, Position()), run(short, short, short)
    trees.assert_bit_equal(rows(mixed, [0]), rows(alone, [0]))
    assert max(len(path) for path in records(mixed, 1)) == 30
    np.testing.assert_array_equal(mixed.flags, [0, 0, Flags.FINISHED])
    assert all(np.isfinite(numbers).all() for numbers in all_numbers(mixed))


def test_c090_new_numbers_do_not_compile_anew():
    traces = []

    @quickly
    def run(params, state, temperature, fraction):
        traces.append(1)
        return jaxmcts.alphazero_policy(
            params,
            jax.random.key(0),
            state,
            worlds.MODEL,
            num_simulations=4,
            temperature=temperature,
            dirichlet_fraction=fraction,
        ).action_weights

    params = params_of(world_of(tic_tac_toe("XX.OO...."), **SIZE))
    for temperature in np.linspace(0.0, 2.0, 10):
        for fraction in np.linspace(0.0, 1.0, 5):
            run(params, worlds.roots(1), temperature, fraction)
    assert len(traces) == 1
    assert run._cache_size() == 1


@pytest.mark.parametrize("num_simulations", [0, 1, 8])
def test_c094_a_tree_can_be_printed(num_simulations):
    out = search(plain_alphazero, tic_tac_toe("XX.OO...."), Position(), num_simulations=num_simulations)
    text = jaxmcts.view(out.tree, 0)
    assert f"{num_simulations} simulations" in text
    unvisited = 5 - np.count_nonzero(root_visits(out))
    if unvisited:
        assert f"{unvisited} of them unvisited" in text
    assert "no legal action" in jaxmcts.view(out.tree, 1)
