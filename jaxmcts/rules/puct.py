"""PUCT: value plus an exploration bonus in proportion to the prior.

    score(a) = Q(a) + scale(s) P(a) / (1 + N(a)),    scale(s) = c sqrt(n)

n is max(S(s) + `offset`, `floor`), S(s) the visits of the node's edges. It decides the first choice at a new node:
with 1, n is N(s), which counts the node's own evaluation, and the first choice follows the prior; with 0 all bonuses
are 0 there, and the prior decides the tie alone. Published programs: 0 AlphaGo Zero's text; 1 AlphaZero and MuZero;
0.01 KataGo; 0 with a floor of 1 lc0.

A constant belongs to a range of values: c on [0, 1] is 2c on [-1, 1].
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import Fpu, complete, fpu_lose, fpu_zero, shrunk_q, unit_interval
from jaxmcts.rules.pick import best
from jaxmcts.tree import Node


def prior_bonus(node: Node, scale: Number) -> jax.Array:
    """Return scale P(a) / (1 + N(a)) `[A]`, the bonus of the whole family."""
    return scale * node.prior / (1 + node.visits)


def visit_base(node: Node, *, offset: Number = 1.0, floor: Number = 0.0) -> jax.Array:
    """Return max(S(s) + offset, floor) `[]`."""
    return jnp.maximum(node.child_visits + jnp.asarray(offset, node.prior.dtype), floor)


def puct_scale(node: Node, *, c: Number = 1.25, offset: Number = 1.0, floor: Number = 0.0) -> jax.Array:
    """Return c sqrt(n) `[]`, n = N(s) by default."""
    return c * jnp.sqrt(visit_base(node, offset=offset, floor=floor))


def exploration_bonus(node: Node, c: Number, *, offset: Number = 1.0, floor: Number = 0.0) -> jax.Array:
    """Return c P(a) sqrt(n) / (1 + N(a)) `[A]`, n = N(s) by default (Rosin 2011; Silver et al. 2017)."""
    return prior_bonus(node, puct_scale(node, c=c, offset=offset, floor=floor))


def alphago_scores(
    node: Node, *, c: Number = 5.0, offset: Number = 0.0, floor: Number = 0.0, fpu: Fpu = fpu_zero
) -> jax.Array:
    """Score the edges `[A]` by Q + c P sqrt(S) / (1 + N) on raw values."""
    return complete(node, fpu(node)) + exploration_bonus(node, c, offset=offset, floor=floor)


def alphago(
    node: Node, *, c: Number = 5.0, offset: Number = 0.0, floor: Number = 0.0, fpu: Fpu = fpu_zero
) -> jax.Array:
    """Select by AlphaGo's PUCT with a constant c (Silver et al. 2016, c = 5 on [-1, 1]) and by AlphaGo Zero's (2017).

    AlphaGo Zero published no constant. Its text starts an edge at 0, a draw; an author said later that it was a loss,
    `fpu_lose`. The plainest rule with a prior; `offset=1` mends the first choice.
    """
    return best(node, alphago_scores(node, c=c, offset=offset, floor=floor, fpu=fpu))


def growing_c(visits: jax.Array, *, c_init: Number, c_base: Number, c_factor: Number = 1.0) -> jax.Array:
    """Return c_init + c_factor ln((visits + c_base) / c_base): AlphaZero's schedule, with a factor."""
    return c_init + c_factor * jnp.log1p(visits / c_base)


def alphazero_c(node: Node, c_init: Number, c_base: Number) -> jax.Array:
    """Return C(s) = ln((1 + N(s) + c_base) / c_base) + c_init, which grows with the visits (Silver et al. 2018)."""
    return growing_c(1 + node.total_visits, c_init=c_init, c_base=c_base)


def alphazero_bonus(node: Node, *, c_init: Number, c_base: Number) -> jax.Array:
    """Return C(s) P(a) sqrt(N(s)) / (1 + N(a)) `[A]`, what AlphaZero and MuZero add to values on [0, 1]."""
    return exploration_bonus(node, alphazero_c(node, c_init, c_base))


def alphazero_scores(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0, fpu: Fpu = fpu_lose) -> jax.Array:
    """Score the edges `[A]` as the published AlphaZero pseudocode does: values on [-1, 1] are mapped to [0, 1].

    `fpu` gives the raw value of unvisited edges. Illegal edges get a score too; `pick` rules them out.
    """
    return unit_interval(complete(node, fpu(node))) + alphazero_bonus(node, c_init=c_init, c_base=c_base)


def alphazero(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0, fpu: Fpu = fpu_lose) -> jax.Array:
    """Select the edge of the highest AlphaZero score."""
    return best(node, alphazero_scores(node, c_init=c_init, c_base=c_base, fpu=fpu))


def polynomial_scores(
    node: Node, *, c: Number = 1.25, exponent: Number = 0.5, offset: Number = 1.0, fpu: Fpu = fpu_zero
) -> jax.Array:
    """Score the edges `[A]` by Q + c P n^exponent / (1 + N) on raw values."""
    return complete(node, fpu(node)) + prior_bonus(node, c * visit_base(node, offset=offset) ** exponent)


def polynomial(
    node: Node, *, c: Number = 1.25, exponent: Number = 0.5, offset: Number = 1.0, fpu: Fpu = fpu_zero
) -> jax.Array:
    """Select by PUCT with another exponent than 1/2: more explores more, and from 1 on nothing is ever left alone."""
    return best(node, polynomial_scores(node, c=c, exponent=exponent, offset=offset, fpu=fpu))


def log_shaped_scores(node: Node, *, c: Number = 1.25, c_base: Number = 0.0, fpu: Fpu = fpu_zero) -> jax.Array:
    """Score the edges `[A]` by Q + c P sqrt(ln(1 + N(s) + c_base) / (1 + N)) on raw values."""
    log_visits = jnp.log1p(node.total_visits + jnp.asarray(c_base, node.prior.dtype))
    return complete(node, fpu(node)) + c * node.prior * jnp.sqrt(log_visits / (1 + node.visits))


def log_shaped(node: Node, *, c: Number = 1.25, c_base: Number = 0.0, fpu: Fpu = fpu_zero) -> jax.Array:
    """Select by a bonus shaped like UCT's, times the prior: an article's variant that no engine is known to use.

    The article's c_base of 19652 makes the logarithm a constant; 0 lets it grow.
    """
    return best(node, log_shaped_scores(node, c=c, c_base=c_base, fpu=fpu))


def shrunk_scores(node: Node, *, c: Number = 1.25, offset: Number = 0.0) -> jax.Array:
    """Score the edges `[A]` by W / (N + 1) + c P sqrt(n) / (1 + N) on raw values."""
    return shrunk_q(node) + exploration_bonus(node, c, offset=offset)


def shrunk(node: Node, *, c: Number = 1.25, offset: Number = 0.0) -> jax.Array:
    """Select by PUCT with W / (N + 1) in place of W / N: to reproduce programs that have it."""
    return best(node, shrunk_scores(node, c=c, offset=offset))
