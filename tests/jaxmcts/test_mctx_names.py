"""`jaxmcts.mctx` against mctx 0.0.71: one program, run with either module, gives the same from the same key.

Inputs are random reals: mctx breaks ties by random noise, ours by the prior, so equal scores are no comparison. States
have no end for the same reason: mctx walks on below one, among equal logits.
"""

import dataclasses
import functools
import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import jaxmcts.mctx
from tests import worlds
from tests.jaxmcts import hlo
from tests.jaxmcts.searching import QUICK_TO_COMPILE

NUM_WORLDS, NUM_ACTIONS = 24, 6
STATE = worlds.roots(NUM_WORLDS)
BOTH = (mctx, jaxmcts.mctx)

Program = Callable[..., Any]  # program(module, ...)


@functools.cache
def tables() -> worlds.Tables:
    drawn = [
        worlds.random_world(
            np.random.default_rng([9, row]),
            num_actions=NUM_ACTIONS,
            illegal=0.2,
            same_mover=0.2,
            rewards=0.4,
            gamma=0.95,
        )
        for row in range(NUM_WORLDS)
    ]
    return jax.tree.map(jnp.asarray, worlds.stack(drawn))


def cases(names: Iterable[str], *, fast: set[str]) -> list[Any]:
    """Mark those that are not fast; each compiles a search of mctx too."""
    assert fast <= set(names)
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


def root_of(params: worlds.Tables) -> Any:
    return worlds.mctx_root(params, STATE)


def invalid_actions() -> jax.Array:
    """A mask in mctx's sense; one root has no valid action at all."""
    invalid = np.random.default_rng(1).uniform(size=(NUM_WORLDS, NUM_ACTIONS)) < 0.4
    invalid[:, 2] = False
    invalid[0] = True
    return jnp.asarray(invalid, jnp.float32)


def both(program: Program, *arguments: Any) -> tuple[Any, Any]:
    """Run a program with mctx and with ours, compiled."""
    want, got = (
        jax.jit(functools.partial(program, module), compiler_options=QUICK_TO_COMPILE)(*arguments) for module in BOTH
    )
    return got, want


def assert_same_tree(got: Any, want: Any) -> None:
    """Every array under every name; logits lie far below -1e30 where mctx masks."""
    assert list(got) == list(want) == [field.name for field in dataclasses.fields(want)]
    for name in want:
        ours, theirs = jax.tree.leaves(got[name]), jax.tree.leaves(want[name])
        assert len(ours) == len(theirs), name
        for x, y in zip(ours, theirs, strict=True):
            assert x.dtype == y.dtype, name
            if jnp.issubdtype(y.dtype, jnp.integer):
                np.testing.assert_array_equal(x, y, err_msg=name)
            else:
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5, err_msg=name)
    ours, theirs = got.summary(), want.summary()
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5, err_msg=name)


def assert_same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(got.action, want.action)
    np.testing.assert_allclose(got.action_weights, want.action_weights, atol=1e-5)
    assert_same_tree(got.search_tree, want.search_tree)


# What is there.


def test_all_names_are_there():
    assert set(jaxmcts.mctx.__all__) == set(mctx.__all__)
    assert jaxmcts.mctx.__version__ == mctx.__version__


@pytest.mark.parametrize("name", [name for name in mctx.__all__ if inspect.isfunction(getattr(mctx, name))])
def test_signatures(name):
    def signature(module: ModuleType) -> list[tuple[Any, ...]]:
        parameters = inspect.signature(getattr(module, name)).parameters.values()
        return [(p.name, p.kind, None if callable(p.default) else p.default) for p in parameters]

    assert signature(jaxmcts.mctx) == signature(mctx)


@pytest.mark.parametrize("name", [name for name in mctx.__all__ if dataclasses.is_dataclass(getattr(mctx, name))])
def test_records(name):
    def fields(module: ModuleType) -> list[str]:
        return [field.name for field in dataclasses.fields(getattr(module, name))]

    assert fields(jaxmcts.mctx) == fields(mctx)
    ours = getattr(jaxmcts.mctx, name)(**{field: jnp.zeros(2) + i for i, field in enumerate(fields(mctx))})
    first = fields(mctx)[0]
    assert ours[first] is getattr(ours, first)
    assert dict(ours).keys() == set(fields(mctx))
    np.testing.assert_array_equal(ours.replace(**{first: jnp.ones(2)})[first], 1)
    assert type(ours).from_tuple(ours.to_tuple()).to_tuple() == ours.to_tuple()
    assert isinstance(jax.tree.map(lambda x: x, ours), type(ours))
    with pytest.raises(KeyError):
        ours["replace"]


