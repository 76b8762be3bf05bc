"""What each selection rule and backup costs beside PUCT evaluated the same way: cached, or `Live`.

The rules and what they need are those of `tests/jaxmcts/test_rules_exact.py`, so a rule added there is timed here.
Each builds trees of its own shape, and a simulation that goes deeper takes longer under any rule. So PUCT gets the
constant by which it is evaluated as often a simulation as the rule is, and what is judged is the time by evaluation. A
cached rule is evaluated at the nodes that a row passes; a live one in every row as often as in the row that goes
deepest, for all rows go in step.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

import jaxmcts
from jaxmcts.rules import gumbel, puct, regularised
from tests.bench import timing, world
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell
from tests.jaxmcts.test_rules_exact import CASES, Parts

CELL = Cell(128, 82, 256)
MOST = 1.5
EXCEPTIONS = {"gumbel": 2.0, "regularised": float("inf"), "sampled_regularised": float("inf")}


def cases() -> dict[str, Parts]:
    """Return every rule and backup by name."""
    return {
        "alphazero": Parts(select=puct.alphazero),
        "uct": Parts(select=jaxmcts.rules.uct.uct),
        "gumbel": Parts(select=gumbel.gumbel_interior),
        **CASES,
        "sampled_regularised": Parts(select=jaxmcts.Live(regularised.sampled_regularised)),
    }


def run(quick: bool) -> list[Row]:
    """Time every rule beside PUCT; with `quick`, three of them."""
    chosen = cases()
    if quick:
        chosen = {name: chosen[name] for name in ("uct", "muzero_tree", "power_mean_backup")}
    return [_cost(name, case, rounds=1 if quick else 5) for name, case in chosen.items()]


def _cost(name: str, case: Parts, rounds: int) -> Row:
    is_live = isinstance(case.select, jaxmcts.Live)
    rule, rival = _search(lambda _: case, case.rule_state, is_live), _puct_search(is_live)
    evaluations = float(rule(1.0))
    c, of_puct = _alike(rival, evaluations)
    times = timing.take_turns({"rule": lambda: rule(1.0), "puct": lambda: rival(c)}, rounds=rounds)
    share = of_puct / evaluations
    ratio = timing.ratio(times, "rule", "puct") * share
    most = EXCEPTIONS.get(name, MOST)
    return {
        "rule": name,
        "evaluated": "live" if is_live else "cached",
        "us a simulation": round(1e6 * timing.median(times, "rule") / CELL.simulations, 1),
        "evaluations a simulation": round(evaluations, 1),
        "PUCT's": round(of_puct, 1),
        "PUCT's c": round(c, 2),
        "by processor": round(timing.ratio(times, "rule", "puct", "processor") * share, 2),
        "by evaluation": round(ratio, 2),
        "required": f"<= {most:g}",
        "verdict": verdict(ratio <= most),
    }


@functools.cache
def _puct_search(is_live: bool) -> Callable[[float], Any]:
    """Compile PUCT's search, cached or live."""

    def puct_with(c: jax.Array) -> Parts:
        rule = Partial(puct.alphago, c=c, offset=1.0, fpu=jaxmcts.fpu_lose)
        return Parts(select=jaxmcts.Live(Partial(_at_node, rule=rule)) if is_live else rule)

    return _search(puct_with, Parts(select=None).rule_state, is_live)


def _at_node(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array, *, rule: Callable[..., jax.Array]) -> jax.Array:
    """Evaluate a rule of one node's record during the descent."""
    del key
    return rule(jaxmcts.read_node(tree, index))


def _alike(search: Callable[[float], Any], evaluations: float) -> tuple[float, float]:
    """Return the c with which `search` evaluates its rule about so often, and how often it does."""
    low, high = 0.05, 200.0
    for _ in range(8):
        c = (low * high) ** 0.5
        of_puct = float(search(c))
        low, high = (c, high) if of_puct > evaluations else (low, c)
    return c, of_puct


def _search(
    parts_of: Callable[[jax.Array], Parts], rule_state_of: Callable[..., Any], is_live: bool
) -> Callable[[float], Any]:
    """Compile a search of the parts `parts_of(c)`; it returns how often a row evaluates its rule a simulation."""
    rule_state = rule_state_of(CELL.batch, CELL.simulations + 1, CELL.actions)

    def evaluations(c: jax.Array, params: Any, key: jax.Array, state: Any, rule_state: Any) -> jax.Array:
        tree = jaxmcts.search(
            params, key, state, world.model(CELL), num_simulations=CELL.simulations, rule_state=rule_state,
            **parts_of(c).named(),
        )  # fmt: skip
        # Nothing ends in this world: simulation i makes the node in slot i, and passes as many nodes as that is deep.
        passed = tree.depth[:, 1:]
        return jnp.mean(passed.max(axis=0) if is_live else passed)

    arguments = jnp.float32(CELL.scale), jax.random.key(0), world.states(CELL, world.roots(CELL)), rule_state
    compiled = jax.jit(evaluations).lower(jnp.float32(1), *arguments).compile()
    return lambda c: compiled(jnp.float32(c), *arguments)
