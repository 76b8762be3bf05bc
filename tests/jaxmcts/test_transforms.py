"""The search under JAX's transformations: vmap, shard_map, grad, jit and donation; its memory; its errors."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from jax.tree_util import Partial

import jaxmcts
from tests import worlds
from tests.jaxmcts import hlo, trees
from tests.jaxmcts.searching import QUICK_TO_COMPILE, params_of, plain_alphazero, same_rule

NUM_ACTIONS = 5


def random_params(seed: int, count: int) -> worlds.Tables:
    drawn = [
        worlds.random_world(np.random.default_rng([seed, i]), illegal=0.3, terminated=0.15, same_mover=0.3)
        for i in range(count)
    ]
    return params_of(*drawn)


def quickly(fn: Callable[..., Any], **options: Any) -> Any:
    return jax.jit(fn, compiler_options=QUICK_TO_COMPILE, **options)


# vmap


def uct(params: worlds.Tables, state: jax.Array, c: jax.Array) -> dict[str, jax.Array]:
    out = jaxmcts.uct_policy(params, jax.random.key(0), state, worlds.MODEL, num_simulations=12, c=c)
    return {"visits": out.tree.visits, "q": out.tree.q, "action": out.action, "value": out.value}


def test_vmap_over_two_more_axes():
    """Parameters have one of the extra axes, constants the other: each lane equals a call of its own."""
    by_lane = [random_params(seed, 3) for seed in range(2)]
    params = jax.tree.map(lambda *tables: jnp.stack(tables), *by_lane)
    constants = jnp.array([[0.3, 1.0, 2.0], [1.4, 0.0, 5.0]])  # [U, B]
    state = worlds.roots(3)
    over_constants = jax.vmap(uct, in_axes=(None, None, 0))
    got = quickly(jax.vmap(over_constants, in_axes=(0, None, None)))(params, state, constants)
    alone = quickly(uct)
    for v in range(2):
        for u in range(2):
            want = alone(by_lane[v], state, constants[u])
            np.testing.assert_array_equal(got["visits"][v, u], want["visits"])
            np.testing.assert_array_equal(got["action"][v, u], want["action"])
            np.testing.assert_allclose(got["q"][v, u], want["q"], atol=1e-6)
            np.testing.assert_allclose(got["value"][v, u], want["value"], atol=1e-6)
    assert (got["visits"][0, 0] != got["visits"][0, 1]).any()


def test_vmap_over_keys_and_states_without_parameters_equals_the_flat_batch():
    params, key = random_params(3, 6), jax.random.split(jax.random.key(1), 6)

    def search(key: jax.Array, state: jax.Array) -> jax.Array:
        return jaxmcts.gumbel_policy(params, key, state, worlds.MODEL, num_simulations=12).tree.visits

    flat = quickly(search)(key, worlds.roots(6))
    folded = quickly(jax.vmap(search))(key.reshape(2, 3), worlds.roots(6).reshape(2, 3, 2))
    np.testing.assert_array_equal(folded.reshape(flat.shape), flat)


# shard_map


def eight_devices() -> jax.sharding.Mesh:
    assert jax.device_count() == 8, "tests/conftest.py asks for eight virtual devices"
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def test_shard_map_equals_the_unsharded_search_and_needs_no_collectives():
    params, keys, state = random_params(4, 16), jax.random.split(jax.random.key(2), 16), worlds.roots(16)

    def search(params: worlds.Tables, keys: jax.Array, state: jax.Array) -> jaxmcts.PolicyOutput:
        return jaxmcts.alphazero_policy(params, keys, state, worlds.MODEL, num_simulations=12)

    mesh = eight_devices()
    sharded = quickly(jax.shard_map(search, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data")))
    compiled = sharded.lower(params, keys, state).compile()
    assert hlo.collectives(compiled.as_text()) == []
    got, want = compiled(params, keys, state), quickly(search)(params, keys, state)
    np.testing.assert_array_equal(got.tree.visits, want.tree.visits)
    np.testing.assert_array_equal(got.action, want.action)
    np.testing.assert_allclose(got.tree.q, want.tree.q, atol=1e-6)


def test_one_key_draws_the_same_in_a_split_batch():
    params, state = random_params(4, 16), worlds.roots(16)

    def search(params: worlds.Tables, key: jax.Array, state: jax.Array) -> jaxmcts.PolicyOutput:
        return jaxmcts.alphazero_policy(params, key, state, worlds.MODEL, num_simulations=12)

    split = quickly(jax.shard_map(search, mesh=eight_devices(), in_specs=(P(), P(), P("data")), out_specs=P("data")))
    got, want = split(params, jax.random.key(2), state), quickly(search)(params, jax.random.key(2), state)
    np.testing.assert_array_equal(got.tree.visits, want.tree.visits)
    np.testing.assert_array_equal(got.action, want.action)


def test_the_scanner_sees_a_collective():
    mesh = eight_devices()
    total = jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    assert hlo.collectives(jax.jit(total).lower(jnp.arange(8.0)).compile().as_text()) != []


# jit


@dataclasses.dataclass(frozen=True)
class Counting:
    """A step that counts how often it is traced."""

    traces: list[int] = dataclasses.field(default_factory=list, compare=False)

    def __call__(self, params: Any, keys: Any, state: Any, action: Any) -> Any:
        self.traces.append(1)
        return worlds.MODEL.step(params, keys, state, action)


def test_repeated_calls_and_new_constants_trace_once():
    step = Counting()
    model = jaxmcts.Model(step=step, evaluate=worlds.MODEL.evaluate)

    @quickly
    def search(params, key, state, c_init, k):
        fpu = Partial(jaxmcts.fpu_reduction, k=k)
        return plain_alphazero(params, key, state, model, num_simulations=4, c_init=c_init, fpu=fpu).value

    for seed in range(3):
        search(random_params(seed, 2), jax.random.key(seed), worlds.roots(2), 1.0 + seed, 0.1 * seed)
    traced = len(step.traces)
    search(random_params(7, 2), jax.random.key(7), worlds.roots(2), jnp.float32(3.0), jnp.float32(0.3))
    assert search._cache_size() <= 2  # Python and JAX numbers
    assert traced == 1


def test_models_of_equal_parts_do_not_trace_again():
    """Outside `jit` too: `run` is compiled once for equal models and any Python numbers."""
    step, params = Counting(), random_params(5, 2)
    tree = jaxmcts.init(params, jax.random.key(0), worlds.roots(2), worlds.MODEL, capacity=9)
    for c in (0.5, 1.0, 2.0):
        model = jaxmcts.Model(step=step, evaluate=worlds.MODEL.evaluate)
        rules = same_rule(Partial(jaxmcts.rules.uct.uct, c=c))
        jaxmcts.run(params, tree, model, num_simulations=4, **rules)
    assert len(step.traces) == 1


# grad


@pytest.mark.parametrize("policy", [jaxmcts.alphazero_policy, jaxmcts.gumbel_policy], ids=["alphazero", "gumbel"])
def test_gradients_around_a_search_are_zero(policy):
    params = random_params(6, 2)

    def loss(values: jax.Array) -> jax.Array:
        out = policy({**params, "value": values}, jax.random.key(0), worlds.roots(2), worlds.MODEL, num_simulations=4)
        return jnp.sum(out.value) + jnp.sum(out.action_weights[:, 0])

    gradient = quickly(jax.grad(loss))(params["value"])
    np.testing.assert_array_equal(gradient, np.zeros_like(params["value"]))


# Copies: a loop must not copy a whole tree. 37 nodes, so that no other axis has such a size.

ROWS, NODES = 3, 37


def bad_loop(buffer: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Write one place of a buffer and read the old one for something else: XLA keeps both by a copy."""

    def body(i: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        buffer, total = carry
        new = buffer.at[i % ROWS, i % NODES, 0].set(jnp.float32(i))
        return new, total + buffer[0, (i + 1) % NODES, 1] * new[0, 0, 0]

    return jax.lax.fori_loop(0, 20, body, (buffer, jnp.float32(0)))


def good_loop(buffer: jax.Array) -> jax.Array:
    """What is read feeds the write."""

    def body(i: jax.Array, buffer: jax.Array) -> jax.Array:
        return buffer.at[i % ROWS, i % NODES, 0].add(1.0)

    return jax.lax.fori_loop(0, 20, body, buffer)


def test_the_scanner_tells_a_bad_loop_from_a_good_one():
    buffer = jnp.zeros((ROWS, NODES, NUM_ACTIONS))
    bad, good = (jax.jit(loop).lower(buffer).compile().as_text() for loop in (bad_loop, good_loop))
    assert hlo.copies_in_loops(bad, rows=ROWS, nodes=NODES)
    assert hlo.instructions_in_loops(good)
    assert not hlo.copies_in_loops(good, rows=ROWS, nodes=NODES)


def visit_counter(parent: Any, edge: Any, child: Any, value: jax.Array) -> Any:
    """A backup with arrays of its own: it counts the visits of each node once more, in `rule_state`."""
    update, passed = jaxmcts.mean_backup(parent, edge, child, value)
    return dataclasses.replace(update, rule_state=parent.rule_state + 1), passed


def live_puct(key: jax.Array, tree: jaxmcts.Tree, index: jax.Array) -> jax.Array:
    del key
    return jaxmcts.rules.puct.alphazero(jaxmcts.read_node(tree, index))


SEARCHES: dict[str, dict[str, Any]] = {
    "alphazero": same_rule(Partial(jaxmcts.rules.puct.alphazero)),
    "uct": same_rule(Partial(jaxmcts.rules.uct.uct)),
    "gumbel inside": same_rule(Partial(jaxmcts.rules.gumbel.gumbel_interior)),
    "live": same_rule(jaxmcts.Live(live_puct)),
    "own backup": same_rule(Partial(jaxmcts.rules.puct.alphazero), visit_counter),
}


def empty_tree(params: worlds.Tables, rules: dict[str, Any], nodes: int = NODES) -> jaxmcts.Tree:
    rule_state = jnp.zeros((ROWS, nodes)) if rules["backup"] is visit_counter else ()
    return jaxmcts.init(
        params, jax.random.key(0), worlds.roots(ROWS), worlds.MODEL, capacity=nodes, rule_state=rule_state
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_no_loop_copies_an_array_with_a_node_axis(name):
    """Compiled as users compile it, with the tree donated."""
    rules, params = SEARCHES[name], random_params(8, ROWS)
    run = jax.jit(
        lambda params, tree: jaxmcts.run(params, tree, worlds.MODEL, num_simulations=NODES - 1, **rules),
        donate_argnums=1,
    )
    compiled = run.lower(params, empty_tree(params, rules)).compile()
    text = compiled.as_text()
    assert len(hlo.instructions_in_loops(text)) > 100
    assert hlo.copies_in_loops(text, rows=ROWS, nodes=NODES) == []


def test_a_backup_with_arrays_of_its_own():
    rules, params = SEARCHES["own backup"], random_params(8, ROWS)
    run = quickly(lambda params, tree: jaxmcts.run(params, tree, worlds.MODEL, num_simulations=NODES - 1, **rules))
    tree = run(params, empty_tree(params, rules))
    used = np.asarray(tree.total_visits) > 0
    np.testing.assert_array_equal(np.asarray(tree.rule_state)[used], np.asarray(tree.total_visits)[used] - 1)


def test_donation_gives_the_same_tree():
    rules, params = SEARCHES["alphazero"], random_params(9, ROWS)

    def run(params: worlds.Tables, tree: jaxmcts.Tree) -> jaxmcts.Tree:
        return jaxmcts.run(params, tree, worlds.MODEL, num_simulations=NODES - 1, **rules)

    want = quickly(run)(params, empty_tree(params, rules))
    donated = empty_tree(params, rules)
    got = quickly(run, donate_argnums=1)(params, donated)
    trees.assert_bit_equal(got, want)
    assert donated.visits.is_deleted()


# Memory


def _hash_step(params: Any, keys: Any, state: jax.Array, action: jax.Array) -> Any:
    del params, keys
    mixed = state * jnp.uint8(5) + action.astype(jnp.uint8)[:, None]
    zero = mixed[:, 0].astype(jnp.float32) * 0
    return jaxmcts.Transition(reward=zero, discount=zero - 1), mixed


@dataclasses.dataclass(frozen=True)
class HashEvaluate:
    """Judge a state of 200 bytes by its bytes, without a network."""

    num_actions: int

    def __call__(self, params: Any, keys: Any, state: jax.Array) -> Any:
        del params, keys
        logits = jnp.sin(state[:, : self.num_actions].astype(jnp.float32))
        evaluation = jaxmcts.Evaluation(
            prior_logits=logits, value=logits[:, 0] / 2, legal_action_mask=jnp.ones_like(logits, dtype=bool)
        )
        return evaluation, state


def compile_hash_search(batch_size: int, num_actions: int, num_simulations: int, *, donated: bool) -> Any:
    """Compile a search or a donated run on states of 200 bytes; nothing is allocated or run."""
    model = jaxmcts.Model(step=_hash_step, evaluate=HashEvaluate(num_actions))
    rules = same_rule(Partial(jaxmcts.rules.puct.alphazero))
    state = jax.ShapeDtypeStruct((batch_size, 200), jnp.uint8)
    key = jax.eval_shape(lambda: jax.random.key(0))
    init = functools.partial(jaxmcts.init, capacity=num_simulations + 1, model=model)
    budget = {"model": model, "num_simulations": num_simulations, **rules}
    if not donated:
        return jax.jit(functools.partial(jaxmcts.search, **budget)).lower((), key, state).compile()
    tree = jax.eval_shape(init, (), key, state)
    return jax.jit(functools.partial(jaxmcts.run, **budget), donate_argnums=1).lower((), tree).compile()


def bytes_needed(compiled: Any) -> int:
    analysis = compiled.memory_analysis()
    return (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        + analysis.temp_size_in_bytes
        - analysis.alias_size_in_bytes
    )


@pytest.mark.parametrize("donated", [False, True], ids=["search", "donated run"])
@pytest.mark.parametrize(("batch_size", "num_actions", "num_simulations"), [(256, 82, 200), (64, 9, 400)])
def test_memory_is_what_is_estimated(batch_size, num_actions, num_simulations, donated):
    compiled = compile_hash_search(batch_size, num_actions, num_simulations, donated=donated)
    estimate = jaxmcts.memory(
        batch_size=batch_size,
        num_actions=num_actions,
        capacity=num_simulations + 1,
        state=jax.ShapeDtypeStruct((200,), jnp.uint8),
    )
    assert bytes_needed(compiled) == pytest.approx(estimate, rel=0.1)


def test_a_large_search_fits_in_1_3_gib():
    """1,024 trees of 82 actions, 800 simulations, states of 200 bytes."""
    assert bytes_needed(compile_hash_search(1024, 82, 800, donated=False)) <= 1.3 * 2**30


# Errors: each says which argument, what came and what was expected.

PARAMS = functools.cache(lambda: random_params(10, 2))
GOOD_ROOT = functools.cache(lambda: worlds.evaluation(PARAMS(), worlds.roots(2)))


def call(policy: Any = jaxmcts.uct_policy, **changes: Any) -> Any:
    """Call a policy rightly but for some arguments."""
    arguments = {"params": PARAMS(), "key": jax.random.key(0), "state": worlds.roots(2), "model": worlds.MODEL}
    return policy(**{**arguments, "num_simulations": 2, **changes})


def root_with(**changes: Any) -> jaxmcts.Evaluation:
    return dataclasses.replace(GOOD_ROOT(), **changes)


def model_with(step: Callable[[Any], Any] = lambda x: x, evaluate: Callable[[Any], Any] = lambda x: x) -> jaxmcts.Model:
    """The table model with its transition, or its evaluation and state, changed on the way out."""

    def changed_step(params: Any, keys: Any, state: Any, action: Any) -> Any:
        transition, pending = worlds.MODEL.step(params, keys, state, action)
        return step(transition), pending

    def changed_evaluate(params: Any, keys: Any, pending: Any) -> Any:
        return evaluate(worlds.MODEL.evaluate(params, keys, pending))

    return jaxmcts.Model(step=changed_step, evaluate=changed_evaluate)


def start_run(capacity: int = 4, **changes: Any) -> Any:
    tree = jaxmcts.init(PARAMS(), jax.random.key(0), worlds.roots(2), worlds.MODEL, capacity=capacity)
    rules = {**same_rule(Partial(jaxmcts.rules.uct.uct)), "num_simulations": 2, **changes}
    return jaxmcts.run(PARAMS(), tree, worlds.MODEL, **rules)


def start_init(**changes: Any) -> Any:
    arguments = {"params": PARAMS(), "key": jax.random.key(0), "state": worlds.roots(2), "model": worlds.MODEL}
    return jaxmcts.init(**{**arguments, "capacity": 4, **changes})


ALPHAZERO, GUMBEL = jaxmcts.alphazero_policy, jaxmcts.gumbel_policy
MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "negative budget": (ValueError, "`num_simulations` is -1, expected 0 or more", lambda: call(num_simulations=-1)),
    "fractional budget": (
        TypeError,
        "`num_simulations` is 2.5 of type float, expected a Python int",
        lambda: call(num_simulations=2.5),
    ),
    "boolean budget": (TypeError, "`num_simulations` is True", lambda: call(num_simulations=True)),
    "traced budget": (
        TypeError,
        "`num_simulations` arrived traced",
        lambda: jax.jit(lambda n: call(num_simulations=n).value)(3),
    ),
    "no depth": (ValueError, "`max_depth` is 0, expected 1 or more", lambda: call(max_depth=0)),
    "too much capacity": (
        ValueError,
        "`capacity` is 16777217, expected 16777216",
        lambda: start_init(capacity=2**24 + 1),
    ),
    "no capacity": (ValueError, "`capacity` is 0, expected 1 or more", lambda: start_init(capacity=0)),
    "budget over capacity": (
        ValueError,
        "`num_simulations` is 9 but `capacity` is 4: the tree needs at least 10",
        lambda: start_run(num_simulations=9),
    ),
    "keys of another batch": (
        ValueError,
        r"`key` has shape \(3,\), expected one key or one per row, \(2,\)",
        lambda: call(key=jax.random.split(jax.random.key(0), 3)),
    ),
    "a number as key": (TypeError, "`key`", lambda: call(key=0)),
    "a float as key": (TypeError, "`key`", lambda: call(key=jnp.zeros(2))),
    "state without a batch": (ValueError, "`state` has leaves of shapes", lambda: call(state=jnp.int32(0))),
    "state of two batches": (
        ValueError,
        "`state` has leaves of shapes",
        lambda: call(state=(jnp.zeros(2), jnp.zeros(3))),
    ),
    "state without arrays": (ValueError, "`state` has no arrays", lambda: call(state=())),
    "an empty batch": (ValueError, "`state` has batch size 0", lambda: call(state=worlds.roots(2)[:0])),
    "root of another type": (
        TypeError,
        "`root_evaluation` gave a dict, expected a `jaxmcts.Evaluation`",
        lambda: call(root_evaluation={"value": 0}),
    ),
    "logits without actions": (
        ValueError,
        r"`root_evaluation` gave `prior_logits` of shape \(2,\), expected \(batch, actions\)",
        lambda: call(root_evaluation=root_with(prior_logits=jnp.zeros(2))),
    ),
    "mask of another shape": (
        ValueError,
        r"`prior_logits` of shape \(2, 5\) but `legal_action_mask` of shape \(2, 4\)",
        lambda: call(root_evaluation=root_with(legal_action_mask=jnp.ones((2, 4), bool))),
    ),
    "mask of floats": (
        TypeError,
        "`legal_action_mask` of dtype float32, expected bool where True means allowed",
        lambda: call(root_evaluation=root_with(legal_action_mask=jnp.ones((2, 5)))),
    ),
    "value with an axis too many": (
        ValueError,
        r"`value` of shape \(2, 1\), expected \(2,\): squeeze",
        lambda: call(root_evaluation=root_with(value=jnp.zeros((2, 1)))),
    ),
    "value of booleans": (
        TypeError,
        "`value` of dtype bool",
        lambda: call(root_evaluation=root_with(value=jnp.zeros(2, bool))),
    ),
    "extras without a batch": (
        ValueError,
        "`extras` with a leaf of shape",
        lambda: call(root_evaluation=root_with(extras=jnp.zeros(3))),
    ),
    "step gives no transition": (
        TypeError,
        "`step` gave a tuple, expected a `jaxmcts.Transition`",
        lambda: call(model=model_with(step=lambda t: (t.reward, t.discount))),
    ),
    "reward with an axis too many": (
        ValueError,
        r"`step` gave `reward` of shape \(2, 1\), expected \(2,\): squeeze",
        lambda: call(model=model_with(step=lambda t: dataclasses.replace(t, reward=t.reward[:, None]))),
    ),
    "discount of booleans": (
        TypeError,
        "`step` gave `discount` of dtype bool",
        lambda: call(model=model_with(step=lambda t: dataclasses.replace(t, discount=t.discount > 0))),
    ),
    "actions that differ from the root's": (
        ValueError,
        "but the root has 4",
        lambda: call(
            root_evaluation=root_with(prior_logits=jnp.zeros((2, 4)), legal_action_mask=jnp.ones((2, 4), bool))
        ),
    ),
    "state that changes its dtype": (
        TypeError,
        "`state`.* as float32",
        lambda: call(root_evaluation=GOOD_ROOT(), model=model_with(evaluate=lambda x: (x[0], x[1] * 1.0))),
    ),
    "state that changes its structure": (
        TypeError,
        "`state` came back with structure",
        lambda: call(root_evaluation=GOOD_ROOT(), model=model_with(evaluate=lambda x: (x[0], {"s": x[1]}))),
    ),
    "extras that come and go": (
        TypeError,
        "`extras` came back with structure",
        lambda: call(root_evaluation=root_with(extras=jnp.zeros(2))),
    ),
    "rule state of another capacity": (
        ValueError,
        r"`rule_state` has a leaf of shape \(2, 3\)",
        lambda: start_init(rule_state=jnp.zeros((2, 3))),
    ),
    "constant of another batch": (ValueError, r"has shape \(3,\), expected a scalar", lambda: call(c=jnp.ones(3))),
    "noise of another batch": (
        ValueError,
        "`dirichlet_fraction`",
        lambda: call(ALPHAZERO, dirichlet_fraction=jnp.ones(3)),
    ),
    "alpha of another batch": (ValueError, "`dirichlet_alpha`", lambda: call(ALPHAZERO, dirichlet_alpha=jnp.ones(3))),
    "temperature of another batch": (ValueError, "`temperature`", lambda: call(ALPHAZERO, temperature=jnp.ones(3))),
    "scale of another batch": (ValueError, "`gumbel_scale`", lambda: call(GUMBEL, gumbel_scale=jnp.ones(3))),
    "draw of another shape": (
        ValueError,
        r"`root_gumbel` has shape \(5,\), expected \(batch, actions\) = \(2, 5\)",
        lambda: call(GUMBEL, root_gumbel=jnp.zeros(5)),
    ),
    "no candidates": (
        ValueError,
        "`max_num_considered_actions` is 0, expected 1 or more",
        lambda: call(GUMBEL, max_num_considered_actions=0),
    ),
    "noise without concentration": (
        ValueError,
        "`dirichlet_alpha` is 0.0, expected numbers from 1e-06",
        lambda: call(ALPHAZERO, dirichlet_alpha=0.0),
    ),
    "more noise than prior": (ValueError, "`dirichlet_fraction` is 2", lambda: call(ALPHAZERO, dirichlet_fraction=2)),
    "temperature below 0": (ValueError, "`temperature` is -1.0", lambda: call(ALPHAZERO, temperature=-1.0)),
    "temperature that is no number": (ValueError, "`temperature` is nan", lambda: call(ALPHAZERO, temperature=np.nan)),
    "temperature in words": (TypeError, "`temperature` is 'hot'", lambda: call(ALPHAZERO, temperature="hot")),
    "constant in words": (TypeError, "`c` is 'x', expected a number", lambda: call(c="x")),
    "constant of a rule in words": (
        TypeError,
        "a constant of `uct` is 'x'",
        lambda: start_run(select=functools.partial(jaxmcts.rules.uct.uct, c="x")),
    ),
    "no constant": (TypeError, "`c` is None, expected a number", lambda: call(c=None)),
    "infinite constant": (
        ValueError,
        "`c_scale` is inf, expected a finite",
        lambda: call(GUMBEL, c_scale=np.inf),
    ),
    "constant that is no number": (ValueError, "`c_init` is nan", lambda: call(ALPHAZERO, c_init=np.nan)),
    "fpu that is a number": (TypeError, "`fpu` is 0.0, expected a function", lambda: call(ALPHAZERO, fpu=0.0)),
    "even noise": (ValueError, "`dirichlet_alpha` is inf", lambda: call(ALPHAZERO, dirichlet_alpha=np.inf)),
    "a rule that gives nothing": (TypeError, "a rule returned None", lambda: start_run(select=lambda node: None)),
    "no rule": (TypeError, "`select` is None, expected a function that is called as", lambda: start_run(select=None)),
    "evaluation without the state": (
        TypeError,
        "`evaluate` returned Evaluation, expected a pair",
        lambda: call(model=model_with(evaluate=lambda pair: pair[0])),
    ),
    "state in place of a tree": (
        TypeError,
        "`tree` is a .*, expected a `jaxmcts.Tree`",
        lambda: jaxmcts.run(
            PARAMS(), worlds.roots(2), worlds.MODEL, **same_rule(jaxmcts.rules.uct.uct), num_simulations=1
        ),
    ),
    "output read as a tree": (TypeError, "a policy gives `out.tree`", lambda: jaxmcts.visit_shares(call())),
    "output in place of a tree": (TypeError, "a policy gives `out.tree`", lambda: jaxmcts.view(call())),
    "no key": (TypeError, "`key` is None", lambda: call(key=None)),
    "params of words": (TypeError, "`params` has a leaf 'x' of type str", lambda: call(params={"a": "x"})),
    "model and state swapped": (TypeError, "`model` is a ", lambda: call(model=worlds.roots(2))),
    "model that holds an array": (
        TypeError,
        "`model` cannot be hashed",
        lambda: call(model=jaxmcts.Model(step=HoldsArray(jnp.ones(2)), evaluate=worlds.MODEL.evaluate)),
    ),
    "rule that returns scores": (
        TypeError,
        r"a rule returned float64\[5\]|a rule returned float32\[5\]",
        lambda: start_run(**same_rule(lambda node: node.q)),
    ),
    "rule that returns a float": (
        TypeError,
        r"a rule returned float\d\d\[\], expected one action",
        lambda: start_run(**same_rule(lambda node: node.value)),
    ),
    "backup that returns no pair": (
        TypeError,
        "`backup` returned Update",
        lambda: start_run(backup=lambda parent, edge, child, value: jaxmcts.Update(q=value, value=value)),
    ),
    "backup of rows": (
        ValueError,
        r"`backup` gave `q` of shape \(5,\)",
        lambda: start_run(backup=lambda parent, edge, child, value: (jaxmcts.Update(q=parent.q, value=value), value)),
    ),
    "view of a row that is not there": (ValueError, "`row` is 7", lambda: jaxmcts.view(start_init(), row=7)),
}


@dataclasses.dataclass(frozen=True)
class HoldsArray:
    array: jax.Array


def test_an_action_out_of_range_is_moved_into_it():
    """What only the device knows never raises: the nearest action is taken, and reads stay inside the tree."""
    tree = start_run(**same_rule(lambda node: jnp.int32(700)))
    worlds_actions = tree.visits[:, 0].sum(axis=0)
    assert worlds_actions[:-1].sum() == 0 and worlds_actions[-1] == 4


def nan_backup(parent: Any, edge: Any, child: Any, value: Any) -> Any:
    return jaxmcts.Update(q=value * jnp.nan, value=value), value


def test_a_backup_that_gives_nan_is_flagged_and_writes_nothing():
    tree = start_run(backup=nan_backup)
    assert (tree.flags == jaxmcts.Flags.NOT_FINITE).all()
    assert tree.visits.sum() == 0 and np.isfinite(tree.q).all()


def test_a_rule_may_keep_infinity():
    """Only `q` and `value` must be finite: smallest and largest so far begin with infinities."""
    plain = start_run()
    kept = {"least": jnp.full((2, 4), jnp.inf), "seen": jnp.zeros((2, 4), jnp.int32)}
    rules = same_rule(Partial(jaxmcts.rules.uct.uct))
    tree = jaxmcts.run(PARAMS(), start_init(rule_state=kept), worlds.MODEL, **rules, num_simulations=2)
    np.testing.assert_array_equal(tree.visits, plain.visits)
    assert (tree.flags == 0).all() and (tree.rule_state["least"] == jnp.inf).all()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake):
    error, message, make = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        make()
