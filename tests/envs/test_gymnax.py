"""Environments of gymnax's shape, in the two ways it has been: five values from a step, and six."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
import jaxmcts

KEY = jax.random.key(0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Place:
    x: Any
    time: Any


@dataclasses.dataclass(frozen=True)
class Params:
    goal: int = 4
    slip: float = 0.0
    limit: int = 12


class Walk:
    """Left or right to the goal, where there is a reward of 1; from 0 to the left there is a pit with -1.

    It is written as gymnax's environments are: weak types, and a `step` that resets by itself.
    """

    name = "Walk-v0"
    num_actions = 2
    default_params = Params()

    def reset(self, key: jax.Array, params: Params) -> tuple[jax.Array, Place]:
        place = Place(x=jax.random.randint(key, (), 0, 3), time=0)
        return self.seen(place), place

    def seen(self, place: Place) -> jax.Array:
        return jnp.stack([1.0 * place.x, 0.1 * place.time])

    def walk(self, key: jax.Array, place: Place, action: jax.Array, params: Params) -> tuple[Place, jax.Array]:
        slips = jax.random.bernoulli(key, params.slip)
        move = jnp.where(slips, -1, 2 * action - 1)
        return Place(x=place.x + move, time=place.time + 1), (place.x + move >= params.goal) | (place.x + move < 0)

    def step_env(self, key: jax.Array, place: Place, action: jax.Array, params: Params) -> Any:
        after, ended = self.walk(key, place, action, params)
        reward = jnp.where(ended, jnp.where(after.x < 0, -1.0, 1.0), 0.0)
        return self.seen(after), after, reward, ended | (after.time >= params.limit), {"discount": 1.0 - ended}

    def step(self, key: jax.Array, place: Place, action: jax.Array, params: Params) -> Any:
        raise AssertionError("This step resets; a search must not call it.")


class Walk1(Walk):
    """As gymnax 1.0 has it: an end is natural, and the limit of time is asked for apart."""

    def step_env(self, key: jax.Array, place: Place, action: jax.Array, params: Params) -> Any:
        after, ended = self.walk(key, place, action, params)
        reward = jnp.where(ended, jnp.where(after.x < 0, -1.0, 1.0), 0.0)
        return self.seen(after), after, reward, ended, {}

    def is_truncated(self, place: Place, params: Params) -> Any:
        return place.time >= params.limit


class Walk6(Walk):
    """Six values, and no step but one, which does not reset."""

    step_env = None  # type: ignore[assignment]

    def step(self, key: jax.Array, place: Place, action: jax.Array, params: Params) -> Any:
        seen, after, reward, ended, info = Walk1.step_env(self, key, place, action, params)  # type: ignore[arg-type]
        return seen, after, reward, ended, Walk1.is_truncated(self, after, params), info  # type: ignore[arg-type]


@pytest.mark.parametrize("walk", [Walk1, *(pytest.param(walk, marks=pytest.mark.slow) for walk in (Walk, Walk6))])
def test_contract(walk: type[Walk]) -> None:
    envs.check_env(envs.from_gymnax(walk(), Params(slip=0.3)), num_games=16)


@pytest.mark.parametrize("walk", [Walk, Walk1, Walk6])
def test_a_limit_of_time_is_told_apart_where_the_environment_does(walk: type[Walk]) -> None:
    env = envs.from_gymnax(walk(), Params(limit=2))
    state: Any = env.init(KEY)
    state = dataclasses.replace(state, inner=dataclasses.replace(state.inner, x=jnp.int32(1)))
    step = jax.jit(env.step)
    for action in (1, 0):
        assert env.legal_action_mask(state).all()
        state = step(state, jnp.int32(action), KEY)
    assert (bool(state.terminated), bool(state.truncated)) == ((True, False) if walk is Walk else (False, True))
    assert not env.legal_action_mask(state).any()


def test_an_end_with_the_last_step_is_no_truncation() -> None:
    env = envs.from_gymnax(Walk1(), Params(goal=1, limit=1))
    state: Any = env.init(KEY)
    state = dataclasses.replace(state, inner=dataclasses.replace(state.inner, x=jnp.int32(0)))
    after = env.step(state, 1, KEY)
    assert after.terminated and not after.truncated and after.rewards.tolist() == [1]


def test_the_game_is_the_environment_step_by_step() -> None:
    walk, params = Walk(), Params(slip=0.5)
    env = envs.from_gymnax(walk, params)
    state = env.init(KEY)
    seen, place = walk.reset(KEY, params)
    for ply in range(12):
        key, action = jax.random.fold_in(KEY, ply), jnp.int32(ply % 3 > 0)
        np.testing.assert_array_equal(env.observe(state), seen)
        state = env.step(state, action, key)
        seen, place, reward, done, _ = walk.step_env(key, place, action, params)
        assert (state.rewards[0], state.terminated) == (reward, done)
        if done:
            break
    assert done and env.num_players == 1 and env.name == "Walk-v0" and env.observation_shape == (2,)


def test_games_of_the_same_objects_are_equal() -> None:
    walk, arrays = Walk(), {"goal": jnp.int32(4)}
    one, other = envs.from_gymnax(walk, arrays), envs.from_gymnax(walk, arrays)
    assert one == other and hash(one) == hash(other)
    assert one != envs.from_gymnax(walk) and one != envs.from_gymnax(Walk(), arrays)


@pytest.mark.slow
def test_a_search_walks_to_the_goal() -> None:
    env = envs.from_gymnax(Walk1())
    evaluator = jaxmcts.network_evaluator(env, lambda params, seen: (jnp.zeros((8, 2)), jnp.zeros(8)))
    model = jaxmcts.model_from_env(env, evaluator, gamma=0.9)
    states = jax.vmap(env.init)(jax.random.split(KEY, 8))
    search = functools.partial(jaxmcts.gumbel_policy, num_simulations=64, gumbel_scale=0.0)
    out = jax.jit(lambda key: search((), key, states, model))(KEY)
    assert out.action.tolist() == [1] * 8  # to the right, from wherever it begins
    jaxmcts.validate(out.tree)


class _Dict(Walk):
    def seen(self, place: Place) -> Any:
        return {"x": place.x}


class _Continuous(Walk):
    def action_space(self, params: Params) -> object:
        return object()


class _Four(Walk):
    def step_env(self, *args: Any) -> Any:
        return super().step_env(*args)[1:]


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Walk, "`env` is <class .*Walk'>, expected an environment"),
        ("CartPole-v1", "`env` is 'CartPole-v1', expected an environment"),
        (_Dict(), "'Walk-v0' is seen as .*'x'.*, expected one array"),
        (_Continuous(), "The actions of 'Walk-v0' are not numbered"),
    ],
)
def test_what_is_no_environment_is_refused(env: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        envs.from_gymnax(env)


def test_keys_and_values_are_asked_for() -> None:
    env = envs.from_gymnax(Walk())
    with pytest.raises(TypeError, match="of 'Walk-v0' came without a `key`"):
        env.init()
    with pytest.raises(TypeError, match="of 'Walk-v0' came without a `key`"):
        env.step(env.init(KEY), 0)
    with pytest.raises(ValueError, match="returns 4 values, expected 5 or 6"):
        four = envs.from_gymnax(_Four())
        four.step(four.init(KEY), 0, KEY)
