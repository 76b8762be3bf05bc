"""What the rules promise in theory: how often they visit a worse edge, in which units, under which names, to what end.

That actions have no names and that illegal ones are never visited is asked of every rule in `test_rules_exact`, where
each is compiled already. Here many rules share one compiled search: each row has a rule of its own.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmcts
from jaxmcts import qvalue, readout, root
from jaxmcts.backup import no_spread, variance_backup
from jaxmcts.rules import engines, gates, gumbel, muzero, puct, regularised, uct, variance
from tests import oracles, worlds
from tests.jaxmcts import trees
from tests.jaxmcts.searching import QUICK_TO_COMPILE, params_of, same_rule
from tests.jaxmcts.test_rules_exact import NUM_ACTIONS, tempting

Rule = Callable[..., jax.Array]


def by_row(node: jaxmcts.Node, *, rules: Sequence[Rule], which: jax.Array, **constants: Any) -> jax.Array:
    """Select by `rules[which]`; the number and its constants are those of the row."""
    return jnp.stack([rule(node, **constants) for rule in rules])[which]


def grown(
    rules: dict[str, Any], params: worlds.Tables, num_rows: int, *, pieces: int, sims: int, rule_state: Any = ()
) -> tuple[jaxmcts.Tree, np.ndarray, np.ndarray]:
    """Search in `pieces` of `sims` simulations; returns the tree, and by piece the root's visits and value."""

    def search(params: worlds.Tables) -> Any:
        def more(tree: jaxmcts.Tree, _: None) -> tuple[jaxmcts.Tree, tuple[jax.Array, jax.Array]]:
            tree = jaxmcts.run(params, tree, worlds.MODEL, num_simulations=sims, **rules)
            return tree, (tree.visits[:, 0], tree.value[:, 0])

        tree = jaxmcts.init(
            params, jax.random.key(0), worlds.roots(num_rows), worlds.MODEL,
            capacity=pieces * sims + 1, rule_state=rule_state,
        )  # fmt: skip
        return jax.lax.scan(more, tree, None, length=pieces)

    tree, (visits, values) = jax.jit(search)(params)
    return tree, np.asarray(visits), np.asarray(values)


# Visits of the worse of two edges. A rule Q + b(S, n, P) takes the worse edge when its n lies below the n* at which
# both scores are equal. n* and S - n* both grow with S, so n* grows by less than 1 a simulation, and n is never more
# than 1 off.

Bonus = Callable[[Any, Any, float], Any]  # b(S, n, P), S the visits of all edges
LN = np.log


def sqrt_bonus(c: Callable[[Any], Any], base: Callable[[Any], Any]) -> Bonus:
    return lambda s, n, p: c(s) * p * np.sqrt(base(s)) / (1 + n)


LOSERS: dict[str, tuple[Rule, Bonus, float | None, tuple[float, float]]] = {
    # name: the rule, its bonus, the gap in its units (None: that of the world), and the exponent at the end
    "greedy": (uct.greedy, lambda s, n, p: 0 * n, None, (0.0, 0.0)),
    "uct": (Partial(uct.uct, c=2.0), lambda s, n, p: 2 * np.sqrt(LN(s + 1) / np.maximum(n, 1e-9)), None, (0.10, 0.30)),
    "log_shaped": (
        Partial(puct.log_shaped, c=4.0), lambda s, n, p: 4 * p * np.sqrt(LN(s + 2) / (1 + n)), None, (0.10, 0.30)
    ),
    "uct_v_p": (variance.uct_v_p, lambda s, n, p: 3 * p * LN(s + 1) / (1 + n), 1.0, (0.10, 0.30)),
    "puct_v": (variance.puct_v, lambda s, n, p: 3 * p * LN(s + 1) / (1 + n), 1.0, (0.10, 0.30)),
    "alphago": (puct.alphago, sqrt_bonus(lambda s: 5, lambda s: s), None, (0.45, 0.6)),
    "alphazero": (
        Partial(puct.alphazero, c_init=3.0, c_base=1e9),
        sqrt_bonus(lambda s: 6 + 2 * LN((2 + s + 1e9) / 1e9), lambda s: s + 1), None, (0.45, 0.6),
    ),
    "muzero": (
        Partial(muzero.muzero, c_init=5.0, c_base=1e9), sqrt_bonus(lambda s: 5, lambda s: s + 1), 1.0, (0.45, 0.6)
    ),
    "lc0": (
        engines.lc0,
        sqrt_bonus(lambda s: 1.745 + 3.894 * LN((s + 1 + 38739) / 38739), lambda s: s), None, (0.5, 0.7),
    ),
    "leela_zero": (
        engines.leela_zero, sqrt_bonus(lambda s: np.sqrt(LN(0.015 * s + 1.7)), lambda s: s), None, (0.5, 0.7)
    ),
    "katago": (
        engines.katago, sqrt_bonus(lambda s: 1 + 0.45 * LN((s + 500) / 500), lambda s: s + 0.01), None, (0.5, 0.8)
    ),
    "polynomial": (
        Partial(puct.polynomial, c=1.0, exponent=0.75), lambda s, n, p: p * (s + 1) ** 0.75 / (1 + n), None, (0.7, 0.85)
    ),
    # It visits in proportion to pibar, to which PUCT's visits tend: alike but for factors that tend to 1.
    "regularised": (
        Partial(regularised.regularised, c=5.0),
        lambda s, n, p: 5 * p * np.sqrt(s) * (s + 1) / (s + 2) / np.maximum(n + 0.5, 1e-9), None, (0.45, 0.6),
    ),
}  # fmt: skip
ARMS = [(1.0, 0.5), (2.0, 0.2)]  # the gap and the prior of the worse edge
PIECES, SIMS = 64, 64