def test_constants():
    for name in ("ROOT_INDEX", "NO_PARENT", "UNVISITED"):
        assert getattr(jaxmcts.mctx.Tree, name) == getattr(mctx.Tree, name)


def test_stochastic_muzero_says_that_it_is_not_there():
    with pytest.raises(NotImplementedError, match="chance nodes"):
        jaxmcts.mctx.stochastic_muzero_policy((), jax.random.key(0), None, None, None, 1)


# The policies.


def own_qtransform(tree: Any, node_index: Any) -> jax.Array:
    """A q-transform of the caller's: unvisited edges are worth the node's value, on [-2, 2]."""
    visited = tree.children_visits[node_index] > 0
    return (jnp.where(visited, tree.qvalues(node_index), tree.node_values[node_index]) + 2) / 4


def make_qtransform(module: Any, name: str | None, **constants: Any) -> Any:
    return own_qtransform if name is None else functools.partial(getattr(module, name), **constants)


MUZERO = {
    "defaults": {"num_simulations": 48},
    "min_max": {
        "num_simulations": 32,
        "qtransform": ("qtransform_by_min_max", {"min_value": -2, "max_value": 2.0}),
        "invalid": True,
        "max_depth": 3,
        "temperature": 0.5,
        "dirichlet_alpha": 0.1,
    },
    "constants": {
        "num_simulations": 32,
        "qtransform": ("qtransform_by_parent_and_siblings", {"epsilon": 0.5}),
        "invalid": True,
        "temperature": 0.0,
        "dirichlet_fraction": 0.0,
        "pb_c_init": 2.5,
        "pb_c_base": 100,
    },
    "own qtransform": {"num_simulations": 32, "qtransform": (None, {}), "invalid": True, "max_depth": 4},
}
GUMBEL = {
    "defaults": {"num_simulations": 32, "invalid": True},
    "constants": {
        "num_simulations": 40,
        "qtransform": (
            "qtransform_completed_by_mix_value",
            {
                "value_scale": 0.3,
                "maxvisit_init": 20,
                "rescale_values": False,
                "use_mixed_value": False,
            },
        ),
        "max_num_considered_actions": 4,
        "gumbel_scale": 0.5,
        "max_depth": 3,
    },
    "own qtransform": {"num_simulations": 32, "qtransform": (None, {}), "invalid": True, "gumbel_scale": 0.0},
}


def policy(module: Any, params: Any, key: jax.Array, name: str, case: dict[str, Any]) -> Any:
    arguments = dict(case)
    if arguments.pop("invalid", False):
        arguments["invalid_actions"] = invalid_actions()
    if "qtransform" in arguments:
        transform, constants = arguments["qtransform"]
        arguments["qtransform"] = make_qtransform(module, transform, **constants)
    return getattr(module, name)(params, key, root_of(params), worlds.recurrent_fn, **arguments)


@functools.cache
def muzero_outputs(case: str) -> tuple[Any, Any]:
    return both(functools.partial(policy, name="muzero_policy", case=MUZERO[case]), tables(), jax.random.key(3))


@pytest.mark.parametrize("case", cases(MUZERO, fast={"min_max", "own qtransform"}))
def test_muzero_policy(case):
    assert_same(*muzero_outputs(case))


@pytest.mark.parametrize("case", cases(GUMBEL, fast={"constants"}))
def test_gumbel_muzero_policy(case):
    program = functools.partial(policy, name="gumbel_muzero_policy", case=GUMBEL[case])
    assert_same(*both(program, tables(), jax.random.PRNGKey(4)))


# `search` with selection functions of the caller's.


