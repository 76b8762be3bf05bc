"""What to take from a finished tree: the action to play, training targets, summaries.

Everything is per row, values in the view of the player to move at the root; edges that were never visited read 0.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts.batching import as_partial, for_row
from jaxmcts.model import Number, PyTree
from jaxmcts.qvalue import Fpu, fpu_parent
from jaxmcts.rules.final import robust
from jaxmcts.rules.regularised import regularised_policy
from jaxmcts.tree import NO_CHILD, ROOT, Node, Tree, demand_tree, read, read_node


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """The root's statistics, `[B, A]` by action and `[B]` for the state."""

    prior: jax.Array  # [B, A] 0 where illegal
    visits: jax.Array  # [B, A] int32
    visit_shares: jax.Array  # [B, A] visits / sum; the prior if nothing was visited; 0 in a finished row
    q: jax.Array  # [B, A] view of the player to move at the root, 0 where unvisited
    value: jax.Array  # [B] search value
    raw_value: jax.Array  # [B] value before search


def at_root(tree: Tree, fn: Callable[[Node], PyTree]) -> PyTree:
    """Apply `fn(node)` to every root; its constants, bound with `Partial`, are scalars or `[B, ...]`."""
    demand_tree(tree)
    fn = as_partial("fn", fn, "node")
    rows = jnp.arange(tree.batch_size, dtype=jnp.int32)
    return jax.vmap(lambda row: for_row(fn, row)(read_node(tree, row, jnp.int32(ROOT))))(rows)


def root(tree: Tree) -> Node:
    """Return the records of all roots, each field with a leading B axis."""
    return at_root(tree, _itself)


def _itself(node: Node) -> Node:
    return node


def summary(tree: Tree) -> Summary:
    """Summarise the roots."""
    node = root(tree)
    return Summary(
        prior=node.prior,
        visits=node.visits,
        visit_shares=visit_shares(tree),
        q=node.q,
        value=node.value,
        raw_value=node.raw_value,
    )


def visit_shares(tree: Tree) -> jax.Array:
    """Return visits / sum of visits at the root `[B, A]`: AlphaZero's policy target.

    A row without any visit gives the prior, a finished row zeros.
    """
    node = root(tree)
    total = jnp.sum(node.visits, axis=-1, keepdims=True)
    return jnp.where(total > 0, node.visits / jnp.maximum(total, 1), node.prior)


def most_visited(tree: Tree) -> jax.Array:
    """Return the most visited root action `[B]`, ties by q, then by prior, then by index; 0 in a finished row."""
    return at_root(tree, robust)


def regularised_targets(tree: Tree, *, c: Number = 1.25, fpu: Fpu = fpu_parent) -> jax.Array:
    """Return the regularised policy of the roots `[B, A]` (Grill et al. 2020), as a policy target or to act by.

    The prior in a row without any visit, zeros in a finished one. See `rules.regularised`.
    """
    return at_root(tree, Partial(regularised_policy, c=c, fpu=fpu))


def pruned_visit_shares(tree: Tree, prune: Callable[[Node], jax.Array]) -> jax.Array:
    """Return a policy target `[B, A]` from the visits that `prune(node) -> visits [A]` leaves of each root.

    `Partial(pruning.pruned_visits, scale=...)`, say; under root noise, wrap it in `root.with_prior`, for it needs the
    prior that the search used. A row without any visit gives the prior, a finished row zeros.
    """
    visits, prior = at_root(tree, prune), root(tree).prior
    total = jnp.sum(visits, axis=-1, keepdims=True)
    return jnp.where(total > 0, visits / jnp.where(total > 0, total, 1), prior)


def sample(keys: jax.Array, weights: jax.Array, temperature: Number) -> jax.Array:
    """Draw an action `[B]` in proportion to weights^(1 / temperature), `weights [B, A]` as from `visit_shares`.

    `temperature` is `[]` or `[B]` and positive. Computed in logs from the largest weight, so that a low temperature
    neither overflows nor underflows; an action of weight 0 is never drawn. A row of zeros gives 0.
    """
    logits = tempered_logits(weights, temperature)
    drawn = jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
    return jnp.where(jnp.any(weights > 0, axis=-1), drawn, 0)


def tempered_logits(weights: jax.Array, temperature: Number) -> jax.Array:
    """Return the logits `[B, A]` of weights^(1 / temperature), 0 for the largest, -inf for weight 0."""
    largest = jnp.max(weights, axis=-1, keepdims=True)
    inverse = 1 / jnp.broadcast_to(jnp.asarray(temperature, weights.dtype), weights.shape[:1])[:, None]
    ratio = jnp.where(weights > 0, weights / jnp.where(largest > 0, largest, 1), 1)
    logits = jnp.where(weights > 0, jnp.log(ratio) * inverse, -jnp.inf)
    return jnp.where(largest > 0, logits, 0)


@functools.partial(jax.jit, static_argnames="max_length")
def principal_variation(tree: Tree, max_length: int) -> jax.Array:
    """Follow the most visited edge from each root: actions `[B, max_length]`, -1 past the end of the line."""
    rows = jnp.arange(tree.batch_size, dtype=jnp.int32)

    def step(slot: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        node = jax.vmap(lambda row, slot: read_node(tree, row, jnp.maximum(slot, ROOT)))(rows, slot)
        action = jax.vmap(robust)(node)
        child = read(tree.child, rows, jnp.maximum(slot, ROOT), action)
        visited = (slot >= ROOT) & (jnp.max(node.visits, axis=-1) > 0)
        following = jnp.where(visited & (child > NO_CHILD), child, -1)
        return following, jnp.where(visited, action, -1)

    _, line = jax.lax.scan(step, rows * ROOT, None, length=max_length)
    return line.T