@functools.cache
def losers() -> np.ndarray:
    """Visits of the worse edge after 64, 128, ..., 4096 simulations `[pieces, rules, arms]`; one program for all."""
    bandits = [
        worlds.world_of(
            worlds.Position(
                prior=(1 - prior, prior), moves={0: worlds.Move(reward=gap / 2), 1: worlds.Move(reward=-gap / 2)}
            ),
            num_actions=2,
            num_states=4,
        )
        for gap, prior in ARMS
    ]
    rule = Partial(
        functools.partial(by_row, rules=[rule for rule, *_ in LOSERS.values()]),
        which=jnp.repeat(jnp.arange(len(LOSERS)), len(ARMS)),
    )
    num_rows = len(LOSERS) * len(ARMS)
    _, visits, _ = grown(
        same_rule(uct.greedy, variance_backup) | {"root_select": rule}, params_of(*bandits * len(LOSERS)), num_rows,
        pieces=PIECES, sims=SIMS, rule_state=no_spread(num_rows, PIECES * SIMS + 1, 2),
    )  # fmt: skip
    return visits[:, :, 1].reshape(PIECES, len(LOSERS), len(ARMS))


def balance(bonus: Bonus, gap: float, prior: float) -> np.ndarray:
    """The n* at which b(S, n*, P) = gap + b(S, S - n*, 1 - P), for every S, 0 where there is none `[pieces]`."""
    s = SIMS * np.arange(1.0, PIECES + 1)
    low, high = np.zeros_like(s), s
    for _ in range(60):
        n = (low + high) / 2
        below = bonus(s, n, prior) > gap + bonus(s, s - n, 1 - prior)
        low, high = np.where(below, n, low), np.where(below, high, n)
    return low


@pytest.mark.parametrize("name", LOSERS)
def test_a_worse_edge_gets_the_visits_of_the_theory(name):
    _, bonus, gap_of_rule, _ = LOSERS[name]
    visits = losers()[:, list(LOSERS).index(name)]
    for arm, (gap, prior) in enumerate(ARMS):
        wanted = balance(bonus, gap_of_rule or gap, prior)
        np.testing.assert_allclose(visits[:, arm], wanted, atol=1.01, rtol=0, err_msg=f"{name}, {ARMS[arm]}")


@pytest.mark.parametrize("name", LOSERS)
def test_the_exponent_with_which_a_worse_edge_s_visits_grow(name):
    """ln n over ln N from 512 to 4096 simulations. PUCT: 1/2, and what the winner's own bonus still takes at first
    (below 0.1), more where the constant grows too. The logarithm's own exponent is 1 / ln N, 0.12 at the end."""
    low, high = LOSERS[name][3]
    some = slice(7, None)
    visits = losers()[some, list(LOSERS).index(name), 0]
    log_budget = np.log(SIMS * np.arange(1, PIECES + 1))[some]
    exponent, _ = np.polyfit(log_budget, np.log(visits), 1)
    assert low - 1e-9 <= exponent <= high + 1e-9, exponent


