"""Visits as a policy target without those that only exploration asked for (Wu 2019, section 3.2).

The most visited edge keeps its visits. Any other keeps as many as PUCT would have given it with the values known at the
end: from N'(a) = scale P(a) / (score* - Q(a)) - 1 on, its score does not exceed that of the most visited.

`scale(node)` is what the rule of the search multiplies P / (1 + N) by, for raw values: `engines.katago_scale`, or
`puct.puct_scale` with the rule's constant (for AlphaZero, whose constant is for [0, 1], twice that). The prior must be
the one that the search used: under root noise, wrap these in `root.with_prior`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.rules.final import robust
from jaxmcts.rules.gates import forced_visits
from jaxmcts.rules.puct import prior_bonus
from jaxmcts.tree import Node

Scale = Callable[[Node], jax.Array]

_SLACK = 1e-4  # a count that should be whole may come out a rounding off


def justified_visits(node: Node, *, scale: Scale) -> jax.Array:
    """Return N'(a) `[A]`, real numbers from 0 to N(a); N(a) itself where Q is at least the score to beat."""
    top, factor = _is_top(node), scale(node)
    gap = jnp.max(jnp.where(top, node.q + prior_bonus(node, factor), -jnp.inf)) - node.q
    wanted = factor * node.prior / jnp.where(gap > 0, gap, 1) - 1
    return jnp.where(top | (gap <= 0), node.visits, jnp.clip(wanted, 0, node.visits))


def pruned_visits(node: Node, *, scale: Scale) -> jax.Array:
    """Return the visits `[A]` that KataGo's program leaves, whole numbers as floats: N' rounded up."""
    return jnp.ceil(justified_visits(node, scale=scale) - _SLACK)


def pruned_forced_visits(node: Node, *, scale: Scale, k: Number = 2.0) -> jax.Array:
    """Return the visits `[A]` that KataGo's paper leaves: it takes at most the forced ones, then drops single ones.

    `k` is that of `gates.forced_playouts`.
    """
    unforced = node.visits - jnp.floor(forced_visits(node, k=k) + _SLACK)
    kept = jnp.minimum(jnp.maximum(pruned_visits(node, scale=scale), unforced), node.visits)
    return jnp.where((kept > 1) | _is_top(node), kept, 0)


def _is_top(node: Node) -> jax.Array:
    return jnp.arange(node.visits.shape[0]) == robust(node)
