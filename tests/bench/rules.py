"""What each selection rule and backup costs beside PUCT evaluated the same way: cached, or `Live`.

The rules and what they need are those of `tests/jaxmcts/test_rules_exact.py`, so a rule added there is timed here.
Each builds trees of its own shape, and a simulation that goes deeper takes longer under any rule. So PUCT gets the
constant by which its simulations pass as many nodes as the rule's do, and what is judged is the time by node passed.
"""

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
from tests.jaxmcts.test_rules_exact import CASES, Case

CELL = Cell(128, 82, 256)
MOST = 1.5
EXCEPTIONS = {"gumbel": 2.0, "regularised": float("inf"), "sampled_regularised": float("inf")}


def live(rule: Callable[..., jax.Array]) -> jaxmcts.Live:
    """Evaluate a rule of one node's record during the descent."""
    return jaxmcts.Live(Partial(_at_node, rule=rule))


def _at_node(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array, *, rule: Callable[..., jax.Array]) -> jax.Array:
    del key
    return rule(jaxmcts.read_node(tree, index))


def cases() -> dict[str, Case]:
    """Return every rule and backup by name."""
    return {
        "alphazero": Case(select=puct.alphazero, oracle=None),
        "uct": Case(select=jaxmcts.rules.uct.uct, oracle=None),
        "gumbel": Case(select=gumbel.gumbel_interior, oracle=None),
        **CASES,
        "sampled_regularised": Case(select=jaxmcts.Live(regularised.sampled_regularised), oracle=None),
    }


def run(quick: bool) -> list[Row]:
    """Time every rule beside PUCT; with `quick`, three of them."""
    chosen = cases()
    if quick:
        chosen = {name: chosen[name] for name in ("uct", "muzero_tree", "power_mean_backup")}
    return [_cost(name, case, rounds=1 if quick else 5) for name, case in chosen.items()]


def _cost(name: str, case: Case, rounds: int) -> Row:
    is_live = isinstance(case.select, jaxmcts.Live)
    rule, rival = (
        _search(lambda c: case, case),
        _search(_live_puct if is_live else _puct, Case(select=None, oracle=None)),
    )
    c, nodes = _alike(rival, float(rule(1.0)))
    times = timing.take_turns({"rule": lambda: rule(1.0), "puct": lambda: rival(c)}, rounds=rounds)
    share = nodes / float(rule(1.0))
    ratio = timing.ratio(times, "rule", "puct") * share
    most = EXCEPTIONS.get(name, MOST)
    return {
        "rule": name,
        "evaluated": "live" if is_live else "cached",
        "us a simulation": round(1e6 * timing.median(times, "rule") / CELL.simulations, 1),
        "nodes a simulation": round(nodes / share, 1),
        "PUCT's": round(nodes, 1),
        "PUCT's c": round(c, 2),
        "by processor": round(timing.ratio(times, "rule", "puct", "processor") * share, 2),
        "by node": round(ratio, 2),
        "required": f"<= {most:g}",
        "verdict": verdict(ratio <= most),
    }


def _puct(c: jax.Array) -> Case:
    return Case(select=Partial(puct.alphago, c=c, offset=1.0, fpu=jaxmcts.fpu_lose), oracle=None)


def _live_puct(c: jax.Array) -> Case:
    return Case(select=live(_puct(c).select), oracle=None)


def _alike(search: Callable[[float], Any], nodes: float) -> tuple[float, float]:
    """Return the c with which `search` passes about so many nodes a simulation, and how many it does pass."""
    low, high = 0.05, 200.0
    for _ in range(8):
        c = (low * high) ** 0.5
        passed = float(search(c))
        low, high = (c, high) if passed > nodes else (low, c)
    return c, passed


def _search(case_of: Callable[[jax.Array], Case], sizes: Case) -> Callable[[float], Any]:
    """Compile a search by the rule `case_of(c)`; it returns the mean number of nodes that a simulation passed."""
    rule_state = sizes.rule_state(CELL.batch, CELL.simulations + 1, CELL.actions)

    def passed(c: jax.Array, params: Any, key: jax.Array, state: Any, rule_state: Any) -> jax.Array:
        case = case_of(c)
        tree = jaxmcts.search(
            params, key, state, world.model(CELL), select=case.select, root_select=case.root_select or case.select,
            backup=case.backup, num_simulations=CELL.simulations, rule_state=rule_state,
        )  # fmt: skip
        return 1 + jnp.mean(tree.depth[:, 1:], where=tree.total_visits[:, 1:] > 0)

    arguments = jnp.float32(CELL.scale), jax.random.key(0), world.states(CELL, world.roots(CELL)), rule_state
    compiled = jax.jit(passed).lower(jnp.float32(1), *arguments).compile()
    return lambda c: compiled(jnp.float32(c), *arguments)
