import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import envs
from envs.base import BoardGame
from envs.symmetry import IDENTITY
from train import checkpoint, learner, replay, selfplay, targets
from train.config import Config
from train.learner import Batch, Learner
from train.network import Network
from train.replay import Replay

ENV = envs.make("connect_four")
NETWORK = Network(observation_shape=ENV.observation_shape, num_actions=7, channels=16, blocks=1)
CONFIG = Config(iterations=1, updates=200, batch=32, learning_rate=1e-2, weight_decay=0.0)


def batch_of(weights: list[float], mask: list[bool], value: float = 0.0) -> Batch:
    return Batch(
        observation=jnp.zeros((1, *ENV.observation_shape)),
        legal_action_mask=jnp.array([mask]),
        action_weights=jnp.array([weights]),
        policy_weight=jnp.ones(1),
        value=jnp.array([value]),
    )


class Table:
    """A network whose parameters are the logits; its value is 0."""

    def __call__(self, logits: jax.Array, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.broadcast_to(logits, (observation.shape[0], logits.size)), jnp.zeros(observation.shape[0])


def table_loss(logits: list[float], batch: Batch) -> tuple[float, jax.Array]:
    evaluate = jax.value_and_grad(lambda x: learner.loss(x, batch, Table(), 1.0)[0])  # type: ignore[arg-type]
    value, gradient = evaluate(jnp.array(logits))
    return float(value), gradient


def test_illegal_moves_are_masked_in_the_loss() -> None:
    value, gradient = table_loss([1, 2, 3, 9.0], batch_of([0.2, 0.3, 0.5, 0.0], [True, True, True, False]))
    expected = -np.dot([0.2, 0.3, 0.5], jax.nn.log_softmax(jnp.array([1.0, 2.0, 3.0])))
    assert value == pytest.approx(expected, rel=1e-6)
    assert gradient[3] == 0


def test_masked_targets_make_no_nan() -> None:
    value, gradient = table_loss([0, 0, -jnp.inf], batch_of([0.5, 0.5, 0.0], [True, True, False]))
    assert value == pytest.approx(np.log(2), rel=1e-6)
    np.testing.assert_array_equal(gradient, [0, 0, 0])


def test_value_error_is_squared_and_weighted() -> None:
    batch = batch_of([1.0, 0.0], [True, False], value=-0.5)
    total, parts = learner.loss(jnp.zeros(2), batch, Table(), 3.0)  # type: ignore[arg-type]
    assert float(total) == pytest.approx(3 * 0.25)
    assert float(parts["policy_kl"]) == pytest.approx(0, abs=1e-6)


def test_the_policy_is_learned_from_the_rows_that_have_one() -> None:
    both = jax.tree.map(
        lambda a, b: jnp.concatenate([a, b]),
        batch_of([0.8, 0.2, 0, 0], [True] * 4, value=0.5),
        batch_of([0, 0, 0, 1.0], [True] * 4, value=1.0),
    )
    some = dataclasses.replace(both, policy_weight=jnp.array([1.0, 0.0]))
    one = jax.tree.map(lambda x: x[:1], both)
    logits = [1, 2, 3, 4.0]
    policy = table_loss(logits, one)[0] - 0.5**2
    value, gradient = table_loss(logits, some)
    assert value == pytest.approx(policy + (0.5**2 + 1) / 2, rel=1e-6)  # the value is learned from both
    np.testing.assert_allclose(gradient, table_loss(logits, one)[1], rtol=1e-6)


def test_a_batch_without_a_policy_gives_a_value_loss_alone() -> None:
    none = dataclasses.replace(batch_of([0.5, 0.5], [True, True], value=0.5), policy_weight=jnp.zeros(1))
    total, parts = learner.loss(jnp.ones(2), none, Table(), 1.0)  # type: ignore[arg-type]
    assert (float(total), float(parts["policy_loss"]), float(parts["policy_kl"])) == (0.25, 0, 0)
    np.testing.assert_array_equal(table_loss([1.0, 2.0], none)[1], [0, 0])


@functools.partial(jax.jit, static_argnums=0)
def positions(count: int) -> targets.Sample:
    """Positions after random openings, with a made-up policy and value."""
    keys = jax.random.split(jax.random.key(0), count)
    state, _ = jax.vmap(lambda key: selfplay.opening(key, ENV, 9))(keys)
    mask = jax.vmap(ENV.legal_action_mask)(state)
    logits = jnp.where(mask, jax.random.normal(jax.random.key(1), mask.shape), -jnp.inf)
    value = jax.random.uniform(jax.random.key(2), (count,), minval=-1, maxval=1)
    return targets.Sample(
        state=state, action_weights=jax.nn.softmax(3 * logits), policy_weight=jnp.ones(count), value=value
    )


Update = Callable[[Learner, Replay, jax.Array], tuple[Learner, dict[str, jax.Array]]]


@functools.cache
def start(config: Config) -> tuple[Learner, Update]:
    optimizer = learner.make_optimizer(config)
    update = functools.partial(
        learner.update, env=ENV, network=NETWORK, optimizer=optimizer, batch=config.batch,
        symmetries=(IDENTITY,), value_weight=1.0, average_decay=config.average_decay,
    )  # fmt: skip
    begin = functools.partial(learner.start, network=NETWORK, optimizer=optimizer, average_decay=config.average_decay)
    state = jax.jit(begin)(jax.random.key(3))
    return state, jax.jit(update)


@jax.jit
def ring_of(sample: targets.Sample) -> Replay:
    empty = replay.create(jax.tree.map(lambda x: x[0], sample), sample.value.size)
    return replay.add(empty, sample)


def test_one_batch_is_learned_by_heart() -> None:
    state, update = start(CONFIG)
    ring = ring_of(positions(16))
    history = []
    for number in range(200):
        state, metrics = update(state, ring, jax.random.fold_in(jax.random.key(4), number))
        history.append(metrics)
    assert history[0]["policy_kl"] > 0.3 and history[0]["value_loss"] > 0.1
    assert history[-1]["policy_kl"] < 0.1 and history[-1]["value_loss"] < 0.02
    assert int(state.updates) == 200


def test_a_bad_position_is_skipped_and_counted() -> None:
    clean = positions(16)
    broken = dataclasses.replace(clean, value=clean.value * jnp.nan)
    state, update = start(CONFIG)
    good, bad = ring_of(clean), ring_of(broken)
    keys = jax.random.split(jax.random.key(5), 10)
    without = with_it = state
    for number, key in enumerate(keys):
        with_it, metrics = update(with_it, bad if number == 3 else good, key)
        if number != 3:
            without, _ = update(without, good, key)
    assert int(metrics["skipped_updates"]) == 1
    jax.tree.map(np.testing.assert_array_equal, with_it.params, without.params)
    assert int(with_it.updates) == 10


def test_loss_is_a_mean_over_rows() -> None:
    once = learner.observe(ENV, positions(16))
    twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), once)
    state, _ = start(CONFIG)

    @jax.jit
    def gradient(batch: Batch) -> Any:
        return jax.grad(lambda params: learner.loss(params, batch, NETWORK, 1.0)[0])(state.params)

    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-5), gradient(once), gradient(twice))


