"""mctx's policies: a search, an action to play and a policy target. Randomness comes from the same keys as there."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.mctx.action_selection import (
    GumbelMuZeroExtraData,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    gumbel_scores,
    muzero_action_selection,
)
from jaxmcts.mctx.base import LoopFn, PolicyOutput, QTransform, RecurrentFn, RootFnOutput
from jaxmcts.mctx.qtransforms import qtransform_by_parent_and_siblings, qtransform_completed_by_mix_value
from jaxmcts.mctx.search import find
from jaxmcts.mctx.tree import Row, visit_shares
from jaxmcts.model import Number, PyTree
from jaxmcts.rules.pick import pick
from jaxmcts.tree import ROOT


def muzero_policy(
    params: PyTree,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
    *,
    qtransform: QTransform = qtransform_by_parent_and_siblings,
    dirichlet_fraction: Number = 0.25,
    dirichlet_alpha: Number = 0.3,
    pb_c_init: Number = 1.25,
    pb_c_base: Number = 19652,
    temperature: Number = 1.0,
) -> PolicyOutput[None]:
    """Search with MuZero's PUCT and play in proportion to visits^(1 / temperature).

    `root`, `recurrent_fn`, `invalid_actions [B, A]`, `max_depth` and `loop_fn` are as in `search`. Dirichlet noise is
    mixed into the root's prior over all actions, then the invalid ones are taken out. `action_weights` are the shares
    of the visits; `temperature` 0 plays the most visited action.
    """
    del loop_fn
    rng_key, noise_key, search_key = jax.random.split(rng_key, 3)
    prior = jax.nn.softmax(jnp.asarray(root.prior_logits))
    noisy = _with_noise(noise_key, prior, fraction=dirichlet_fraction, alpha=dirichlet_alpha)
    select = functools.partial(muzero_action_selection, pb_c_init=pb_c_init, pb_c_base=pb_c_base, qtransform=qtransform)
    found = find(
        params, search_key, root=_with_logits(root, _valid_logits(_log(noisy), invalid_actions)),
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(select, depth=0), interior_action_selection_fn=select,
        num_simulations=num_simulations, max_depth=max_depth, invalid_actions=invalid_actions, extra_data=None,
    )  # fmt: skip
    weights = visit_shares(found.tree.visits[:, ROOT])
    action = jax.random.categorical(rng_key, _tempered(_log(weights), temperature))
    return PolicyOutput(action=action, action_weights=weights, search_tree=found.map(Row.whole))


def gumbel_muzero_policy(
    params: PyTree,
    rng_key: jax.Array,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
    *,
    qtransform: QTransform = qtransform_completed_by_mix_value,
    max_num_considered_actions: int = 16,
    gumbel_scale: Number = 1.0,
) -> PolicyOutput[GumbelMuZeroExtraData]:
    """Search with Gumbel MuZero (Danihelka et al. 2022), a policy improvement at any number of simulations.

    Arguments as in `search`. The root considers `max_num_considered_actions` at most, drawn without replacement by
    Gumbel noise times `gumbel_scale` (0 plays deterministically). `action_weights` are the improved policy
    softmax(logits + q), q completed and transformed.
    """
    del loop_fn
    checks.count("num_simulations", num_simulations)
    checks.positive("max_num_considered_actions", max_num_considered_actions)
    logits = _valid_logits(jnp.asarray(root.prior_logits), invalid_actions)
    rng_key, gumbel_key = jax.random.split(rng_key)
    gumbel = gumbel_scale * jax.random.gumbel(gumbel_key, logits.shape, logits.dtype)
    found = find(
        params, rng_key, root=_with_logits(root, logits), recurrent_fn=recurrent_fn,
        root_action_selection_fn=functools.partial(
            gumbel_muzero_root_action_selection, num_simulations=max(num_simulations, 1),
            max_num_considered_actions=max_num_considered_actions, qtransform=qtransform,
        ),
        interior_action_selection_fn=functools.partial(gumbel_muzero_interior_action_selection, qtransform=qtransform),
        num_simulations=num_simulations, max_depth=max_depth, invalid_actions=invalid_actions,
        extra_data=GumbelMuZeroExtraData(root_gumbel=gumbel),
    )  # fmt: skip

    def improve(row: Row[GumbelMuZeroExtraData]) -> tuple[jax.Array, jax.Array]:
        logits, visits = row.children_prior_logits[ROOT], row.children_visits[ROOT]
        q, invalid = qtransform(row, ROOT), row.root_invalid_actions
        scores = gumbel_scores(logits, row.extra_data.root_gumbel, q)
        action = pick(scores, jax.nn.softmax(logits), (invalid == 0) & (visits == jnp.max(visits)))
        return action, jax.nn.softmax(_valid_logits(logits + q, invalid))

    action, weights = found.map(improve)
    return PolicyOutput(action=action, action_weights=weights, search_tree=found.map(Row.whole))


def stochastic_muzero_policy(
    params: PyTree,
    rng_key: jax.Array,
    root: RootFnOutput,
    decision_recurrent_fn: Any,
    chance_recurrent_fn: Any,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
    *,
    qtransform: QTransform = qtransform_by_parent_and_siblings,
    dirichlet_fraction: Number = 0.25,
    dirichlet_alpha: Number = 0.3,
    pb_c_init: Number = 1.25,
    pb_c_base: Number = 19652,
    temperature: Number = 1.0,
) -> PolicyOutput[None]:
    """Raise `NotImplementedError`: this search has no chance nodes yet."""
    raise NotImplementedError(
        "`stochastic_muzero_policy` needs chance nodes, which this search does not have yet: use mctx 0.0.71 for it."
    )


def _with_logits(root: RootFnOutput, logits: jax.Array) -> RootFnOutput:
    return RootFnOutput(prior_logits=logits, value=root.value, embedding=root.embedding)


def _with_noise(key: jax.Array, prior: jax.Array, *, fraction: Number, alpha: Number) -> jax.Array:
    """Mix Dirichlet noise into `prior [B, A]`; a Python 0 for the fraction compiles no draw."""
    if isinstance(fraction, int | float) and fraction == 0:
        return prior
    batch_size, num_actions = prior.shape
    noise = jax.random.dirichlet(key, jnp.full(num_actions, alpha, jnp.result_type(float)), (batch_size,))
    return (1 - fraction) * prior + fraction * noise


def _valid_logits(logits: jax.Array, invalid_actions: jax.Array | None) -> jax.Array:
    """Give invalid actions the lowest finite logit: where all are, the softmax is uniform and not NaN."""
    if invalid_actions is None:
        return logits
    checks.per_action("invalid_actions", invalid_actions, logits)
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    return jnp.where(jnp.asarray(invalid_actions) == 0, shifted, jnp.finfo(logits.dtype).min)


def _log(probabilities: jax.Array) -> jax.Array:
    """Return logarithms, finite ones where the probability is 0."""
    return jnp.log(jnp.maximum(probabilities, jnp.finfo(probabilities.dtype).tiny))


def _tempered(logits: jax.Array, temperature: Number) -> jax.Array:
    """Return logits / temperature, 0 for the largest whatever the temperature, also 0."""
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    return shifted / jnp.maximum(jnp.finfo(logits.dtype).tiny, temperature)