def test_uct_s_regret_is_logarithmic():
    """Auer et al. 2002, theorem 1, for a fixed c: n <= 1 + c^2 ln N / gap^2, at any time; and it is not much less."""
    log_budget = np.log(SIMS * np.arange(1, PIECES + 1) + 1)
    visits = losers()[:, list(LOSERS).index("uct")]
    for arm, (gap, _) in enumerate(ARMS):
        most = 1 + 4 * log_budget / gap**2
        assert (visits[:, arm] <= most).all()
        assert visits[-1, arm] >= 0.75 * most[-1] - 1


# Units: the tree is the same when all values are a x + b, if constants are too. From [-1, 1] to [0, 1] that halves c.


def fpu_at(scale: Any, shift: Any) -> Partial:
    """Unvisited edges are worth 0.3 on [-1, 1]."""
    return Partial(qvalue.fpu_constant, value=0.3 * scale + shift)


def alphazero_raw(node: jaxmcts.Node, *, scale: Any, shift: Any) -> jax.Array:
    """AlphaZero's rule as a rule on raw values: on [-1, 1] with 2 C(s), on [0, 1] with C(s)."""
    q = qvalue.complete(node, qvalue.fpu_lose(node) * scale + shift)
    return jaxmcts.rules.best(node, q + 2 * scale * puct.alphazero_bonus(node, c_init=1.25, c_base=19652.0))


RAW_GUMBEL = Partial(gumbel.gumbel_interior, rescale_q=False)

UNITS: dict[str, Callable[..., Partial]] = {  # name: (scale, shift) -> the rule for values scale x + shift
    "greedy": lambda a, b: Partial(uct.greedy),
    "greedy by fpu": lambda a, b: Partial(uct.greedy, fpu=fpu_at(a, b)),
    "uct": lambda a, b: Partial(uct.uct, c=1.5 * a),
    "uct, n = S": lambda a, b: Partial(uct.uct, c=1.5 * a, offset=0.0),
    "uct_browne": lambda a, b: Partial(uct.uct_browne, cp=0.8 * a),
    "alphago": lambda a, b: Partial(puct.alphago, c=1.5 * a, fpu=fpu_at(a, b)),
    "alphago, parent": lambda a, b: Partial(puct.alphago, c=1.5 * a, offset=1.0, fpu=qvalue.fpu_parent),
    "polynomial": lambda a, b: Partial(puct.polynomial, c=1.2 * a, exponent=0.7, fpu=fpu_at(a, b)),
    "log_shaped": lambda a, b: Partial(puct.log_shaped, c=3.0 * a, fpu=fpu_at(a, b)),
    "alphazero, raw": lambda a, b: Partial(alphazero_raw, scale=a, shift=b),
    "muzero": lambda a, b: Partial(muzero.muzero),
    "lc0": lambda a, b: Partial(
        engines.lc0, c_init=1.745 * a, c_factor=3.894 * a, fpu=Partial(qvalue.fpu_reduction, k=0.33 * a)
    ),
    "leela_zero": lambda a, b: Partial(engines.leela_zero, c=0.5 * a, fpu=Partial(qvalue.fpu_reduction, k=0.5 * a)),
    "katago": lambda a, b: Partial(
        engines.katago, c_init=a, c_factor=0.45 * a, fpu=Partial(qvalue.fpu_blended, k=0.2 * a)
    ),
    "uct_v_p": lambda a, b: Partial(variance.uct_v_p),
    "puct_v": lambda a, b: Partial(variance.puct_v),
    "regularised": lambda a, b: Partial(regularised.regularised, c=1.25 * a),
    "gumbel_interior": lambda a, b: Partial(gumbel.gumbel_interior),
    "gumbel_interior, raw": lambda a, b: Partial(RAW_GUMBEL, c_scale=0.1 / a),
}  # fmt: skip
IN_OTHER_UNITS: dict[str, Callable[..., Partial]] = {  # these are about zero, or about a range: not the same elsewhere
    "shrunk": lambda a, b: Partial(puct.shrunk, c=1.5 * a),
    "alphago, unvisited worth 0": lambda a, b: Partial(puct.alphago, c=1.5 * a),
    "uct, c as it was": lambda a, b: Partial(uct.uct, c=1.5),
    "alphazero": lambda a, b: Partial(puct.alphazero),
    "katago_by_variance": lambda a, b: Partial(
        engines.katago_by_variance, c_init=a, c_factor=0.45 * a, stdev_prior=0.4 * a,
        fpu=Partial(qvalue.fpu_blended, k=0.2 * a),
    ),
}  # fmt: skip
EVERY = UNITS | IN_OTHER_UNITS
NUM_WORLDS, NUM_SIMULATIONS = 3, 32