def test_moves_that_are_illegal_everywhere_are_not_learned() -> None:
    """A column that is full in every position: nothing pushes its logit, and it gets no probability."""
    batch = learner.observe(ENV, positions(16))
    mask = batch.legal_action_mask.at[:, 3].set(False)
    weights = jnp.where(mask, batch.action_weights, 0)
    batch = dataclasses.replace(batch, legal_action_mask=mask, action_weights=weights / weights.sum(1, keepdims=True))
    state, _ = start(CONFIG)
    gradient = jax.jit(jax.grad(lambda params: learner.loss(params, batch, NETWORK, 1.0)[0]))(state.params)
    kernel = np.asarray(gradient["policy"]["kernel"])
    np.testing.assert_array_equal(kernel[:, 3], 0)
    assert (np.abs(kernel).max(axis=0) > 0).tolist() == [True] * 3 + [False] + [True] * 3


def test_only_kernels_decay() -> None:
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    optimizer = learner.make_optimizer(Config(learning_rate=0.1, weight_decay=0.5))
    zeros = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zeros, optimizer.init(params), params)
    np.testing.assert_allclose(updates["kernel"], np.full((2, 2), -0.05), rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], [0, 0])


def rates(config: Config) -> np.ndarray:
    schedule = learner.learning_rate(config)
    return np.array([schedule(step) for step in range(config.iterations * config.updates)])


