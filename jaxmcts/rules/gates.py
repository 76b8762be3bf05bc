"""Gates: which edges a rule may choose from at a node. A gate never shuts out everything that is legal.

A gate is `gate(node) -> allowed [A]`, and `gated` puts it before any rule:

    Partial(gated, rule=Partial(alphazero, c_init=2.5), gate=Partial(widening, exponent=0.4))

The prior stays as it is, so that the bonus of an edge does not change when another edge is let in.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.rules.pick import pick
from jaxmcts.tree import Node

Gate = Callable[[Node], jax.Array]


def gated(node: Node, *, rule: Callable[[Node], jax.Array], gate: Gate) -> jax.Array:
    """Select by `rule` among the legal edges that `gate` allows; among all legal ones should it allow none."""
    allowed = node.legal_action_mask & gate(node)
    allowed = jnp.where(jnp.any(allowed), allowed, node.legal_action_mask)
    return rule(dataclasses.replace(node, legal_action_mask=allowed))


def policy_filter(node: Node, *, threshold: Number = 0.001) -> jax.Array:
    """Allow edges `[A]` with a prior above `threshold`, and always the highest.

    For many actions of which most are hopeless. What is filtered out is never found, however long the search.
    """
    return (node.prior > threshold) | (node.prior == jnp.max(node.prior))


def widening(node: Node, *, c: Number = 1.0, exponent: Number = 0.5) -> jax.Array:
    """Allow the visited edges `[A]` and, while they are fewer than ceil(c N(s)^exponent), the next by prior.

    Progressive widening (Coulom 2007), for large or sampled action sets; exponents of 0.25 to 0.5 are usual. Where
    unvisited edges differ by their prior alone, as under all rules here but RAVE, it is the same as a choice among the
    first so many by prior, without sorting them.
    """
    unvisited = node.legal_action_mask & (node.visits == 0)
    num_visited = jnp.sum(node.visits > 0, dtype=node.prior.dtype)
    wanted = c * node.total_visits.astype(node.prior.dtype) ** exponent
    opens = num_visited < jnp.maximum(jnp.ceil(wanted - 1e-4), 1)  # a power that should be whole may come out above
    following = jnp.arange(node.visits.shape[0]) == pick(node.prior, node.prior, unvisited)
    return (node.visits > 0) | (following & unvisited & opens)


def can_catch_up(node: Node, *, num_simulations: Number, factor: Number = 1.0) -> jax.Array:
    """Allow edges `[A]` that can still become the most visited of a root that gets `num_simulations` in all.

    Dynamic pruning, "smart pruning" in lc0, whose `factor` of 1.33 cuts earlier: max N - N(a) must not exceed the
    simulations left, divided by it. It saves work when only the move counts; it distorts visit counts as a target. For
    the root of a new tree.
    """
    left = (num_simulations - node.child_visits) / factor
    return jnp.max(node.visits) - node.visits <= left


def forced_playouts(node: Node, *, k: Number = 2.0) -> jax.Array:
    """Allow the edges `[A]` that are short of sqrt(k P S) visits, if there are any, else all (Wu 2019, section 3.2).

    Only edges with a visit can be short. For the root in self-play, under noise: it tries what the noise suggests more
    than once. Take the forced visits out of the policy target again with `pruning.pruned_visits`.
    """
    short = (node.visits > 0) & (node.visits < forced_visits(node, k=k))
    return jnp.where(jnp.any(short & node.legal_action_mask), short, True)


def forced_visits(node: Node, *, k: Number = 2.0) -> jax.Array:
    """Return sqrt(k P(a) S(s)) `[A]`, the visits that an edge once visited gets at least."""
    return jnp.sqrt(k * node.prior * node.child_visits)
