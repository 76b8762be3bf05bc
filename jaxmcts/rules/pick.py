"""The choice that every rule ends with."""

import jax
import jax.numpy as jnp


def pick(scores: jax.Array, prior: jax.Array, allowed: jax.Array) -> jax.Array:
    """Return the allowed action of the highest score; ties go to the higher prior, then to the lower index.

    `scores`, `prior` and `allowed` are `[A]`. A score that is not a number counts as the lowest. With nothing
    allowed the result is 0. Written as maxima and a minimum because XLA's `argmax` is slower on CPU.
    """
    low = jnp.finfo(scores.dtype).min
    ranked = jnp.where(allowed & (scores > low), scores, low)
    best = allowed & (ranked == jnp.max(ranked))
    ranked_prior = jnp.where(best, prior, -1)
    best = best & (ranked_prior == jnp.max(ranked_prior))
    index = jnp.arange(scores.shape[0], dtype=jnp.int32)
    first = jnp.min(jnp.where(best, index, scores.shape[0]))
    return jnp.where(first < scores.shape[0], first, 0)