def test_learning_rate_rises_and_falls() -> None:
    config = Config(iterations=10, updates=10, learning_rate=0.5, warmup_updates=20, final_learning_rate=0.1)
    rate = rates(config)
    np.testing.assert_allclose(np.diff(rate[:21]), 0.5 / 21, rtol=1e-4)  # along a line to its highest
    assert np.argmax(rate) == 20 and rate[20] == pytest.approx(0.5)
    assert rate[60] == pytest.approx((0.5 + 0.05) / 2) and (np.diff(rate[20:]) < 0).all()
    assert rate[-1] == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize(("total", "warmup"), [(1, 0), (3, 0), (3, 1), (3, 2)])
def test_learning_rate_is_finite_and_positive_in_the_shortest_run(total: int, warmup: int) -> None:
    config = Config(iterations=1, updates=total, learning_rate=0.1, warmup_updates=warmup, final_learning_rate=0.0)
    assert (rates(config) > 0).all() and rates(config).max() == pytest.approx(0.1)


def test_learning_rate_goes_on_where_a_checkpoint_left_it() -> None:
    config = Config(iterations=10, updates=1, learning_rate=0.1, warmup_updates=2)
    optimizer, params = learner.make_optimizer(config), {"bias": jnp.ones(2)}
    step = jax.jit(lambda state: optimizer.update({"bias": jnp.array([1.0, -2.0])}, state, params))
    straight = resumed = optimizer.init(params)
    for number in range(8):
        if number == 5:
            leaves, treedef = jax.tree.flatten(jax.device_get(resumed))
            resumed = jax.tree.unflatten(treedef, [jnp.asarray(leaf) for leaf in leaves])
        one, straight = step(straight)
        other, resumed = step(resumed)
        np.testing.assert_array_equal(one["bias"], other["bias"])


def test_without_an_average_the_newest_weights_play_and_nothing_is_kept() -> None:
    state, _ = start(CONFIG)
    assert state.average is None and state.playing is state.params


def test_the_average_is_a_plain_mean_and_then_an_exponential_one() -> None:
    state, update = start(dataclasses.replace(CONFIG, average_decay=0.75))
    ring = ring_of(positions(16))
    seen = []
    for number in range(7):
        state, _ = update(state, ring, jax.random.fold_in(jax.random.key(6), number))
        seen.append(np.asarray(state.params["policy"]["kernel"]))
        if number < 4:
            expected = np.mean(seen, axis=0)
        else:
            expected = 0.75 * expected + 0.25 * seen[-1]
        np.testing.assert_allclose(state.playing["policy"]["kernel"], expected, atol=1e-6)
    assert np.abs(expected - seen[-1]).max() > 1e-4


def test_a_skipped_update_leaves_the_average_alone() -> None:
    state, update = start(dataclasses.replace(CONFIG, average_decay=0.75))
    good = positions(16)
    bad = ring_of(dataclasses.replace(good, value=good.value * jnp.nan))
    for key in jax.random.split(jax.random.key(7), 3):
        state, _ = update(state, ring_of(good), key)
    after, metrics = update(state, bad, jax.random.key(8))
    assert int(metrics["skipped_updates"]) == 1
    jax.tree.map(np.testing.assert_array_equal, after.average, state.average)


def test_board_mask_and_policy_are_mirrored_together() -> None:
    state = ENV.step(ENV.init(jax.random.key(0)), jnp.int32(0))
    sample = targets.Sample(
        state=jax.tree.map(lambda x: jnp.repeat(x[None], 64, axis=0), state),
        action_weights=jnp.tile(jnp.array([[0.1, 0.2, 0.3, 0.4, 0, 0, 0]]), (64, 1)),
        policy_weight=jnp.ones(64),
        value=jnp.ones(64),
    )
    batch = learner.observe(ENV, sample)
    both = learner.mirror(jax.random.key(0), batch, ENV.symmetries)
    stone = np.argmax(batch.observation[0].sum((0, 2)))
    assert stone == 0
    column = np.asarray(both.observation.sum((1, 3))).argmax(axis=1)  # [64]
    assert set(column.tolist()) == {0, 6}
    mirrored = np.asarray(both.action_weights)[column == 6]
    np.testing.assert_allclose(mirrored, np.tile([0, 0, 0, 0.4, 0.3, 0.2, 0.1], (len(mirrored), 1)))
    np.testing.assert_allclose(np.asarray(both.action_weights)[column == 0, 0], 0.1)


def test_masks_are_mirrored_too() -> None:
    batch = batch_of([0.5, 0.5, 0, 0, 0, 0, 0], [True, True, False, False, False, False, False])
    both = learner.mirror(jax.random.key(0), batch, ENV.symmetries[1:])
    np.testing.assert_array_equal(both.legal_action_mask[0], [False] * 5 + [True, True])