def read_everything(tree: Any, node_index: jax.Array) -> jax.Array:
    """Score edges by all that a tree has to read, each part with its own weight."""
    child = tree.children_index[node_index]
    safe_child = jnp.maximum(child, 0)
    there = child != tree.UNVISITED
    by_edge = [
        tree.qvalues(node_index),
        tree.children_rewards[node_index],
        tree.children_discounts[node_index] * tree.children_values[node_index],
        jnp.where(there, tree.raw_values[safe_child] - tree.node_values[safe_child], 0),
        jnp.where(there, jnp.sqrt(tree.node_visits[safe_child]), 0),
        jax.nn.softmax(tree.children_prior_logits[node_index]) * jnp.sqrt(tree.node_visits[node_index]),
        -tree.children_visits[node_index] / (1 + tree.node_visits[tree.ROOT_INDEX]),
        jnp.where(tree.children_prior_logits[node_index] > jnp.finfo(jnp.float32).min, 0, -9),
        tree.embeddings[node_index, 1] / (40 + jnp.arange(tree.num_actions)),
        jnp.where(tree.parents[node_index] == tree.NO_PARENT, 0, 0.1) * tree.extra_data["bias"],
        0.1 * jnp.cos(tree.action_from_parent[node_index] + jnp.arange(tree.num_actions, dtype=jnp.float32)),
        jnp.min(jnp.where(tree.node_visits > 0, tree.node_values, 0)) * tree.extra_data["bias"] / tree.num_simulations,
    ]
    return sum(weight * part for weight, part in zip(np.linspace(1, 0.5, len(by_edge)), by_edge, strict=True))


def own_root_selection(rng_key: jax.Array, tree: Any, node_index: jax.Array) -> jax.Array:
    del rng_key
    scores = jnp.where(tree.root_invalid_actions, -jnp.inf, read_everything(tree, node_index))
    return jnp.argmax(scores).astype(jnp.int32)


def own_interior_selection(rng_key: jax.Array, tree: Any, node_index: jax.Array, depth: jax.Array) -> jax.Array:
    del rng_key
    assert depth.dtype == tree.children_prior_logits.dtype  # mctx's way
    scores = read_everything(tree, node_index) + jnp.sin(depth * jnp.arange(tree.num_actions))
    return jnp.argmax(scores).astype(jnp.int32)


def test_search_with_own_selection_functions():
    bias = jnp.asarray(np.random.default_rng(2).normal(size=(NUM_WORLDS, NUM_ACTIONS)), jnp.float32)

    def program(module: Any, params: Any, key: jax.Array) -> Any:
        return module.search(
            params,
            key,
            root=root_of(params),
            recurrent_fn=worlds.recurrent_fn,
            root_action_selection_fn=own_root_selection,
            interior_action_selection_fn=own_interior_selection,
            num_simulations=32,
            max_depth=4,
            invalid_actions=invalid_actions(),
            extra_data={"bias": bias},
        )

    assert_same_tree(*both(program, tables(), jax.random.key(5)))


@pytest.mark.slow
def test_search_with_own_root_and_known_interior():
    """Gumbel's root called from a function of the caller's, on a subclass of mctx's extra data; PUCT below."""

    def program(module: Any, params: Any, key: jax.Array) -> Any:
        def root_selection(rng_key: jax.Array, tree: Any, node_index: jax.Array) -> jax.Array:
            return module.gumbel_muzero_root_action_selection(
                rng_key, tree, node_index, num_simulations=24, max_num_considered_actions=4
            )

        gumbel = jax.random.gumbel(jax.random.key(1), (NUM_WORLDS, NUM_ACTIONS))
        return module.search(
            params,
            key,
            root=root_of(params),
            recurrent_fn=worlds.recurrent_fn,
            root_action_selection_fn=root_selection,
            interior_action_selection_fn=functools.partial(module.muzero_action_selection, pb_c_init=2.0),
            num_simulations=24,
            extra_data=module.GumbelMuZeroExtraData(root_gumbel=gumbel),
        )

    assert_same_tree(*both(program, tables(), jax.random.key(5)))


def a_tree() -> Any:
    got, _ = muzero_outputs("min_max")
    return got.search_tree


@pytest.mark.parametrize("node_index", [0, 1, 7])
def test_functions_on_a_finished_tree(node_index):
    """mctx's own functions and ours read the same from one of our trees."""
    tree = a_tree()
    row = jax.tree.map(lambda x: x[3], tree)
    assert (row.num_actions, row.num_simulations) == (NUM_ACTIONS, 32)
    transforms = {
        "qtransform_by_parent_and_siblings": {},
        "qtransform_by_min_max": {"min_value": -2.0, "max_value": 2.0},
        "qtransform_completed_by_mix_value": {},
    }
    for name, constants in transforms.items():
        want = getattr(mctx, name)(row, node_index, **constants)
        np.testing.assert_allclose(getattr(jaxmcts.mctx, name)(row, node_index, **constants), want, atol=1e-5)
    key = jax.random.key(0)
    for depth in (0, 1):
        want = mctx.muzero_action_selection(key, row, jnp.int32(node_index), depth)
        assert jaxmcts.mctx.muzero_action_selection(key, row, jnp.int32(node_index), depth) == want
    want = mctx.gumbel_muzero_interior_action_selection(key, row, jnp.int32(node_index), 1)
    assert jaxmcts.mctx.gumbel_muzero_interior_action_selection(key, row, jnp.int32(node_index), 1) == want


