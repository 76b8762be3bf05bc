"""Q-transforms: from the raw values of a node's edges to the scale that a selection rule adds them on.

Each has two forms: mctx's, `qtransform(tree, node_index) -> [A]`, and that of our rules, `fn(node) -> [A]`, which can
be cached. Both are one formula, for a node read from mctx's tree is the same record.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts.mctx.tree import Tree, node_of
from jaxmcts.model import Number
from jaxmcts.qvalue import by_siblings, complete, mixed_value
from jaxmcts.rules.gumbel import advantage
from jaxmcts.tree import Node


def qtransform_by_min_max(tree: Tree, node_index: Any, *, min_value: Number, max_value: Number) -> jax.Array:
    """Map values on `[min_value, max_value]` to [0, 1]; unvisited edges are worth the least."""
    return by_min_max(node_of(tree, node_index), min_value=min_value, max_value=max_value)


def qtransform_by_parent_and_siblings(tree: Tree, node_index: Any, *, epsilon: Number = 1e-8) -> jax.Array:
    """Map values to [0, 1] by the least and greatest among the node's value and its visited edges; unvisited give 0.

    `epsilon` is the smallest width that is stretched to 1.
    """
    return by_siblings(node_of(tree, node_index), epsilon=epsilon)


def qtransform_completed_by_mix_value(
    tree: Tree,
    node_index: Any,
    *,
    value_scale: Number = 0.1,
    maxvisit_init: Number = 50.0,
    rescale_values: Number = True,
    use_mixed_value: Number = True,
    epsilon: Number = 1e-8,
) -> jax.Array:
    """Return sigma(completed q), what Gumbel MuZero adds to the logits (Danihelka et al. 2022, appendix D).

    Unvisited edges are worth the mixed value, or with `use_mixed_value=False` the node's raw value; with
    `rescale_values` the edges are mapped to [0, 1], a width of `epsilon` at least; then all is multiplied by
    `(maxvisit_init + most visits) * value_scale`.
    """
    return completed_by_mix_value(
        node_of(tree, node_index),
        value_scale=value_scale,
        maxvisit_init=maxvisit_init,
        rescale_values=rescale_values,
        use_mixed_value=use_mixed_value,
        epsilon=epsilon,
    )


def by_min_max(node: Node, *, min_value: Number, max_value: Number) -> jax.Array:
    return (complete(node, min_value) - min_value) / (max_value - min_value)


def completed_by_mix_value(
    node: Node,
    *,
    value_scale: Number = 0.1,
    maxvisit_init: Number = 50.0,
    rescale_values: Number = True,
    use_mixed_value: Number = True,
    epsilon: Number = 1e-8,
) -> jax.Array:
    q = complete(node, jnp.where(use_mixed_value, mixed_value(node), node.raw_value))
    return advantage(node, q, c_visit=maxvisit_init, c_scale=value_scale, rescale_q=rescale_values, epsilon=epsilon)


_NODE_FORMS: dict[Callable[..., jax.Array], Callable[..., jax.Array]] = {
    qtransform_by_min_max: by_min_max,
    qtransform_by_parent_and_siblings: by_siblings,
    qtransform_completed_by_mix_value: completed_by_mix_value,
}


def node_form(qtransform: Callable[..., jax.Array]) -> Partial | None:
    """Return a q-transform as a function of our node record, or None if it is not one of these three."""
    fn, constants = unbound(qtransform)
    form = next((form for known, form in _NODE_FORMS.items() if known is fn), None)
    return Partial(form, **constants) if form and all_scalars(constants) else None


def unbound(fn: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Take the keywords off a `functools.partial`."""
    return (fn.func, dict(fn.keywords)) if isinstance(fn, functools.partial) and not fn.args else (fn, {})


def all_scalars(constants: dict[str, Any]) -> bool:
    """True if a rule can hold these as they are; arrays of a rule's own have a row for each tree."""
    return all(jnp.ndim(constant) == 0 for constant in constants.values())
