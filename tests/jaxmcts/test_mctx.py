"""The search against mctx 0.0.71 over shared random inputs, in float32: same root visits, values to 1e-5.

AlphaZero's constants with `fpu_lose` are `muzero_policy` with `qtransform_by_min_max(-1, 1)`; the Gumbel policies
share one draw. Worlds have no truncated states: mctx knows no finished state and walks on below it, which a
discount of 0 hides and another does not.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import jaxmcts
from tests import worlds
from tests.jaxmcts.searching import QUICK_TO_COMPILE

NUM_WORLDS, NUM_ACTIONS = 128, 6
WORLD = {"num_actions": NUM_ACTIONS, "terminated": 0.15, "same_mover": 0.2, "rewards": 0.4, "gamma": 0.95}
STATE = worlds.roots(NUM_WORLDS)
NATIVE, FROM_MCTX = worlds.MODEL, jaxmcts.model_from_recurrent_fn(worlds.recurrent_fn)
UNIT_INTERVAL = functools.partial(mctx.qtransform_by_min_max, min_value=-1.0, max_value=1.0)


def make_params(seed: int, *, illegal: float, scale: float) -> worlds.Tables:
    drawn = [
        worlds.random_world(np.random.default_rng([seed, row]), illegal=illegal, logit_scale=scale, **WORLD)  # type: ignore[arg-type]
        for row in range(NUM_WORLDS)
    ]
    return jax.tree.map(jnp.asarray, worlds.stack(drawn))


def ours(
    policy: Callable[..., jaxmcts.PolicyOutput], model: jaxmcts.Model, params: worlds.Tables, **arguments: Any
) -> jaxmcts.PolicyOutput:
    """Run one of our policies; a native model evaluates its root itself, mctx's form is given the root."""

    @jax.jit
    def search(params: worlds.Tables) -> jaxmcts.PolicyOutput:
        root = None if model == NATIVE else worlds.evaluation(params, STATE)
        return policy(params, jax.random.key(0), STATE, model, **{"root_evaluation": root, **arguments})

    return search(params)


def theirs(policy: Callable[..., Any], params: worlds.Tables, key: jax.Array, **arguments: Any) -> Any:
    """Run one of mctx's policies; its invalid actions are the negated mask."""

    @functools.partial(jax.jit, compiler_options=QUICK_TO_COMPILE)
    def search(params: worlds.Tables) -> Any:
        invalid = ~worlds.look_up(params, "legal_action_mask", STATE)
        root = worlds.mctx_root(params, STATE)
        return policy(params, key, root, worlds.recurrent_fn, **{"invalid_actions": invalid, **arguments})

    return search(params)


def draw_of(key: jax.Array) -> jax.Array:
    """The Gumbel numbers that mctx draws: for the whole batch, from the second half of its key."""
    return jax.random.gumbel(jax.random.split(key)[1], (NUM_WORLDS, NUM_ACTIONS))


def assert_same(got: jaxmcts.PolicyOutput, want: Any, *, name: str = "") -> None:
    summary = want.search_tree.summary()
    visits = np.asarray(summary.visit_counts)
    np.testing.assert_array_equal(got.tree.visits[:, 0], visits, err_msg=name)
    np.testing.assert_allclose(got.value, summary.value, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(got.tree.q[:, 0], np.where(visits > 0, summary.qvalues, 0), atol=1e-5, err_msg=name)
    np.testing.assert_allclose(got.action_weights, want.action_weights, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("illegal", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
@pytest.mark.parametrize(("num_simulations", "max_depth", "scale"), [(32, None, 1.0), (48, 3, 3.0)])
def test_alphazero_policy_is_muzero_policy(illegal, num_simulations, max_depth, scale):
    params = make_params(1, illegal=illegal, scale=scale)
    shared = {"num_simulations": num_simulations, "max_depth": max_depth, "dirichlet_fraction": 0.0}
    want = theirs(mctx.muzero_policy, params, jax.random.key(1), qtransform=UNIT_INTERVAL, **shared)
    for model in (NATIVE, FROM_MCTX) if illegal else (NATIVE,):
        got = ours(jaxmcts.alphazero_policy, model, params, **shared)
        assert_same(got, want, name=f"native: {model == NATIVE}")


@pytest.mark.parametrize("illegal", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
@pytest.mark.parametrize(
    ("num_simulations", "max_depth", "num_considered", "gumbel_scale"),
    [(32, None, 16, 1.0), (48, 3, 4, 1.0), (32, None, 4, 0.0)],
)
def test_gumbel_policy_is_gumbel_muzero_policy(illegal, num_simulations, max_depth, num_considered, gumbel_scale):
    params, key = make_params(2, illegal=illegal, scale=1.0), jax.random.key(3)
    shared = {
        "num_simulations": num_simulations,
        "max_depth": max_depth,
        "max_num_considered_actions": num_considered,
        "gumbel_scale": gumbel_scale,
    }
    want = theirs(mctx.gumbel_muzero_policy, params, key, **shared)
    for model in (NATIVE, FROM_MCTX) if illegal else (NATIVE,):
        got = ours(jaxmcts.gumbel_policy, model, params, root_gumbel=draw_of(key), **shared)
        assert_same(got, want, name=f"native: {model == NATIVE}")
        np.testing.assert_array_equal(got.action, want.action)


def test_gumbel_without_rescaling():
    """The constants advised for Go: `c_scale` 1 on values as they are."""
    params, key = make_params(3, illegal=0.3, scale=1.0), jax.random.key(5)
    transform = functools.partial(mctx.qtransform_completed_by_mix_value, value_scale=1.0, rescale_values=False)
    want = theirs(mctx.gumbel_muzero_policy, params, key, num_simulations=32, qtransform=transform)
    got = ours(
        jaxmcts.gumbel_policy,
        NATIVE,
        params,
        num_simulations=32,
        root_gumbel=draw_of(key),
        c_scale=1.0,
        rescale_q=False,
    )
    assert_same(got, want)


def test_invalid_actions_are_the_negated_mask():
    """A caller's own mask at the root, of an mctx model whose logits know nothing of it."""
    params = make_params(4, illegal=0.0, scale=1.0)
    invalid = np.random.default_rng(0).uniform(size=(NUM_WORLDS, NUM_ACTIONS)) < 0.5
    invalid[:, 2] = False
    shared = {"num_simulations": 32, "dirichlet_fraction": 0.0}
    want = theirs(
        mctx.muzero_policy,
        params,
        jax.random.key(1),
        qtransform=UNIT_INTERVAL,
        invalid_actions=jnp.asarray(invalid),
        **shared,
    )
    root = jaxmcts.Evaluation(
        prior_logits=worlds.look_up(params, "prior_logits", STATE),
        value=worlds.look_up(params, "value", STATE),
        legal_action_mask=jnp.asarray(~invalid),
    )
    got = ours(jaxmcts.alphazero_policy, FROM_MCTX, params, root_evaluation=root, **shared)
    assert_same(got, want)
    assert not np.asarray(got.tree.visits)[:, 0][invalid].any()


def test_a_recurrent_fn_cannot_evaluate_a_root():
    params = make_params(5, illegal=0.0, scale=1.0)
    with pytest.raises(ValueError, match="`root_evaluation` is missing"):
        jaxmcts.alphazero_policy(params, jax.random.key(0), STATE, FROM_MCTX, num_simulations=2)
