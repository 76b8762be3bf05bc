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
    alphas = checks.per_row_number("dirichlet_alpha", dirichlet_alpha, keys.shape[0], low=1e-6, high=1e6)
    return _dirichlet(keys, jnp.broadcast_to(alphas[:, None], legal_action_mask.shape), legal_action_mask)


def _dirichlet(keys: jax.Array, alphas: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    def draw(key: jax.Array, alphas: jax.Array, legal: jax.Array) -> jax.Array:
        return jnp.exp(legal_log_softmax(jax.random.loggamma(key, alphas), legal))

    return jax.vmap(draw)(keys, alphas, legal_action_mask)


def alpha_by_actions(legal_action_mask: jax.Array, *, total: Number = 10.0) -> jax.Array:
    """Return `total` / (number of legal actions) `[B]`, a `dirichlet_alpha` that fits every position of every game.

    10 gives 0.29 in chess and 0.03 in Go, near AlphaZero's 0.3 and 0.03; KataGo has 10.83.
    """
    return total / jnp.maximum(jnp.sum(legal_action_mask, axis=-1), 1)


def shaped_alphas(prior_logits: jax.Array, *, total: Number = 10.83) -> jax.Array:
    """Return KataGo's Dirichlet parameters by action `[B, A]`, 0 where illegal: more for edges of a notable prior.

    Half of `total` goes to the legal actions alike, half in proportion to how far ln min(P, 0.01) is above its mean, so
    that blind spots the network has half an eye on are tried sooner than nonsense. All alike if none stands out.
    """
    legal = prior_logits > -jnp.inf
    num_legal = jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
    logs = jnp.where(legal, jnp.log(jnp.minimum(jnp.exp(prior_logits), 0.01) + 1e-20), 0)
    above = jnp.where(legal, jnp.maximum(logs - jnp.sum(logs, axis=-1, keepdims=True) / num_legal, 0), 0)
    sum_above = jnp.sum(above, axis=-1, keepdims=True)
    even = legal / num_legal
    shaped = jnp.where(sum_above > 0, above / jnp.where(sum_above > 0, sum_above, 1), even)
    return total * (even + shaped) / 2


def shaped_dirichlet(keys: jax.Array, prior_logits: jax.Array, *, total: Number = 10.83) -> jax.Array:
    """Draw Dirichlet noise with `shaped_alphas` over the legal actions: `[B, A]`, rows sum to 1, 0 where illegal."""
    legal = prior_logits > -jnp.inf
    return _dirichlet(keys, jnp.where(legal, shaped_alphas(prior_logits, total=total), 1), legal)


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
    noise = dirichlet_on_legal(keys, dirichlet_alpha, prior_logits > -jnp.inf)
    return mixed_prior_logits(prior_logits, noise, dirichlet_fraction=dirichlet_fraction)


def mixed_prior_logits(prior_logits: jax.Array, noise: jax.Array, *, dirichlet_fraction: Number) -> jax.Array:
    """Return the logits of (1 - fraction) P + fraction noise `[B, A]`, -inf where illegal.

    `noise [B, A]` is 0 where illegal and sums to 1, as `shaped_dirichlet`'s; the fraction is `[]` or `[B]`.
    """
    batch_size = prior_logits.shape[0]
    fraction = checks.per_row_number("dirichlet_fraction", dirichlet_fraction, batch_size, low=0, high=1)[:, None]
    mixed = jnp.log((1 - fraction) * jnp.exp(prior_logits) + fraction * noise)
    floor = jnp.finfo(prior_logits.dtype).min / 4  # a legal action stays legal when its noisy prior rounds to 0
    noisy = jnp.where(prior_logits > -jnp.inf, jnp.maximum(mixed, floor), -jnp.inf)
    return jnp.where(fraction > 0, noisy, prior_logits)


def tempered_prior_logits(prior_logits: jax.Array, temperature: Number) -> jax.Array:
    """Return the logits of P^(1 / temperature), normalised `[B, A]`, -inf where illegal. Before the noise, if any.

    `temperature` is `[]` or `[B]`. KataGo's self-play softens the root's prior by 1.25, falling to 1.1; lc0 softens the
    prior of every node by 1.359, which is for the model to do.
    """
    inverse = 1 / checks.per_row_number("temperature", temperature, prior_logits.shape[0], low=1e-3)[:, None]
    legal = prior_logits > -jnp.inf
    floor = jnp.finfo(prior_logits.dtype).min / 4  # a legal action stays legal, however cold
    return legal_log_softmax(jnp.maximum(jnp.where(legal, prior_logits, 0) * inverse, floor), legal)


def cooling(turn: jax.Array, *, early: Number, late: Number, halflife: Number) -> jax.Array:
    """Return late + (early - late) / 2^(turn / halflife): a temperature that falls in the course of a game (KataGo).

    KataGo's halflife is the side of the board, in moves: 0.75 to 0.15 for the move, 1.25 to 1.1 for the root's prior.
    """
    return late + (early - late) * 0.5 ** (turn / halflife)


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