def in_units(node: jaxmcts.Node, *, which: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    return by_row(node, rules=[make(scale, shift) for make in EVERY.values()], which=which)


@functools.cache
def in_both_units() -> dict[str, list[tuple[dict[Any, oracles.Record], dict[Any, oracles.Record]]]]:
    """By rule: each world's tree on [-1, 1], and that of the world on [0, 1], all in one program."""
    drawn = [worlds.random_world(np.random.default_rng([22, i]), **worlds.EVERYTHING) for i in range(NUM_WORLDS)]
    drawn += [worlds.rescaled(world, 0.5, 0.5) for world in drawn]
    num_rows = len(drawn) * len(EVERY)
    with jax.enable_x64(True):
        units = np.repeat([[1.0, 0.0], [0.5, 0.5]], NUM_WORLDS, axis=0)
        scale, shift = jnp.asarray(np.tile(units, (len(EVERY), 1))).T
        rule = Partial(in_units, which=jnp.repeat(jnp.arange(len(EVERY)), len(drawn)), scale=scale, shift=shift)
        search = jax.jit(
            lambda params: jaxmcts.search(
                params, jax.random.key(0), worlds.roots(num_rows), worlds.MODEL, num_simulations=NUM_SIMULATIONS,
                rule_state=no_spread(num_rows, NUM_SIMULATIONS + 1, NUM_ACTIONS), **same_rule(rule, variance_backup),
            ),
            compiler_options=QUICK_TO_COMPILE,
        )  # fmt: skip
        tree = trees.host(search(params_of(*drawn * len(EVERY), dtype=np.float64)))
    found = iter([trees.by_path(tree, row) for row in range(num_rows)])
    rows = [[next(found) for _ in drawn] for _ in EVERY]
    return {name: list(zip(row[:NUM_WORLDS], row[NUM_WORLDS:])) for name, row in zip(EVERY, rows)}


def in_unit_interval(records: dict[Any, oracles.Record]) -> dict[Any, oracles.Record]:
    """What was found on [-1, 1], as it reads on [0, 1]; an edge without visits reads 0 in both."""

    def mapped(record: oracles.Record) -> oracles.Record:
        q = [(x + 1) / 2 if n else 0.0 for x, n in zip(record.q, record.visits)]
        return oracles.Record(record.visits, q, (record.value + 1) / 2, record.total_visits)

    return {path: mapped(record) for path, record in records.items()}


@pytest.mark.parametrize("name", UNITS)
def test_half_the_constant_on_the_unit_interval_is_the_same_search(name):
    for i, (wide, unit) in enumerate(in_both_units()[name]):
        trees.assert_same_tree(unit, in_unit_interval(wide), atol=1e-9, name=f"{name}, world {i}")


@pytest.mark.parametrize("name", IN_OTHER_UNITS)
def test_what_does_not_carry_over(name):
    """W / (N + 1) and an unvisited edge worth 0 pull to a draw on [-1, 1], to a loss on [0, 1]; KataGo's spread has one
    weight too few in its denominator, so that V(s)^2 / (w + 1) is left in it: about zero too."""
    assert any(unit.keys() != wide.keys() for wide, unit in in_both_units()[name])


def test_alphazero_is_puct_with_2_c_on_values_as_they_are():
    for (mapped, _), (wide, _) in zip(in_both_units()["alphazero"], in_both_units()["alphazero, raw"]):
        trees.assert_same_tree(mapped, wide, atol=1e-12)


# Root rules and policies: illegal actions and labels. The rules below the root are in `test_rules_exact`.


def noisy_and_forced(params: Any, key: jax.Array, state: jax.Array, _: jax.Array) -> jaxmcts.Tree:
    """Shaped noise on a softened prior, forced playouts at the root; below, few of the edges, drawn from pibar."""
    tree = jaxmcts.init(params, key, state, worlds.MODEL, capacity=NUM_SIMULATIONS + 1)
    logits = root.tempered_prior_logits(readout.root(tree).prior_logits, 1.25)
    logits = root.mixed_prior_logits(logits, root.shaped_dirichlet(tree.keys, logits), dirichlet_fraction=0.75)
    forced = Partial(gates.gated, rule=puct.alphago, gate=gates.forced_playouts)
    return jaxmcts.run(
        params, tree, worlds.MODEL, num_simulations=NUM_SIMULATIONS, backup=jaxmcts.mean_backup,
        root_select=Partial(root.with_prior, rule=forced, prior_logits=logits),
        select=jaxmcts.Live(regularised.sampled_regularised),
    )  # fmt: skip


def gumbel_tree(params: Any, key: jax.Array, state: jax.Array, noise: jax.Array) -> jaxmcts.Tree:
    return jaxmcts.gumbel_policy(
        params, key, state, worlds.MODEL, num_simulations=NUM_SIMULATIONS, max_num_considered_actions=3,
        root_gumbel=noise,
    ).tree  # fmt: skip


ORDER = np.array([3, 0, 4, 1, 2])


def tempted(search: Callable[..., jaxmcts.Tree]) -> dict[str, np.ndarray]:
    """Search twelve tempting worlds, then the same ones relabelled; no illegal edge may have a visit."""
    drawn = [tempting(np.random.default_rng([23, i])) for i in range(12)]
    drawn += [worlds.relabelled(world, ORDER) for world in drawn]
    noise = np.random.default_rng(0).gumbel(size=(12, NUM_ACTIONS))
    with jax.enable_x64(True):
        tree = jax.jit(search, compiler_options=QUICK_TO_COMPILE)(
            params_of(*drawn, dtype=np.float64), jax.random.key(0), worlds.roots(len(drawn)),
            jnp.asarray(np.concatenate([noise, noise[:, ORDER]])),
        )  # fmt: skip
        jaxmcts.validate(tree)
    got = trees.host(tree)
    for row, world in enumerate(drawn):
        used = got["total_visits"][row] > 0
        legal = world.legal_action_mask[np.asarray(tree.state)[row, used, 1]]
        assert not got["visits"][row, used][~legal].any()
        assert got["visits"][row, 0].sum() == NUM_SIMULATIONS
    return got


def test_root_rules_are_not_tempted():
    tempted(noisy_and_forced)


def test_gumbel_is_not_tempted_and_does_not_read_the_labels():
    """Its draws are relabelled with the actions."""
    got = tempted(gumbel_tree)
    for row in range(12):
        renamed = trees.renamed(trees.by_path(got, row + 12), ORDER)
        trees.assert_same_tree(renamed, trees.by_path(got, row), atol=1e-9, name=str(row))


# To what end: the minimax value.

POSITIONS = (
    "X...O...X",  # O to move: four of the six replies draw, a corner loses
    "XO.......",  # X to move: the reply decides whether it wins
    "X...O....",  # X to move
)


def replies(board: str) -> list[str]:
    mover = "XO"[board.count("X") - board.count("O")]
    return [board[:i] + mover + board[i + 1 :] for i in range(9) if board[i] == "."]


BOARDS = [after for board in POSITIONS for after in replies(board)]


@functools.cache
def played_out() -> tuple[list[worlds.World], jaxmcts.Tree, np.ndarray]:
    """UCT on the position after every reply, 4096 simulations; with the root's value after each 256 of them."""
    games = [worlds.world_of(worlds.tic_tac_toe(board), num_actions=9, num_states=2000) for board in BOARDS]
    tree, _, values = grown(same_rule(Partial(uct.uct, c=2**0.5)), params_of(*games), len(games), pieces=16, sims=256)
    return games, tree, values


def test_uct_plays_tic_tac_toe():
    """After every reply it plays a move that holds the value of the game, whichever player it is."""
    games, tree, _ = played_out()
    actions = np.asarray(jaxmcts.most_visited(tree))
    values = [oracles.minimax(game, 0) for game in games]
    assert set(values) == {-1, 0, 1}
    for board, game, action, value in zip(BOARDS, games, actions, values):
        assert oracles.minimax_q(game, 0, int(action)) == value, board


def test_uct_s_value_comes_to_the_minimax_value():
    """The mean still holds the visits of worse moves, a multiple of ln N of them and as many at every level below:
    their share falls like ln N / N once the choice is settled, here to less than a third over four octaves."""
    games, _, values = played_out()
    errors = np.abs(values - np.array([oracles.minimax(game, 0) for game in games]))
    assert errors[-1].max() < 0.15
    assert errors[-1].mean() < 0.05
    assert errors[-1].mean() < errors[0].mean() / 3
    assert (np.diff(errors.mean(axis=1)) < 0).all()
