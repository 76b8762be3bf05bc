"""What happens once per root, before the first simulation: noise, Gumbel draws, halving candidates.

All of it starts from the clean logits that the tree keeps, so a root can be prepared again, with other noise, at
any time. The draws are per row: row b of a batch depends on its own key alone.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.halving import considered_visits_table
from jaxmcts.model import Number
from jaxmcts.tree import Node, legal_log_softmax


def dirichlet_on_legal(keys: jax.Array, dirichlet_alpha: Number, legal_action_mask: jax.Array) -> jax.Array:
    """Draw Dirichlet noise over the legal actions of each row: `[B, A]`, rows sum to 1, 0 where illegal.

    Works on log-gamma draws, because gammas of a small alpha underflow in float32. `dirichlet_alpha` is `[]` or `[B]`.
    """
    alphas = checks.per_row_number("dirichlet_alpha", dirichlet_alpha, keys.shape[0], low=1e-6)

    def draw(key: jax.Array, alpha: jax.Array, legal: jax.Array) -> jax.Array:
        return jnp.exp(legal_log_softmax(jax.random.loggamma(key, alpha, legal.shape), legal))

    return jax.vmap(draw)(keys, alphas, legal_action_mask)


def noisy_prior_logits(
    keys: jax.Array,
    prior_logits: jax.Array,
    *,
    dirichlet_fraction: Number,
    dirichlet_alpha: Number,
) -> jax.Array:
    """Mix noise into a root prior, P' = (1 - fraction) P + fraction Dir(alpha), on legal actions only.

    `prior_logits [B, A]` are -inf where illegal, and so is the result (Silver et al. 2017, with the noise drawn
    over the legal actions so that they get all of it). The numbers are `[]` or `[B]`; a Python 0 for the fraction
    compiles no draw.
    """
    if isinstance(dirichlet_fraction, int | float) and dirichlet_fraction == 0:
        return prior_logits
    fraction = checks.per_row_number("dirichlet_fraction", dirichlet_fraction, keys.shape[0], low=0, high=1)[:, None]
    legal = prior_logits > -jnp.inf
    noise = dirichlet_on_legal(keys, dirichlet_alpha, legal)
    mixed = jnp.log((1 - fraction) * jnp.exp(prior_logits) + fraction * noise)
    floor = jnp.finfo(prior_logits.dtype).min / 4  # a legal action stays legal when its noisy prior rounds to 0
    noisy = jnp.where(legal, jnp.maximum(mixed, floor), -jnp.inf)
    return jnp.where(fraction > 0, noisy, prior_logits)


def with_prior(node: Node, *, rule: Callable[[Node], jax.Array], prior_logits: jax.Array) -> jax.Array:
    """Select by `rule` as if the node's prior were `prior_logits [A]`: a noised root, say."""
    return rule(dataclasses.replace(node, prior=jnp.exp(prior_logits), prior_logits=prior_logits))


def draw_gumbel(keys: jax.Array, num_actions: int, dtype: jnp.dtype) -> jax.Array:
    """Draw Gumbel(0, 1) per root action: `[B, A]`."""
    return jax.vmap(lambda key: jax.random.gumbel(key, (num_actions,), dtype))(keys)


def considered_visits(
    legal_action_mask: jax.Array, *, max_num_considered_actions: int, num_simulations: int
) -> jax.Array:
    """Return each root's halving schedule `[B, n]`, for min(max considered, its own legal actions) candidates."""
    most = min(max_num_considered_actions, legal_action_mask.shape[-1])
    num_legal = jnp.sum(legal_action_mask, axis=-1, dtype=jnp.int32)
    return jnp.asarray(considered_visits_table(most, num_simulations))[jnp.minimum(num_legal, most)]
