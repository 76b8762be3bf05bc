"""What a descent follows: the choice of every node's rule, cached, and rules that are asked on the way instead.

A node's choice depends on its own record alone, so it stands until a backup passes the node: then `refresh` asks the
rule again. That is exact for every rule of one node's record; a rule that needs more is `Live` and is evaluated during
the descent.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.batching import for_row, vary_alike
from jaxmcts.line import Line
from jaxmcts.model import PyTree
from jaxmcts.tree import FINISHED_CHOICE, NO_CHILD, Tree, read, read_node


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Live:
    """A rule to evaluate during the descent: `fn(key, tree, index) -> action` over one row's tree.

    For rules that need a key, statistics of the whole tree or of their ancestors. `tree` has no batch axis and
    `index` is a slot; `jaxmcts.read_node(tree, index)` reads its record.

    With a `start`, something is handed down the path: `fn(key, tree, index, message) -> (action, message)`, where
    `start(tree) -> message` makes the first one, a pytree of arrays. If `root_select` is live and has a `start` too, it
    takes part, else the message of `select` begins below the root.
    """

    fn: Callable[..., Any]
    start: Callable[[Tree], PyTree] | None = None


def first_message(line: Line, *rules: Partial | Live) -> PyTree:
    """Make what the first live rule with a `start` hands down, `[B, ...]`; nothing if there is none."""
    starts = [rule.start for rule in rules if isinstance(rule, Live) and rule.start]
    if not starts:
        return ()

    def start(row: jax.Array, tree: Tree) -> PyTree:
        return checks.arrays(for_row(starts[0], row)(tree), "start")

    return vary_alike(jax.vmap(start)(line.rows, line.in_rows), line.tree.packed)


Choices = tuple[jax.Array, PyTree]  # encoded as in `Tree.choice`, and what live rules hand down


def ask(line: Line, rule: Partial | Live, keys: jax.Array, places: jax.Array, message: PyTree) -> Choices:
    """Evaluate a rule at one node a row, `places [B]`."""
    if isinstance(rule, Live):
        return _ask_live(line, rule, keys, places, message)
    return _ask(line, rule, places), message


def _ask(line: Line, select: Partial, places: jax.Array) -> jax.Array:
    """Evaluate a rule at the nodes `places [P]`."""
    tree = line.tree

    def choice(place: jax.Array) -> jax.Array:
        rule = for_row(select, jax.lax.div(place, jnp.int32(line.capacity)))
        action = checks.action(rule(read_node(tree, place)), tree.num_actions)
        return _encode(action, read(tree.child, place, action), read(tree.choice, place))

    return jax.vmap(choice)(places)


def _ask_live(line: Line, rule: Live, keys: jax.Array, places: jax.Array, message: PyTree) -> Choices:
    def choice(row: jax.Array, key: jax.Array, tree: Tree, slot: jax.Array, message: PyTree) -> Choices:
        fn = for_row(rule.fn, row)
        if rule.start is None:
            return checks.action(fn(key, tree, slot), tree.num_actions), message
        action, passed = checks.pair(fn(key, tree, slot, message), "a live rule", "action, message")
        passed = checks.arrays(passed, "message to hand down")
        checks.same_form("message to hand down", passed, message, holder="`start` gave")
        return checks.action(action, tree.num_actions), passed

    actions, message = jax.vmap(choice)(line.rows, keys, line.in_rows, places - line.bases, message)
    return _encode(actions, read(line.tree.child, places, actions), read(line.tree.choice, places)), message


def _encode(action: jax.Array, child: jax.Array, old_choice: jax.Array) -> jax.Array:
    choice = jnp.where(child > NO_CHILD, child, -1 - action)
    return jnp.where(old_choice == FINISHED_CHOICE, FINISHED_CHOICE, choice)


def refresh(line: Line, select: Partial, path: jax.Array, length: jax.Array, chunk: int) -> Line:
    """Evaluate the rule again at the first `length` places of `path`, `chunk` at a time, and cache what it chooses."""

    def refresh(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        start, choice = carry
        places = jax.lax.dynamic_slice(path, (start,), (chunk,))
        used = start + jnp.arange(chunk, dtype=jnp.int32) < length
        choices = _ask(line.replace(choice=choice), select, places)
        target = jnp.where(used, places, line.end)
        return start + chunk, choice.at[target].set(choices, mode="drop", unique_indices=True)

    _, choice = jax.lax.while_loop(lambda carry: carry[0] < length, refresh, (jnp.int32(0), line.tree.choice))
    return line.replace(choice=choice)


def refill(line: Line, select: Partial) -> Line:
    """Evaluate the rule at every node in use: the cache may come from a run with another rule or other constants."""
    last = jnp.max(line.tree.num_simulations)

    def refill(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        slot, choice = carry
        places = line.bases + slot
        choices = _ask(line.replace(choice=choice), select, places)
        return slot + 1, choice.at[places].set(choices, unique_indices=True)

    _, choice = jax.lax.while_loop(lambda carry: carry[0] <= last, refill, (jnp.int32(1), line.tree.choice))
    return line.replace(choice=choice)


def chunk_size(batch_size: int, num_actions: int) -> int:
    """Nodes evaluated at once by `refresh`: enough to pay for an iteration, few enough to stay in a CPU's cache."""
    most = max(128, 8192 // num_actions) if jax.default_backend() == "cpu" else 2 * batch_size
    # Eight and no more: where no buffer of a loop is above 512 bytes, XLA:CPU runs its kernels without a thread pool.
    # Not `max` and `min`: exported for any batch size (`jax.export`), a search has one that is only a symbol.
    return jax.core.max_dim(8, jax.core.min_dim(2 * batch_size, most))