def test_ties_are_broken_by_the_key_where_the_function_is_called():
    row = jax.tree.map(lambda x: x[0], a_tree()).replace(
        children_prior_logits=jnp.zeros((33, NUM_ACTIONS)),
        children_visits=jnp.zeros((33, NUM_ACTIONS), jnp.int32),
        root_invalid_actions=jnp.zeros(NUM_ACTIONS),
    )
    keys = jax.random.split(jax.random.key(0), 50)
    actions = jax.vmap(lambda key: jaxmcts.mctx.muzero_action_selection(key, row, 0, 0))(keys)
    want = jax.vmap(lambda key: mctx.muzero_action_selection(key, row, jnp.int32(0), 0))(keys)
    np.testing.assert_array_equal(actions, want)
    assert len(set(actions.tolist())) > NUM_ACTIONS / 2


def test_summary_is_of_a_batch():
    with pytest.raises(ValueError, match=r"`node_values` has shape \(33,\), expected \(batch, nodes\)"):
        jax.tree.map(lambda x: x[0], a_tree()).summary()


# Programs.


@pytest.fixture
def old_random_bits() -> Iterator[None]:
    """mctx's tests were written before JAX changed how keys give bits; importing them says so to the whole process."""
    before: Any = getattr(jax.config, "jax_threefry_partitionable")  # noqa: B009, JAX declares no types for it
    jax.config.update("jax_threefry_partitionable", False)
    yield
    jax.config.update("jax_threefry_partitionable", before)


