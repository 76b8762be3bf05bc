"""The choice that every rule ends with, and what several choose by or among."""

import jax
import jax.numpy as jnp

from jaxmcts.tree import Node

_ROUNDING = 1e-5  # relative, of scores of ordinary size


def pick(scores: jax.Array, prior: jax.Array, allowed: jax.Array) -> jax.Array:
    """Return the allowed action of the highest score; ties go to the higher prior, then to the lower index.

    `scores`, `prior` and `allowed` are `[A]`, numbers of any dtype; a prior may be given by its logarithm. A score that
    is not a number counts as the lowest. With nothing allowed the result is 0. Three maxima, because XLA's `argmax` is
    several times slower on CPU.
    """
    dtype = jnp.result_type(float)  # where whole numbers up to 4 A are exact, as they are not in half precision
    scores, prior, allowed = jnp.asarray(scores, dtype), jnp.asarray(prior, dtype), jnp.asarray(allowed)
    num_actions = scores.shape[0]
    low = jnp.finfo(scores.dtype).min
    ranked = jnp.where(allowed, jnp.where(scores > low, scores, low), -jnp.inf)
    top = _maximum(ranked)
    tied = allowed & (ranked == top)
    ranked_prior = jnp.where(tied, prior, -jnp.inf)
    best = tied & (ranked_prior == _maximum(ranked_prior))
    # A compiler may compute a score twice and round it differently for the maximum (a fused multiply-add). Then nothing
    # is best, and the first action that is within rounding of the maximum is taken; never one that is not allowed.
    reach = jnp.clip(top, low / 2, -low / 2)  # an infinite score less something is not a number
    near = ranked >= reach - _ROUNDING * jnp.maximum(jnp.abs(reach), 1)
    # Floats, for their maximum is vectorised and that of integers is not.
    countdown = jnp.arange(num_actions, 0, -1, dtype=scores.dtype)
    tier = jnp.where(best, 3 * num_actions, jnp.where(near, 2 * num_actions, num_actions))
    first = _maximum(jnp.where(allowed, countdown + tier, num_actions)).astype(jnp.int32)
    return num_actions - 1 - jax.lax.rem(first - 1, jnp.int32(num_actions))


def best(node: Node, scores: jax.Array) -> jax.Array:
    """Return the legal action of the highest score `[A]`, ties as in `pick`."""
    return pick(scores, node.prior_logits, node.legal_action_mask)  # not by the prior: `exp` takes longer than the rest


def owed(node: Node, policy: jax.Array) -> jax.Array:
    """Score the edges `[A]` by policy(a) - N(a) / (1 + sum N): the best one is furthest behind the policy.

    Visits in proportion to a policy without drawing (Danihelka et al. 2022, equation 14).
    """
    return policy - node.visits / node.total_visits


def has_most_visits(node: Node) -> jax.Array:
    """Return the legal edges `[A]` that have as many visits as the most visited of them."""
    most = jnp.max(jnp.where(node.legal_action_mask, node.visits, -1))
    return node.legal_action_mask & (node.visits == most)


def _maximum(x: jax.Array) -> jax.Array:
    """Return the maximum of `x [A]`.

    XLA's CPU backend would fuse the maximum with the broadcast that follows into one call that is five times slower;
    rounding to the precision it already has keeps the two apart and changes nothing.
    """
    info = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(jnp.max(x), info.nexp, info.nmant)
