"""The searches of self-play and of the agent, on tic-tac-toe with a network that has opinions."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
import jaxmcts
from train import search
from train.config import Config
from train.search import Choice

ENV = envs.make("tic_tac_toe")
CONFIG = Config(game="tic_tac_toe", num_simulations=12, agent_num_simulations=12, fast_num_simulations=3)
ROWS = 64


def judge(params: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Prefer high cells a little, and whoever is to move: no move looks good, so the searches try many."""
    count = observation.shape[0]
    return params + jnp.tile(jnp.arange(9) / 8, (count, 1)), jnp.full(count, 0.9)


def with_(**fields: Any) -> Config:
    return dataclasses.replace(CONFIG, **fields)


def empty_boards(rows: int = ROWS) -> Any:
    return jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), rows))


@functools.partial(jax.jit, static_argnums=0)
def explored(config: Config, ply: jax.Array, seed: int = 0) -> Choice:
    explorer = search.make_explorer(ENV, judge, config)
    return explorer(0.0, jax.random.key(seed), empty_boards(), ply)


@functools.partial(jax.jit, static_argnums=0)
def best(config: Config, seed: int) -> jaxmcts.PolicyOutput:
    return search.make_policy(ENV, judge, config)(0.0, jax.random.key(seed), empty_boards(4))


both = pytest.mark.parametrize("rule", ["gumbel", "alphazero"])


def test_each_game_has_the_temperature_of_its_own_ply() -> None:
    config = with_(temperature=0.8, temperature_plies=4, late_temperature=0.1)
    given = search.temperatures(config, jnp.array([0, 3, 4, 5, 0, 9]))
    np.testing.assert_allclose(given, [0.8, 0.8, 0.1, 0.1, 0.8, 0.1], rtol=1e-6)


@both
def test_the_first_plies_vary_and_the_later_ones_do_not(rule: Any) -> None:
    config = with_(search=rule, temperature_plies=4, dirichlet_fraction=0.0)
    choice = explored(config, jnp.tile(jnp.array([3, 4]), ROWS // 2))
    action = np.asarray(choice.action)
    assert len(set(action[0::2].tolist())) > 2
    assert len(set(action[1::2].tolist())) == 1


@both
def test_a_temperature_of_0_is_the_move_of_the_agent(rule: Any) -> None:
    config = with_(search=rule, temperature=0.0, dirichlet_fraction=0.0)
    choice, out = explored(config, jnp.zeros(ROWS, jnp.int32)), best(config, 5)
    np.testing.assert_array_equal(choice.action[:4], out.action)
    np.testing.assert_array_equal(choice.action_weights[:4], out.action_weights)
    np.testing.assert_array_equal(choice.value[:4], out.value)


@both
def test_the_agent_plays_without_noise(rule: Any) -> None:
    one, other = best(with_(search=rule), 0), best(with_(search=rule), 1)
    assert len(set(np.asarray(one.action).tolist())) == 1
    for first, second in zip(jax.tree.leaves(jaxmcts.summary(one.tree)), jax.tree.leaves(jaxmcts.summary(other.tree))):
        np.testing.assert_array_equal(first, second)


@both
def test_illegal_moves_get_no_weight(rule: Any) -> None:
    explorer = search.make_explorer(ENV, judge, with_(search=rule))
    state = empty_boards()
    for cell in (8, 7, 0):
        state = jax.vmap(ENV.step, (0, None))(state, jnp.int32(cell))
    choice = jax.jit(explorer)(0.0, jax.random.key(0), state, jnp.full(ROWS, 3))
    np.testing.assert_array_equal(choice.action_weights[:, jnp.array([8, 7, 0])], np.zeros((ROWS, 3)))
    np.testing.assert_allclose(choice.action_weights.sum(axis=1), np.ones(ROWS), rtol=1e-5)
    assert not set(np.asarray(choice.action).tolist()) & {8, 7, 0}


def test_the_gumbel_search_considers_so_many_moves() -> None:
    for considered in (2, 5):
        visits = jaxmcts.summary(best(with_(max_num_considered_actions=considered), 0).tree).visits
        np.testing.assert_array_equal((visits > 0).sum(axis=1), [considered] * 4)


def test_dirichlet_noise_is_as_asked() -> None:
    def weights(**fields: Any) -> np.ndarray:
        choice = explored(with_(search="alphazero", **fields), jnp.zeros(ROWS, jnp.int32))
        return np.asarray(choice.action_weights)

    none, clear = weights(dirichlet_fraction=0.0), weights(dirichlet_fraction=1.0, dirichlet_alpha=0.03)
    even = weights(dirichlet_fraction=1.0, dirichlet_alpha=1e4)
    np.testing.assert_array_equal(none, none[:1].repeat(ROWS, axis=0))
    assert len(set(clear.argmax(axis=1).tolist())) > 5
    assert clear.max(axis=1).mean() > 2 * even.max(axis=1).mean()


@both
def test_some_moves_are_searched_with_the_small_budget_and_without_noise(rule: Any) -> None:
    config = with_(search=rule, full_search_share=0.4)
    choices = jax.device_get(
        jax.lax.map(lambda seed: explored(config, jnp.zeros(ROWS, jnp.int32), seed), jnp.arange(60))
    )
    full = choices.policy_weight == 1
    assert (full | (choices.policy_weight == 0)).all()
    assert (full == full[:, :1]).all()  # one draw a move for the whole batch
    assert 0.25 < full[:, 0].mean() < 0.55
    weights = choices.action_weights[~full]
    np.testing.assert_array_equal(weights, weights[:1].repeat(len(weights), axis=0))
    if rule == "alphazero":
        visits = choices.action_weights * np.where(full, 12, 3)[..., None]  # shares of so many visits
        np.testing.assert_allclose(visits, visits.round(), atol=1e-4)
        assert len(np.unique(choices.action_weights[full], axis=0)) > 10
    else:
        assert len(set(choices.action[full].tolist())) > 2
        assert len(set(choices.action[~full].tolist())) == 1


@pytest.mark.parametrize(("share", "searches"), [(1.0, 1), (0.5, 2)])
def test_a_second_search_is_compiled_only_where_it_is_drawn(share: float, searches: int) -> None:
    batches = []

    def counted(params: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        batches.append(observation.shape[0])
        return judge(params, observation)

    explorer = search.make_explorer(ENV, counted, with_(full_search_share=share))
    jax.eval_shape(explorer, 0.0, jax.random.key(0), empty_boards(), jnp.zeros(ROWS, jnp.int32))
    assert batches == [ROWS] * 2 * searches  # each evaluates its root and, in a loop, a leaf


def test_evaluations_are_counted() -> None:
    assert search.count_evaluations(CONFIG, full=2, fast=2) == 2 * 13 + 2 * 4
    rows = []

    def counted(params: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(lambda: rows.append(observation.shape[0]))
        return judge(params, observation)

    explorer = search.make_explorer(ENV, counted, CONFIG)
    choice = jax.jit(explorer)(0.0, jax.random.key(0), empty_boards(), jnp.zeros(ROWS, jnp.int32))
    jax.effects_barrier()
    assert sum(rows) == search.count_evaluations(CONFIG, full=choice.policy_weight.size, fast=0)