def mctx_test(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import one of mctx's own tests and let it test ours."""
    module = importlib.import_module(f"mctx._src.tests.{name}")
    monkeypatch.setattr(module, "mctx", jaxmcts.mctx)
    return module


GOLDEN_TREES = ["muzero_tree", "muzero_qtransform_tree", "gumbel_muzero_tree", "gumbel_muzero_reward_tree"]


@pytest.mark.parametrize("name", cases(GOLDEN_TREES, fast={"muzero_qtransform_tree"}))
def test_golden_trees_of_mctx(name, monkeypatch, old_random_bits):
    module = mctx_test("tree_test", monkeypatch)
    data = json.loads((Path(module.__file__).parent / "test_data" / f"{name}.json").read_text())
    got = module.TreeTest()._reproduce_tree(data)
    chex.assert_trees_all_close(data["tree"], got, atol=1e-3)


POLICY_TESTS = ["muzero_policy", "gumbel_muzero_policy", "gumbel_muzero_policy_without_invalid_actions"]


@pytest.mark.parametrize("name", cases(POLICY_TESTS, fast={"gumbel_muzero_policy"}))
def test_policy_tests_of_mctx(name, monkeypatch, old_random_bits):
    """They run uncompiled, with an empty embedding and a model that takes its rewards by closure."""
    getattr(mctx_test("policies_test", monkeypatch).PoliciesTest(), f"test_{name}")()


def test_readme_example_of_mctx():
    """As it stands there, with something to call it on; uncompiled, so nothing may be left from the first call."""

    def program(mctx: Any, scale: float) -> Any:
        rng_key = jax.random.PRNGKey(0)
        params: dict[str, Any] = {"rewards": jax.random.normal(rng_key, (1, 4)), "layers": 1, "name": "bandit"}

        def recurrent_fn(params: Any, rng_key: jax.Array, action: jax.Array, embedding: jax.Array) -> Any:
            assert rng_key.shape == (2,)  # a key of the old kind
            for _ in range(params["layers"]):  # parameters need not be arrays
                embedding = embedding + 1
            output = mctx.RecurrentFnOutput(
                reward=scale * params["rewards"][jnp.arange(1), action],
                discount=jnp.full(1, 0.5),
                prior_logits=params["rewards"],
                value=jnp.cos(embedding),
            )
            return output, embedding.astype(jnp.bfloat16)  # mctx stores it in the root's dtype

        root = mctx.RootFnOutput(prior_logits=-params["rewards"], value=jnp.zeros(1), embedding=jnp.zeros(1))
        policy_output = mctx.gumbel_muzero_policy(params, rng_key, root, recurrent_fn, num_simulations=32)
        return policy_output

    for scale in (1.0, -1.0):
        assert_same(program(jaxmcts.mctx, scale), program(mctx, scale))


def learn(module: Any, key: jax.Array) -> Any:
    """MuZero in small: representation, dynamics and prediction are learned from searches through the dynamics."""
    batch, num_actions, width, length = 8, 4, 6, 3
    target_values = jnp.cos(jnp.arange(num_actions))

    def predict(params: Any, hidden: jax.Array) -> tuple[jax.Array, jax.Array]:
        return hidden @ params["policy"], jnp.tanh(hidden @ params["value"])

    def advance(params: Any, hidden: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        hidden = jnp.tanh(hidden @ params["dynamics"] + params["action"][action])
        return jnp.tanh(hidden @ params["reward"]), hidden

    def recurrent_fn(params: Any, rng_key: jax.Array, action: jax.Array, hidden: jax.Array) -> Any:
        del rng_key
        reward, hidden = advance(params, hidden, action)
        logits, value = predict(params, hidden)
        output = module.RecurrentFnOutput(
            reward=reward, discount=jnp.full_like(reward, 0.9), prior_logits=logits, value=value
        )
        return output, hidden

    def loss_of(params: Any, observation: jax.Array, action: jax.Array, weights: jax.Array) -> jax.Array:
        hidden = jnp.tanh(observation @ params["representation"])
        logits, value = predict(params, hidden)
        reward, _ = advance(params, hidden, action)
        policy_loss = -jnp.sum(weights * jax.nn.log_softmax(logits), axis=-1)
        return jnp.mean(policy_loss + (value - 0.3) ** 2 + (reward - target_values[action]) ** 2)

    def iteration(params: Any, key: jax.Array) -> tuple[Any, Any]:
        key, observation_key = jax.random.split(key)
        observation = jax.random.normal(observation_key, (batch, width))
        hidden = jnp.tanh(observation @ params["representation"])
        logits, value = predict(params, hidden)
        root = module.RootFnOutput(prior_logits=logits, value=value, embedding=hidden)
        output = module.muzero_policy(params, key, root, recurrent_fn, num_simulations=16)
        grads = jax.grad(loss_of)(params, observation, output.action, output.action_weights)
        return jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), (output.action, output.action_weights)

    shapes = {
        "representation": (width, width), "dynamics": (width, width), "action": (num_actions, width),
        "policy": (width, num_actions), "value": (width,), "reward": (width,),
    }  # fmt: skip
    keys = jax.random.split(key, len(shapes) + 1)
    params = {name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys[1:], shapes.items(), strict=True)}
    return jax.lax.scan(iteration, params, jax.random.split(keys[0], length))


@pytest.mark.slow
def test_learning_through_a_learned_model():
    got, want = both(learn, jax.random.key(6))
    (params, (actions, weights)), (their_params, (their_actions, their_weights)) = got, want
    np.testing.assert_array_equal(actions, their_actions)
    np.testing.assert_allclose(weights, their_weights, atol=1e-5)
    chex.assert_trees_all_close(params, their_params, atol=1e-4)
    assert len(set(np.asarray(actions).ravel().tolist())) > 1


