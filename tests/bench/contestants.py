"""The searches that are timed: ours, mctx and the C++ yardstick, under one rule in one world.

The rule is AlphaZero's PUCT on [0, 1] without noise. Each contestant is a `prepare(cell)` that compiles and
returns a call without arguments, which searches and returns the visits `[B, A]` of the root's edges.
"""

import ctypes
import dataclasses
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

import jaxmcts
from jaxmcts.rules.puct import alphazero
from tests.bench import world
from tests.bench.world import Cell

Search = Callable[[], np.ndarray]
Prepare = Callable[[Cell], Search]


def tree_of(params: Any, key: jax.Array, state: Any, *, cell: Cell) -> jaxmcts.Tree:
    """Search with the benchmark's rule; the whole tree comes back."""
    fpu = jax.tree_util.Partial(jaxmcts.fpu_constant, value=jnp.float32(cell.fpu))
    rule = jax.tree_util.Partial(alphazero, fpu=fpu)
    return jaxmcts.search(
        params,
        key,
        state,
        world.model(cell),
        select=rule,
        root_select=rule,
        backup=jaxmcts.mean_backup,
        num_simulations=cell.simulations,
    )


def jaxmcts_search(cell: Cell) -> Search:
    """Prepare our search."""

    def visits(params: Any, key: jax.Array, state: Any) -> jax.Array:
        return tree_of(params, key, state, cell=cell).visits[:, 0]

    return _compiled(visits, cell)


def mctx_search(cell: Cell, names: Any = mctx, own_transform: bool = False) -> Search:
    """Prepare mctx's search, or ours by mctx's names: `names` is the module that the program imports.

    The q-transform is mctx's, or with `own_transform` the same in a function of the program's own.
    """
    step = world.recurrent_fn(cell, names)
    transform = own_by_min_max if own_transform else names.qtransform_by_min_max
    # An unvisited edge reads the lowest value. That is (q + 1) / 2 but for a constant, which changes no choice.
    transform = functools.partial(transform, min_value=cell.fpu, max_value=cell.fpu + 2)

    def visits(params: Any, key: jax.Array, state: Any) -> jax.Array:
        output = names.muzero_policy(
            params,
            key,
            world.root_output(cell, state, names),
            step,
            cell.simulations,
            qtransform=transform,
            dirichlet_fraction=0.0,
        )
        return output.search_tree.summary().visit_counts

    return _compiled(visits, cell)


def own_by_min_max(tree: Any, node_index: jax.Array, *, min_value: float, max_value: float) -> jax.Array:
    """Map q to [0, 1], unvisited edges to 0, as a user would write it."""
    q = jnp.where(tree.children_visits[node_index] > 0, tree.qvalues(node_index), min_value)
    return (q - min_value) / (max_value - min_value)


def _compiled(visits: Callable[[Any, jax.Array, Any], jax.Array], cell: Cell) -> Search:
    # A key of the old kind: JAX dispatches it without Python, which in the smallest cells would be half the time.
    arguments = jnp.float32(cell.scale), jax.random.PRNGKey(0), world.states(cell, world.roots(cell))
    compiled = jax.jit(visits).lower(*arguments).compile()
    return lambda: np.asarray(compiled(*arguments))


@dataclasses.dataclass(frozen=True)
class Shape:
    """How deep the trees of a cell grow: edges from the root to the node a simulation makes."""

    mean: float  # over simulations and trees
    deepest: float  # of the trees' deepest, over simulations: what a lockstep descent pays for


def yardstick_search(cell: Cell) -> Search:
    """Prepare the C++ search as a network would need it: all trees advance together."""
    roots = world.roots(cell)
    return lambda: _yardstick(cell, roots, tree_by_tree=False)[0]


def yardstick_search_by_tree(cell: Cell) -> Search:
    """Prepare the C++ search at its fastest: one tree after the other, each within the cache."""
    roots = world.roots(cell)
    return lambda: _yardstick(cell, roots, tree_by_tree=True)[0]


def shape_of(cell: Cell) -> Shape:
    """Measure the trees of a cell with the C++ search."""
    return _yardstick(cell, world.roots(cell), tree_by_tree=True)[1]


def _yardstick(cell: Cell, roots: np.ndarray, *, tree_by_tree: bool) -> tuple[np.ndarray, Shape]:
    visits = np.zeros((cell.batch, cell.actions), np.int32)
    depths, deepest = np.zeros((2, cell.simulations), np.int32)
    sizes = cell.batch, cell.actions, cell.simulations
    world_and_rule = ctypes.c_float(cell.scale), ctypes.c_float((cell.fpu + 1) / 2)
    outputs = map(_pointer, (visits, depths, deepest))
    _library().search(_pointer(roots), *sizes, *world_and_rule, int(tree_by_tree), *outputs)
    return visits, Shape(mean=float(depths.mean() / cell.batch), deepest=float(deepest.mean()))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@functools.cache
def _library() -> ctypes.CDLL:
    """Compile yardstick.cpp for this machine and load it."""
    source = Path(__file__).with_name("yardstick.cpp")
    folder = tempfile.TemporaryDirectory(prefix="yardstick-")
    target = Path(folder.name) / "yardstick.so"
    flags = ["-std=c++17", "-O3", "-march=native", "-ffast-math", "-fopenmp-simd", "-shared", "-fPIC"]
    subprocess.run([os.environ.get("CXX", "c++"), *flags, str(source), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    folder.cleanup()
    return library
