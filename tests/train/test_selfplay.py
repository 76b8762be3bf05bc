import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import TimeLimit
from envs.base import BoardGame, State
from jaxmcts import model_from_env
from tests.train.toys import Pairs, half_evaluator, random_explorer
from train import learner, match, players, replay, search, selfplay, targets
from train.config import Config
from train.search import Choice, Explorer
from train.selfplay import Games, Trajectory


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def play(env: BoardGame, games: int, steps: int, plies: int, seed: int = 0) -> tuple[Games, Trajectory]:
    """Play at random from the start, in one segment."""
    start_key, key = jax.random.split(jax.random.key(seed))
    start = selfplay.start(start_key, env=env, games=games, opening_plies=plies)
    return segment(start, key, env=env, steps=steps, opening_plies=plies)


def segment(games: Games, key: jax.Array, *, env: BoardGame, **options: int) -> tuple[Games, Trajectory]:
    model = model_from_env(env, half_evaluator(env.num_actions))
    return selfplay.play((), games, key, env=env, model=model, explorer=random_explorer(env), **options)


def test_openings_have_all_lengths_and_never_a_finished_game() -> None:
    env = envs.make("tic_tac_toe")
    state, plies = jax.jit(jax.vmap(lambda key: selfplay.opening(key, env, 9)))(
        jax.random.split(jax.random.key(0), 500)
    )
    assert not (state.terminated | state.truncated).any()
    stones = jax.vmap(env.observe)(state).sum((1, 2, 3))
    np.testing.assert_array_equal(stones, plies)
    assert set(np.asarray(plies)[:50].tolist()) >= {0, 1, 2, 3, 4, 5}
    empty, none = selfplay.opening(jax.random.key(0), env, max_plies=0)
    assert int(none) == 0 and int(empty.to_play) == 0


def test_openings_that_cannot_end_a_game_are_as_long_as_drawn() -> None:
    """No illegal move is drawn: it would not be made, and the opening would be shorter."""
    env = envs.make("tic_tac_toe")
    keys = jax.random.split(jax.random.key(0), 1000)
    plies = jax.jit(jax.vmap(lambda key: selfplay.opening(key, env, 4)[1]))(keys)
    assert (abs(np.bincount(plies, minlength=5) - 200) < 60).all()


