"""mctx's `search`, run by ours: a model from `recurrent_fn`, rules from the action selection functions."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

import jaxmcts.tree
from jaxmcts import checks
from jaxmcts.backup import mean_backup
from jaxmcts.choices import Live
from jaxmcts.mctx.action_selection import interior_rule, root_rule
from jaxmcts.mctx.base import InteriorActionSelectionFn, LoopFn, RecurrentFn, RootActionSelectionFn, RootFnOutput
from jaxmcts.mctx.recurrent import KeyForm, model_of, root_of
from jaxmcts.mctx.tree import Row, Rows, Tree
from jaxmcts.model import PyTree
from jaxmcts.search import advance, init
from jaxmcts.tree import read_scalars


def search(
    params: PyTree,
    rng_key: jax.Array,
    *,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    root_action_selection_fn: RootActionSelectionFn,
    interior_action_selection_fn: InteriorActionSelectionFn,
    num_simulations: int,
    max_depth: int | None = None,
    invalid_actions: jax.Array | None = None,
    extra_data: Any = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
) -> Tree:
    """Search every root and return the trees.

    `root` holds `prior_logits [B, A]`, `value [B]` and `embedding [B, ...]`; `recurrent_fn(params, rng_key, action [B],
    embedding) -> (RecurrentFnOutput, embedding)` is the model. `root_action_selection_fn(rng_key, tree, node_index)`
    and `interior_action_selection_fn(rng_key, tree, node_index, depth)` see one tree without batch axis and return an
    action; those of this module run cached, others at every level. No node lies deeper than `max_depth`;
    `invalid_actions [B, A]` are ones where a root action is invalid, and it is for the root's function to leave those
    out; `extra_data [B, ...]` comes back as `tree.extra_data`. `loop_fn` is not used.
    """
    del loop_fn
    found = find(
        params, rng_key, root=root, recurrent_fn=recurrent_fn,
        root_action_selection_fn=root_action_selection_fn, interior_action_selection_fn=interior_action_selection_fn,
        num_simulations=num_simulations, max_depth=max_depth, invalid_actions=invalid_actions, extra_data=extra_data,
    )  # fmt: skip
    return found.map(Row.whole)


def find(
    params: PyTree,
    rng_key: jax.Array,
    *,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    root_action_selection_fn: RootActionSelectionFn,
    interior_action_selection_fn: InteriorActionSelectionFn,
    num_simulations: int,
    max_depth: int | None,
    invalid_actions: jax.Array | None,
    extra_data: Any,
) -> Rows:
    """Do what `search` says, before all of the tree is put in mctx's form."""
    checks.count("num_simulations", num_simulations)
    evaluation, state = root_of(root)
    logits = evaluation.prior_logits
    invalid = jnp.zeros_like(logits) if invalid_actions is None else jnp.asarray(invalid_actions)
    checks.per_action("invalid_actions", invalid, logits)
    extra_data = _extra_data(extra_data, logits.shape[0])

    typed_key = checks.key(rng_key)
    key_form = KeyForm.of(rng_key)
    model, params = model_of(recurrent_fn, params, typed_key, key_form, evaluation, state)

    cut = max_depth is not None and max_depth < num_simulations
    beside = {"root_invalid_actions": invalid, "extra_data": extra_data}
    at_root = _Asked(root_action_selection_fn, key_form, cut)
    inside = _Asked(_with_depth(interior_action_selection_fn), key_form, cut)
    tree = init(params, typed_key, state, model, capacity=num_simulations + 1, root_evaluation=evaluation)
    tree = advance(
        params, tree, model,
        select=interior_rule(interior_action_selection_fn) or Live(Partial(inside, **beside)),
        root_select=root_rule(root_action_selection_fn, invalid == 0, extra_data) or Live(Partial(at_root, **beside)),
        backup=mean_backup, num_simulations=num_simulations, max_depth=max_depth,
    )  # fmt: skip
    return Rows(tree=tree, root_invalid_actions=invalid, extra_data=extra_data, cut=cut)


def _extra_data(extra_data: Any, batch_size: int) -> Any:
    extra_data = checks.arrays(extra_data, "extra_data")
    for leaf in jax.tree.leaves(extra_data):
        if leaf.shape[:1] != (batch_size,):
            raise ValueError(
                f"`extra_data` has a leaf of shape {leaf.shape}, expected a leading batch axis of {batch_size}."
            )
    return extra_data


@dataclasses.dataclass(frozen=True, eq=False)
class _Asked:
    """A selection function of the caller's as a live rule. Alike only to itself, as it may change by closure."""

    fn: Callable[[jax.Array, Row, jax.Array], jax.Array]
    key_form: KeyForm
    cut: bool

    def __call__(
        self,
        key: jax.Array,
        tree: jaxmcts.tree.Tree,
        index: jax.Array,
        *,
        root_invalid_actions: jax.Array,
        extra_data: Any,
    ) -> jax.Array:
        row: Row = Row(tree, root_invalid_actions, extra_data, cut=self.cut)
        return self.fn(self.key_form(key), row, index)


def _with_depth(fn: InteriorActionSelectionFn) -> Callable[[jax.Array, Row, jax.Array], jax.Array]:
    """Give an interior selection function the depth of its node, which mctx counts in the dtype of the logits."""

    def select(key: jax.Array, row: Row, index: jax.Array) -> jax.Array:
        depth = read_scalars(row.source, index).depth.astype(row.source.extras.dtype)
        return fn(key, row, index, depth)

    return select
