"""Memory of a large search, as the compiler plans it and as `jaxmcts.memory` foretells it."""

from typing import Any

import jax
import jax.numpy as jnp

import jaxmcts
from jaxmcts.rules.puct import alphazero
from tests.bench import contestants, world
from tests.bench.duel import Row
from tests.bench.timing import verdict
from tests.bench.world import Cell

CELL = Cell(1024, 82, 800, payload=196)  # with the hash, a state of 200 bytes
MOST_BYTES = 1.3 * 2**30
MOST_ERROR = 0.10


def run(quick: bool) -> list[Row]:
    """Compile a search and a run on a donated tree; nothing is executed."""
    del quick
    arguments = _arguments()
    plain = jax.jit(lambda *xs: contestants.tree_of(*xs, cell=CELL)).lower(*arguments).compile()
    tree = jax.eval_shape(_empty_tree, *arguments)
    donated = jax.jit(_run, donate_argnums=1).lower(arguments[0], tree).compile()
    return [_row("search", plain), _row("run, tree donated", donated)]


def _arguments() -> tuple[Any, Any, Any]:
    state = jax.eval_shape(lambda: world.states(CELL, world.roots(CELL)))
    return jax.ShapeDtypeStruct((), jnp.float32), jax.eval_shape(lambda: jax.random.key(0)), state


def _empty_tree(params: Any, key: jax.Array, state: Any) -> jaxmcts.Tree:
    return jaxmcts.init(params, key, state, world.model(CELL), capacity=CELL.simulations + 1)


def _run(params: Any, tree: jaxmcts.Tree) -> jaxmcts.Tree:
    return jaxmcts.run(
        params,
        tree,
        world.model(CELL),
        select=alphazero,
        root_select=alphazero,
        backup=jaxmcts.mean_backup,
        num_simulations=CELL.simulations,
    )


def _row(what: str, compiled: Any) -> Row:
    plan = compiled.memory_analysis()
    used = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    used -= plan.alias_size_in_bytes
    foretold = jaxmcts.memory(
        batch_size=CELL.batch,
        num_actions=CELL.actions,
        capacity=CELL.simulations + 1,
        state=jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), _arguments()[2]),
    )
    error = foretold / used - 1
    return {
        "what": what,
        "cell": f"{CELL.label}, states of 200 bytes",
        "GiB": round(used / 2**30, 3),
        "of it temporary": round(plan.temp_size_in_bytes / 2**30, 3),
        "foretold": round(foretold / 2**30, 3),
        "required": f"<= {MOST_BYTES / 2**30:g}, foretold within {MOST_ERROR:.0%}",
        "verdict": verdict(used <= MOST_BYTES and abs(error) <= MOST_ERROR),
    }
