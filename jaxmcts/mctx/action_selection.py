"""Action selection: which edge a simulation follows at a node.

Each function has mctx's form, `fn(rng_key, tree, node_index[, depth])` over a tree without batch axis, and that of our
rules, `fn(node)`. The search asks the rule, which it can cache, for the functions here with q-transforms from here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts.mctx.base import QTransform
from jaxmcts.mctx.qtransforms import (
    all_scalars,
    node_form,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
    unbound,
)
from jaxmcts.mctx.record import Record
from jaxmcts.mctx.tree import Tree, node_of
from jaxmcts.model import Number
from jaxmcts.root import considered_visits
from jaxmcts.rules.gumbel import is_due
from jaxmcts.rules.pick import best, owed, pick
from jaxmcts.rules.puct import alphazero_bonus
from jaxmcts.tree import Node

NodeTransform = Callable[[Node], jax.Array]

_TIE_NOISE = 1e-7
_LOWEST_SCORE = -1e9  # below it, allowed edges are all alike


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class GumbelMuZeroExtraData(Record):
    """What Gumbel MuZero's root needs in `tree.extra_data`."""

    root_gumbel: jax.Array  # [B, A] scaled


def muzero_action_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: Any,
    depth: Any,
    *,
    pb_c_init: Number = 1.25,
    pb_c_base: Number = 19652.0,
    qtransform: QTransform = qtransform_by_parent_and_siblings,
) -> jax.Array:
    """Select by MuZero's PUCT (Schrittwieser et al. 2020, appendix B) with values that `qtransform` maps to [0, 1].

    Called directly it breaks ties by noise from the key; the search leaves the noise out and asks `muzero`.
    `root_invalid_actions` count at depth 0.
    """
    node = node_of(tree, node_index)
    noise = _TIE_NOISE * jax.random.uniform(rng_key, node.prior.shape)
    scores = qtransform(tree, node_index) + alphazero_bonus(node, c_init=pb_c_init, c_base=pb_c_base) + noise
    return pick(scores, node.prior, (tree.root_invalid_actions == 0) | (depth != 0))


def gumbel_muzero_root_action_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: Any,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: QTransform = qtransform_completed_by_mix_value,
) -> jax.Array:
    """Select a root action by sequential halving on gumbel + logits + q; `tree.extra_data` has `root_gumbel [A]`."""
    del rng_key
    valid = tree.root_invalid_actions == 0
    schedule = considered_visits(
        valid[None], max_num_considered_actions=max_num_considered_actions, num_simulations=num_simulations
    )[0]
    return gumbel_root(
        dataclasses.replace(node_of(tree, node_index), legal_action_mask=valid),
        gumbel=tree.extra_data.root_gumbel,
        schedule=schedule,
        qtransform=lambda _: qtransform(tree, node_index),
    )


def gumbel_muzero_interior_action_selection(
    rng_key: jax.Array,
    tree: Tree,
    node_index: Any,
    depth: Any,
    *,
    qtransform: QTransform = qtransform_completed_by_mix_value,
) -> jax.Array:
    """Select the edge that is furthest behind the improved policy (Danihelka et al. 2022, section 5)."""
    del rng_key, depth
    return gumbel_interior(node_of(tree, node_index), qtransform=lambda _: qtransform(tree, node_index))


def muzero(
    node: Node, *, qtransform: NodeTransform, pb_c_init: Number = 1.25, pb_c_base: Number = 19652.0
) -> jax.Array:
    """Select by MuZero's PUCT."""
    return best(node, qtransform(node) + alphazero_bonus(node, c_init=pb_c_init, c_base=pb_c_base))


def gumbel_interior(node: Node, *, qtransform: NodeTransform) -> jax.Array:
    """Select the edge that is furthest behind the improved policy softmax(logits + q)."""
    return best(node, owed(node, jax.nn.softmax(node.prior_logits + qtransform(node))))


def gumbel_root(node: Node, *, gumbel: jax.Array, schedule: jax.Array, qtransform: NodeTransform) -> jax.Array:
    """Select the best root edge of those with the visits that `schedule [n]` asks for at this simulation."""
    return pick(gumbel_scores(node.prior_logits, gumbel, qtransform(node)), node.prior, is_due(node, schedule))


def gumbel_scores(logits: jax.Array, gumbel: jax.Array, q: jax.Array) -> jax.Array:
    """Score root edges `[A]` by gumbel + logits + q, q completed and transformed."""
    return jnp.maximum(_LOWEST_SCORE, gumbel + logits - jnp.max(logits) + q)


def interior_rule(fn: Callable[..., jax.Array]) -> Partial | None:
    """Return an interior selection function as a rule, or None if it is not one of these two with known q-transform."""
    fn, constants = unbound(fn)
    if fn is muzero_action_selection:
        return _bind(muzero, constants, qtransform_by_parent_and_siblings)
    if fn is gumbel_muzero_interior_action_selection:
        return _bind(gumbel_interior, constants, qtransform_completed_by_mix_value)
    return None


def root_rule(fn: Callable[..., jax.Array], valid: jax.Array, extra_data: Any) -> Partial | None:
    """Return a root selection function as a rule over the actions `valid [B, A]`, or None as above."""
    fn, constants = unbound(fn)
    rule = None
    if fn is muzero_action_selection and _is_zero(constants.pop("depth", None)):
        rule = _bind(muzero, constants, qtransform_by_parent_and_siblings)
    elif fn is gumbel_muzero_root_action_selection and {"num_simulations", "max_num_considered_actions"} <= set(
        constants
    ):
        sizes = {name: constants.pop(name) for name in ("num_simulations", "max_num_considered_actions")}
        rule = _bind(gumbel_root, constants, qtransform_completed_by_mix_value)
        rule = rule and Partial(rule, gumbel=extra_data.root_gumbel, schedule=considered_visits(valid, **sizes))
    return rule and Partial(_among, rule=rule, valid=valid)


def _bind(form: Callable[..., jax.Array], constants: dict[str, Any], qtransform: QTransform) -> Partial | None:
    transform = node_form(constants.pop("qtransform", qtransform))
    return Partial(form, qtransform=transform, **constants) if transform and all_scalars(constants) else None


def _among(node: Node, *, rule: Callable[[Node], jax.Array], valid: jax.Array) -> jax.Array:
    return rule(dataclasses.replace(node, legal_action_mask=valid))


def _is_zero(depth: Any) -> bool:
    return isinstance(depth, int | float) and depth == 0