def test_a_batch_holds_many_positions() -> None:
    sample = positions(64)
    drawn = learner.observe(ENV, replay.sample(ring_of(sample), jax.random.key(0), 256))
    flat = np.asarray(drawn.observation).reshape(256, -1)
    assert len(np.unique(flat, axis=0)) > 45


def test_learner_is_a_tree_of_arrays() -> None:
    state, _ = start(CONFIG)
    assert isinstance(state, Learner)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))


class Said:
    """A network whose parameters are what it says of every position: logits and a value."""

    def __call__(self, said: tuple[jax.Array, jax.Array], observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        count = observation.shape[0]
        return jnp.broadcast_to(said[0], (count, said[0].size)), jnp.broadcast_to(said[1], count)


def test_c110_the_loss_is_that_of_the_policy_and_of_the_value() -> None:
    """And each pulls towards its target, not away from it or towards its negative."""
    batch = batch_of([1.0, 0.0], [True, True], value=-0.5)

    @jax.jit
    def evaluate(value: float) -> Any:
        said = jnp.zeros(2), jnp.float32(value)
        return jax.value_and_grad(lambda x: learner.loss(x, batch, cast(Network, Said()), 2.0)[0])(said)

    total, (logits, value) = evaluate(0.25)
    assert float(total) == pytest.approx(np.log(2) + 2 * 0.75**2)
    np.testing.assert_allclose(logits, [-0.5, 0.5])
    assert float(value) == pytest.approx(2 * 2 * 0.75)
    assert float(evaluate(-0.5)[0]) == pytest.approx(np.log(2))


def test_c111_a_batch_and_the_same_one_twice_have_one_loss() -> None:
    """Some rows have no policy to learn from, which must not count in its mean."""
    once = learner.observe(ENV, positions(16))
    once = dataclasses.replace(once, policy_weight=(jnp.arange(16) % 3 > 0).astype(jnp.float32))
    twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), once)

    @jax.jit
    def evaluate(batch: Batch) -> Any:
        network: Any = Table()
        return jax.value_and_grad(learner.loss, has_aux=True)(jnp.arange(7.0), batch, network, 0.5)

    one, other = evaluate(once), evaluate(twice)
    assert one[0][1]["policy_loss"] > 1 and one[0][1]["value_loss"] > 0.1
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), one, other)


@functools.partial(jax.jit, static_argnums=0)
def turned(env: BoardGame, key: jax.Array, sample: targets.Sample) -> tuple[Batch, Batch]:
    """What the network would see and learn, and the same after `mirror`."""
    batch = learner.observe(env, sample)
    return batch, learner.mirror(key, batch, env.symmetries)


@functools.partial(jax.jit, static_argnums=(0, 1))
def after_openings(env: BoardGame, rows: int) -> Any:
    return jax.vmap(lambda key: selfplay.opening(key, env, 4)[0])(jax.random.split(jax.random.key(0), rows))


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four", "hex(size=3, swap=True)"])
def test_each_position_is_turned_as_a_whole_by_a_symmetry_of_its_own(game: str) -> None:
    env, rows = envs.make(game), 256
    weights = np.random.default_rng(0).uniform(0.1, 1, (rows, env.num_actions)).astype(np.float32)  # no two alike
    number = np.arange(rows, dtype=np.float32)
    sample = targets.Sample(
        state=after_openings(env, rows), action_weights=weights, policy_weight=number, value=-number
    )  # type: ignore[arg-type]
    before, after = jax.device_get(turned(env, jax.random.key(2), sample))
    fits = [(symmetry.policy(weights) == after.action_weights).all(axis=1) for symmetry in env.symmetries]
    np.testing.assert_array_equal(np.sum(fits, axis=0), np.ones(rows))
    for some, symmetry in zip(fits, env.symmetries, strict=True):
        assert some.sum() > 0.5 * rows / len(fits)
        np.testing.assert_array_equal(after.observation[some], symmetry.observation(before.observation)[some])
        np.testing.assert_array_equal(after.legal_action_mask[some], symmetry.policy(before.legal_action_mask)[some])
    np.testing.assert_array_equal(after.policy_weight, number)
    np.testing.assert_array_equal(after.value, -number)


