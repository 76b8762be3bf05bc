"""The PUCT rules of three open engines, with the constants they play with.

    lc0         Q + (1.745 + 3.894 ln((N(s) + 38739) / 38739)) sqrt(max(S, 1)) P / (1 + N)
    Leela Zero  winrate + 0.5 sqrt(S ln(0.015 S + 1.7)) P / (1 + N)
    KataGo      Q + (1 + 0.45 ln((S + 500) / 500)) f(s) sqrt(S + 0.01) P / (1 + N)

From their sources (lc0 909a4082 params.cc and search.cc, Leela Zero 3ee6d20 UCTNode.cpp, KataGo 6a1fc5de
searchexplorehelpers.cpp), for values on [-1, 1], one visit a weight of 1. The constants were tuned for networks and
budgets of their own: take one when comparing with that engine, or for budgets of thousands of simulations.
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import Fpu, complete, fpu_blended, fpu_reduction, node_variance, unit_interval
from jaxmcts.rules.pick import best
from jaxmcts.rules.puct import growing_c, prior_bonus, visit_base
from jaxmcts.tree import Node

LC0_FPU = partial(fpu_reduction, k=0.33)
LEELA_ZERO_FPU = partial(fpu_reduction, k=0.5)  # 0.25 of a winrate


def lc0_scores(
    node: Node,
    *,
    c_init: Number = 1.745,
    c_factor: Number = 3.894,
    c_base: Number = 38739.0,
    fpu: Fpu = LC0_FPU,
) -> jax.Array:
    """Score the edges `[A]` as lc0 does, on raw values."""
    c = growing_c(node.total_visits, c_init=c_init, c_factor=c_factor, c_base=c_base)
    scale = c * jnp.sqrt(visit_base(node, offset=0, floor=1))
    return complete(node, fpu(node)) + prior_bonus(node, scale)


def lc0(
    node: Node,
    *,
    c_init: Number = 1.745,
    c_factor: Number = 3.894,
    c_base: Number = 38739.0,
    fpu: Fpu = LC0_FPU,
) -> jax.Array:
    """Select as lc0 does. It also softens every prior by a temperature of 1.359: divide the logits in the model."""
    return best(node, lc0_scores(node, c_init=c_init, c_factor=c_factor, c_base=c_base, fpu=fpu))


def leela_zero_scores(node: Node, *, c: Number = 0.5, fpu: Fpu = LEELA_ZERO_FPU) -> jax.Array:
    """Score the edges `[A]` as Leela Zero does, on winrates in [0, 1]; `fpu` is in raw units, twice a winrate's."""
    visits = visit_base(node, offset=0)
    scale = c * jnp.sqrt(visits * jnp.log(0.015 * visits + 1.7))
    return unit_interval(complete(node, fpu(node))) + prior_bonus(node, scale)


def leela_zero(node: Node, *, c: Number = 0.5, fpu: Fpu = LEELA_ZERO_FPU) -> jax.Array:
    """Select as Leela Zero does. At a new node every bonus is 0 and the prior decides."""
    return best(node, leela_zero_scores(node, c=c, fpu=fpu))


def katago_scale(
    node: Node, *, c_init: Number = 1.0, c_factor: Number = 0.45, c_base: Number = 500.0, offset: Number = 0.01
) -> jax.Array:
    """Return KataGo's scale(s) `[]` without the factor for the variance; self-play used c_init 1.1, c_factor 0."""
    visits = visit_base(node, offset=0)
    c = growing_c(visits, c_init=c_init, c_factor=c_factor, c_base=c_base)
    return c * jnp.sqrt(visits + offset)


def katago_scores(
    node: Node,
    *,
    c_init: Number = 1.0,
    c_factor: Number = 0.45,
    c_base: Number = 500.0,
    factor: Number = 1.0,
    fpu: Fpu = fpu_blended,
) -> jax.Array:
    """Score the edges `[A]` as KataGo does, on raw values; `factor` multiplies every bonus."""
    scale = katago_scale(node, c_init=c_init, c_factor=c_factor, c_base=c_base)
    return complete(node, fpu(node)) + prior_bonus(node, scale * factor)


def katago(
    node: Node,
    *,
    c_init: Number = 1.0,
    c_factor: Number = 0.45,
    c_base: Number = 500.0,
    fpu: Fpu = fpu_blended,
) -> jax.Array:
    """Select as KataGo does with a constant spread of values (`cpuctUtilityStdevScale` 0, as when it trains)."""
    return best(node, katago_scores(node, c_init=c_init, c_factor=c_factor, c_base=c_base, fpu=fpu))


def stdev_factor(
    node: Node, *, stdev_scale: Number = 0.85, stdev_prior: Number = 0.4, prior_weight: Number = 2.0
) -> jax.Array:
    """Return f(s) = 1 + stdev_scale (sd / stdev_prior - 1) `[]`, sd the spread of the values below s.

    sd^2 is the mean square of those values, mixed with `prior_weight` values of spread `stdev_prior`, less V(s)^2; at a
    new node sd is `stdev_prior`. Needs `variance_backup`.
    """
    weight, square = node.total_visits.astype(node.q.dtype), node.value**2
    mean_square = node_variance(node) + square
    mixed = ((square + stdev_prior**2) * prior_weight + mean_square * weight) / (prior_weight + weight - 1)
    stdev = jnp.where(weight > 1, jnp.sqrt(jnp.maximum(mixed - square, 0)), stdev_prior)
    return 1 + stdev_scale * (stdev / stdev_prior - 1)


def katago_by_variance(
    node: Node,
    *,
    c_init: Number = 1.0,
    c_factor: Number = 0.45,
    c_base: Number = 500.0,
    stdev_scale: Number = 0.85,
    stdev_prior: Number = 0.4,
    prior_weight: Number = 2.0,
    fpu: Fpu = fpu_blended,
) -> jax.Array:
    """Select as KataGo does when it plays: explore more where the values below the node are spread out.

    Needs `variance_backup`. For values without bounds give `stdev_prior` in their units.
    """
    factor = stdev_factor(node, stdev_scale=stdev_scale, stdev_prior=stdev_prior, prior_weight=prior_weight)
    scores = katago_scores(node, c_init=c_init, c_factor=c_factor, c_base=c_base, factor=factor, fpu=fpu)
    return best(node, scores)