def test_a_game_is_followed_by_a_fresh_one_and_its_count_starts_again() -> None:
    _, trajectory = play(Pairs(length=5), 2, 11, 0)
    np.testing.assert_array_equal(trajectory.ply[:, 0], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0])
    np.testing.assert_array_equal(trajectory.done[:, 0], [False] * 4 + [True] + [False] * 4 + [True, False])
    np.testing.assert_array_equal(trajectory.reward[:, 0], [0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(trajectory.discount[:, 0], [-1, 1, -1, 1, 0, -1, 1, -1, 1, 0, -1])
    np.testing.assert_array_equal(trajectory.value[:, 0] * 8, trajectory.ply[:, 0])


def test_the_value_after_a_move_is_that_of_the_next_search_and_at_the_end_that_of_the_network() -> None:
    _, trajectory = play(Pairs(length=5), 2, 11, 0)
    np.testing.assert_array_equal(trajectory.next_value[:, 0], [1 / 8, 2 / 8, 3 / 8, 4 / 8, 0] * 2 + [0.5])


def test_stored_positions_show_the_stones_before_each_move() -> None:
    env = envs.make("tic_tac_toe")
    games, trajectory = play(env, 16, 20, 4)
    stones = jax.vmap(jax.vmap(env.observe))(trajectory.state).sum((2, 3, 4))
    np.testing.assert_array_equal(stones, trajectory.ply)
    finished = trajectory.state.terminated | trajectory.state.truncated
    assert not finished.any() and not (games.state.terminated | games.state.truncated).any()
    starts = trajectory.ply[1:][trajectory.done[:-1]]
    assert set(np.asarray(starts).tolist()) == {0, 1, 2, 3, 4}  # the opening varies from game to game


def test_a_cut_game_keeps_its_value_and_an_ended_one_its_result() -> None:
    # Cut by its rules after four moves, in the middle of the segment and at its end.
    _, cut = play(Pairs(length=9, limit=4), 1, 8, 0)
    for last in (3, 7):
        assert cut.done[last, 0] and cut.discount[last, 0] != 0 and cut.next_value[last, 0] == 0.5
    _, ended = play(Pairs(length=5, limit=5), 1, 5, 0)
    assert ended.done[4, 0] and ended.discount[4, 0] == 0 and ended.reward[4, 0] == 1 and ended.next_value[4, 0] == 0


def test_a_game_after_another_is_untouched_by_it() -> None:
    env = envs.make("tic_tac_toe")
    _, trajectory = play(env, 4, 20, 0)
    after = jax.tree.map(lambda x: x[1:][trajectory.done[:-1]], trajectory.state)
    count = int(trajectory.done[:-1].sum())
    assert count > 4
    jax.tree.map(lambda x, fresh: np.testing.assert_array_equal(x, np.stack([fresh] * count)), after, env.init())


def test_a_limit_on_plies_counts_in_each_game_anew() -> None:
    _, never = play(TimeLimit(envs.make("tic_tac_toe"), 9), 16, 40, 0)
    assert not (never.done & (never.discount != 0)).any()
    lengths = never.ply[never.done] + 1
    assert set(np.asarray(lengths).tolist()) >= {5, 7, 8, 9}
    _, often = play(TimeLimit(envs.make("tic_tac_toe"), 6), 16, 40, 0)
    cut = often.done & (often.discount != 0)
    assert cut.any() and (often.ply[cut] == 5).all() and (often.ply <= 5).all()


class Numbered(Pairs):
    """Games of one move; each has a number, drawn from many, in the place of its count of moves."""

    def _start(self, key: jax.Array | None) -> State:
        assert key is not None
        return dataclasses.replace(super()._start(key), board=jax.random.randint(key, (), 0, 2**30))

    def _play(self, state: State, action: jax.Array, key: jax.Array | None) -> State:
        return dataclasses.replace(super()._play(state, action, key), terminated=jnp.bool_(True))


class Coin(Pairs):
    """Who begins is drawn."""

    def _start(self, key: jax.Array | None) -> State:
        assert key is not None
        return dataclasses.replace(super()._start(key), to_play=jax.random.bernoulli(key).astype(jnp.int32))


def test_what_is_drawn_at_the_start_of_a_game_is_drawn_for_each_game() -> None:
    _, trajectory = play(Coin(length=1), 100, 11, 0)
    assert trajectory.done.all()
    share = trajectory.state.to_play[1:].mean()
    assert 0.45 < share < 0.55
    assert (trajectory.state.to_play[1:].mean(axis=0) != share).any()


def test_no_opening_is_used_twice() -> None:
    _, trajectory = play(Numbered(), 16, 12, 0)
    assert trajectory.done.all()
    assert len(np.unique(trajectory.state.board)) == 16 * 12


def test_a_pool_serves_many_moves() -> None:
    """Three of eight games end at each move: they get the next ones of the pool, and at last those of another."""

    def numbered(first: int) -> Games:
        return Games(state=jnp.arange(first, first + 8), ply=jnp.zeros(8, jnp.int32))

    pool = selfplay._Pool(games=numbered(0), used=jnp.int32(8))
    draws = iter([numbered(10), numbered(20)])
    wanted = jnp.array([False, True, False, False, True, True, False, False])
    taken = []
    with jax.disable_jit():
        for _ in range(4):
            pool, games = selfplay._take(pool, wanted, lambda: next(draws))
            taken.append(games.state[wanted].tolist())
    assert taken == [[10, 11, 12], [13, 14, 15], [20, 21, 22], [23, 24, 25]]


def test_games_differ_by_row_and_repeat_by_seed() -> None:
    env = envs.make("connect_four")
    _, trajectory = play(env, 64, 8, 0)
    boards = np.asarray(trajectory.state.board[-1])
    assert len(np.unique(boards, axis=0)) > 50
    _, again = play(env, 64, 8, 0)
    np.testing.assert_array_equal(boards, again.state.board[-1])
    _, other = play(env, 64, 8, 0, 5)
    assert (boards != np.asarray(other.state.board[-1])).any()


def test_a_game_goes_on_in_the_next_segment() -> None:
    env = Pairs(length=5)
    games = selfplay.start(jax.random.key(0), env=env, games=2, opening_plies=0)
    go_on = jax.jit(lambda games, key: segment(games, key, env=env, steps=3, opening_plies=0))
    for key in jax.random.split(jax.random.key(1)):
        games, trajectory = go_on(games, key)
    np.testing.assert_array_equal(trajectory.ply[:, 0], [3, 4, 0])
    np.testing.assert_array_equal(games.ply, [1, 1])


def searched(explorer: Explorer, env: BoardGame, games: int, steps: int, judge: Any) -> Trajectory:
    """Play from the start by a search of its own; `value` holds the moves made."""

    def tell(*arguments: Any) -> Choice:
        choice = explorer(*arguments)
        return dataclasses.replace(choice, value=choice.action.astype(jnp.float32))

    @jax.jit
    def run(key: jax.Array) -> Trajectory:
        start_key, key = jax.random.split(key)
        start = selfplay.start(start_key, env=env, games=games, opening_plies=0)
        model = search.make_model(env, judge)
        return selfplay.play((), start, key, env=env, model=model, explorer=tell, steps=steps, opening_plies=0)[1]

    return run(jax.random.key(0))


def test_c050_the_first_four_plies_of_every_game_are_drawn_and_the_others_are_not() -> None:
    env = Pairs(length=6)

    def judge(params: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        count = observation.shape[0]
        return jnp.tile(jnp.array([0.5, 0.0]), (count, 1)), jnp.zeros(count)

    config = Config(search="alphazero", num_simulations=6, temperature_plies=4, dirichlet_fraction=0.0)
    trajectory = searched(search.make_explorer(env, judge, config), env, 32, 12, judge)
    np.testing.assert_array_equal(trajectory.ply[:, 0], [*range(6)] * 2)
    varies = (trajectory.value != trajectory.value[:, :1]).any(axis=1)
    np.testing.assert_array_equal(varies, [True, True, True, True, False, False] * 2)


def test_c055_no_key_is_used_twice() -> None:
    env = Pairs(length=3)

    def judge(params: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros((observation.shape[0], 2)), jnp.zeros(observation.shape[0])

    config = Config(num_simulations=1, full_search_share=0.5, fast_num_simulations=1)
    explorer = search.make_explorer(env, judge, config)
    with jax.debug_key_reuse(True):
        searched(explorer, env, 2, 4, judge)
        player = players.Random(env)
        match.play((player, player), ((), ()), jax.random.key(0), env=env, games=2, opening_plies=1)


def test_c113_a_batch_of_one_self_play_holds_many_positions() -> None:
    env = envs.make("connect_four")
    games, trajectory = play(env, 64, 8, 0)

    @jax.jit
    def batch(trajectory: Trajectory) -> jax.Array:
        sample = targets.samples(trajectory, td_lambda=1.0, td_steps=0, search_value_share=0.0)
        ring = replay.create(targets.empty_sample(env, jax.tree.map(lambda x: x[0], games.state)), 64 * 8)
        drawn = learner.observe(env, replay.sample(replay.add(ring, sample), jax.random.key(0), 256))
        return learner.mirror(jax.random.key(1), drawn, env.symmetries).observation

    assert len(np.unique(np.asarray(batch(trajectory)).reshape(256, -1), axis=0)) > 100


@pytest.mark.parametrize("broken", [jnp.nan, -jnp.inf])
def test_c030_a_value_that_is_not_finite_is_not_learned_from(broken: float) -> None:
    """The network's own values come into the targets where a game is cut, by its rules or by the segment."""
    env = Pairs(length=9, limit=4)

    def evaluate(params: Any, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros((keys.size, 2)), jnp.full(keys.size, broken)

    @jax.jit
    def run(key: jax.Array) -> tuple[Trajectory, targets.Sample]:
        start = selfplay.start(key, env=env, games=1, opening_plies=0)
        model, explorer = model_from_env(env, evaluate), random_explorer(env)
        _, trajectory = selfplay.play((), start, key, env=env, model=model, explorer=explorer, steps=6, opening_plies=0)
        return trajectory, targets.samples(trajectory, td_lambda=0.5, td_steps=0, search_value_share=0.25)

    trajectory, sample = run(jax.random.key(0))
    np.testing.assert_array_equal(trajectory.next_value[:, 0], [1 / 8, 2 / 8, 3 / 8, 0, 1 / 8, 0])
    assert np.isfinite(sample.value).all()