def test_c119_hex_is_turned_by_half() -> None:
    env = envs.make("hex(size=3, swap=True)")
    state = jax.jit(env.step)(env.init(), 1)  # a stone of the first player on row 0, column 1
    weights = np.array([0, 0, 0, 0, 0, 0.75, 0, 0, 0, 0.25], np.float32)  # row 1, column 2; the swap
    sample = dataclasses.replace(targets.empty_sample(env, state), action_weights=weights)  # type: ignore[arg-type]
    _, after = jax.device_get(turned(env, jax.random.key(0), jax.tree.map(lambda x: np.stack([x] * 16), sample)))
    as_it_was = (after.action_weights == weights).all(axis=1)
    assert 0 < as_it_was.sum() < 16
    for row in range(16):
        stone, move, taken = ([0, 1], 5, 1) if as_it_was[row] else ([2, 1], 3, 7)
        assert np.argwhere(after.observation[row, :, :, :2]).tolist() == [[*stone, 1]]  # it is the other's
        assert after.action_weights[row, [move, 9]].tolist() == [0.75, 0.25]
        assert np.flatnonzero(~after.legal_action_mask[row]).tolist() == [taken]


def test_an_update_learns_from_the_turned_positions() -> None:
    """All that this network can learn is which column is played, here always the first one."""
    sample = dataclasses.replace(
        targets.empty_sample(ENV, ENV.init()),
        action_weights=jax.nn.one_hot(0, 7),
        policy_weight=jnp.float32(1),
        value=jnp.float32(0.5),
    )
    ring = ring_of(jax.tree.map(lambda x: jnp.stack([x] * 16), sample))
    optimizer, network = learner.make_optimizer(CONFIG), cast(Network, Table())
    start = Learner(params=jnp.zeros(7), average=None, opt_state=optimizer.init(jnp.zeros(7)), updates=jnp.int32(0))

    def learned(symmetries: Any) -> list[int]:
        update = functools.partial(
            learner.update, env=ENV, network=network, optimizer=optimizer, batch=64,
            symmetries=symmetries, value_weight=1.0, average_decay=0.0,
        )  # fmt: skip
        after, _ = jax.jit(update)(start, ring, jax.random.key(9))
        return np.flatnonzero(np.asarray(after.params) > 0).tolist()

    assert learned((IDENTITY,)) == [0]
    assert learned(ENV.symmetries[1:]) == [6]
    assert learned(ENV.symmetries) == [0, 6]


def test_long_gradients_are_cut_to_the_norm_and_short_ones_left() -> None:
    params = {"bias": jnp.ones(2)}

    @functools.partial(jax.jit, static_argnums=1)
    def second_step(first: list[float], norm: float) -> jax.Array:
        optimizer = learner.make_optimizer(dataclasses.replace(CONFIG, max_grad_norm=norm))
        _, state = optimizer.update({"bias": jnp.array(first)}, optimizer.init(params), params)
        updates, _ = optimizer.update({"bias": jnp.array([0.3, -0.4])}, state, params)
        return updates["bias"]

    np.testing.assert_allclose(second_step([300.0, 400.0], 1.0), second_step([0.6, 0.8], 1e6), rtol=1e-5)
    assert np.abs(second_step([300.0, 400.0], 1.0) - second_step([300.0, 400.0], 1e6)).max() > 1e-3


def test_c126_the_rate_after_a_restore_is_that_of_the_run(tmp_path: Path) -> None:
    """Warm-up over 100 of 1,000 updates; saved to the disk after 500."""
    config = Config(iterations=1000, updates=1, learning_rate=0.1, warmup_updates=100, weight_decay=0.0)
    optimizer = learner.make_optimizer(config)

    @jax.jit
    def step(state: Learner) -> tuple[Learner, jax.Array]:
        """Adam's step along a gradient that never changes is the learning rate."""
        updates, opt_state = optimizer.update({"bias": jnp.ones(1)}, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return Learner(params=params, average=None, opt_state=opt_state, updates=state.updates + 1), -updates["bias"][0]

    params = {"bias": jnp.ones(1)}
    state = Learner(params=params, average=None, opt_state=optimizer.init(params), updates=jnp.int32(0))
    for _ in range(500):
        state, _ = step(state)
    checkpoint.save(tmp_path, 500, state)
    _, restored = checkpoint.load(tmp_path, jax.eval_shape(lambda: state))
    for number in range(500, 503):
        (state, rate), (restored, rate_after) = step(state), step(restored)
        assert rate == rate_after
        assert float(rate) == pytest.approx(float(learner.learning_rate(config)(number)), rel=1e-4)
        counts = optax.tree.get_all_with_path(restored.opt_state, "count")
        assert counts and all(int(count) == restored.updates == number + 1 for _, count in counts)