def test_a_callers_vmap():
    """Over seeds, as whole trainings are run: what a model takes by closure varies too, and its batch stays its own."""
    batch = 3

    def program(module: Any, scale: jax.Array, key: jax.Array) -> Any:
        def recurrent_fn(params: Any, rng_key: jax.Array, action: jax.Array, embedding: jax.Array) -> Any:
            del rng_key
            embedding = embedding * params + action
            logits = jnp.sin(embedding[:, None] * jnp.arange(1.0, 5.0)[None] * scale)
            output = module.RecurrentFnOutput(
                reward=jnp.zeros(batch), discount=jnp.full(batch, -1.0), prior_logits=logits, value=jnp.cos(embedding)
            )
            return output, embedding

        logits = jax.random.normal(key, (batch, 4))
        root = module.RootFnOutput(prior_logits=logits, value=logits[:, 0], embedding=logits[:, 1])
        return module.gumbel_muzero_policy(jnp.float32(0.7), key, root, recurrent_fn, num_simulations=12)

    def mapped(module: Any, scales: jax.Array, keys: jax.Array) -> Any:
        return jax.vmap(functools.partial(program, module))(scales, keys)

    got, want = both(mapped, jnp.linspace(0.5, 2.0, 4), jax.random.split(jax.random.key(7), 4))
    np.testing.assert_array_equal(got.action, want.action)
    np.testing.assert_allclose(got.action_weights, want.action_weights, atol=1e-5)
    np.testing.assert_array_equal(got.search_tree.children_visits, want.search_tree.children_visits)


# What a search costs, and what it says of wrong arguments.


@pytest.mark.parametrize("case", ["defaults", "own qtransform"])
def test_no_tree_is_copied(case):
    """The loops of a compiled search copy no array with a node axis, also where the rule sees the tree."""
    num_nodes = 67
    own: dict[str, Any] = {} if case == "defaults" else {"qtransform": (None, {})}
    arguments = {"num_simulations": num_nodes - 1, "dirichlet_fraction": 0.0, **own}

    def search(params: worlds.Tables, key: jax.Array) -> jax.Array:
        output: Any = policy(jaxmcts.mctx, params, key, "muzero_policy", arguments)
        return output.action_weights

    text = jax.jit(search).lower(tables(), jax.random.key(0)).compile().as_text()
    assert hlo.instructions_in_loops(text)
    assert not hlo.copies_in_loops(text, rows=NUM_WORLDS, nodes=num_nodes)


def small_root(**changes: Any) -> Any:
    root = jaxmcts.mctx.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=())
    return root.replace(**changes)


def small_model(params: Any, rng_key: jax.Array, action: jax.Array, embedding: Any) -> Any:
    output = jaxmcts.mctx.RecurrentFnOutput(
        reward=jnp.zeros(2), discount=jnp.ones(2), prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2)
    )
    return output.replace(**params), embedding


WRONG = {
    "root value": ({"root": small_root(value=jnp.zeros(()))}, ValueError, r"`root.value` has shape \(\)"),
    "root logits": ({"root": small_root(prior_logits=jnp.zeros((3, 3)))}, ValueError, "`root` gave `prior_logits`"),
    "invalid actions": ({"invalid_actions": jnp.zeros((2, 4))}, ValueError, "`invalid_actions` has shape"),
    "model value": ({"params": {"value": jnp.zeros((2, 1))}}, ValueError, "`recurrent_fn` gave `value` of shape"),
    "model reward": ({"params": {"reward": jnp.zeros(3)}}, ValueError, "`recurrent_fn` gave `reward` of shape"),
    "model logits": ({"params": {"prior_logits": jnp.zeros((2, 4))}}, ValueError, "`recurrent_fn` gave `prior_logits`"),
    "no pair": ({"recurrent_fn": lambda *_: jnp.zeros(2)}, TypeError, "`recurrent_fn` returned"),
    "embedding": (
        {"recurrent_fn": lambda *given: (small_model(*given)[0], jnp.zeros(2))}, TypeError, "`embedding` came back"
    ),
    "max_depth": ({"max_depth": 0}, ValueError, "`max_depth` is 0"),
    "num_simulations": ({"num_simulations": 2.5}, TypeError, "`num_simulations` is 2.5"),
    "considered": ({"max_num_considered_actions": 0}, ValueError, "`max_num_considered_actions` is 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name):
    changes, error, message = WRONG[name]
    arguments = {
        "params": {}, "rng_key": jax.random.key(0), "root": small_root(), "recurrent_fn": small_model,
        "num_simulations": 3, **changes,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        jax.eval_shape(lambda: jaxmcts.mctx.gumbel_muzero_policy(**arguments))


def test_extra_data_needs_a_row_for_each_root():
    with pytest.raises(ValueError, match="`extra_data` has a leaf of shape"):
        jaxmcts.mctx.search(
            {},
            jax.random.key(0),
            root=small_root(),
            recurrent_fn=small_model,
            root_action_selection_fn=own_root_selection,
            interior_action_selection_fn=own_interior_selection,
            num_simulations=3,
            extra_data=jnp.zeros(3),
        )
