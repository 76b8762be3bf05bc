"""The choice that every rule ends with."""

import jax
import jax.numpy as jnp

from jaxmcts.tree import Node


def pick(scores: jax.Array, prior: jax.Array, allowed: jax.Array) -> jax.Array:
    """Return the allowed action of the highest score; ties go to the higher prior, then to the lower index.

    `scores`, `prior` and `allowed` are `[A]`. A score that is not a number counts as the lowest. With nothing
    allowed the result is 0. Three maxima, because XLA's `argmax` is several times slower on CPU.
    """
    num_actions = scores.shape[0]
    low = jnp.finfo(scores.dtype).min
    ranked = jnp.where(allowed, jnp.where(scores > low, scores, low), -jnp.inf)
    ranked_prior = jnp.where(allowed & (ranked == _maximum(ranked)), prior, -1)
    best = allowed & (ranked_prior == _maximum(ranked_prior))
    # Floats, for their maximum is vectorised and that of integers is not. Should a compiler round the two sides of a
    # comparison differently, nothing is best: then the first allowed action is taken, never one that is not allowed.
    countdown = jnp.arange(num_actions, 0, -1, dtype=scores.dtype)
    first = _maximum(jnp.where(best, countdown + num_actions, jnp.where(allowed, countdown, num_actions)))
    return jnp.where(first > num_actions, 2 * num_actions - first, num_actions - first).astype(jnp.int32)


def best(node: Node, scores: jax.Array) -> jax.Array:
    """Return the legal action of the highest score `[A]`, ties as in `pick`."""
    return pick(scores, node.prior, node.legal_action_mask)


def _maximum(x: jax.Array) -> jax.Array:
    """Return the maximum of `x [A]`.

    XLA's CPU backend would fuse the maximum with the broadcast that follows into one call that is five times slower;
    rounding to the precision it already has keeps the two apart and changes nothing.
    """
    info = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(jnp.max(x), info.nexp, info.nmant)
