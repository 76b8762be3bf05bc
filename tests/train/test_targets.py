import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmcts import model_from_env
from tests.train.toys import Pairs, half_evaluator, random_explorer
from train import replay, selfplay, targets
from train.replay import Replay
from train.selfplay import Games, Trajectory


def returns(
    rewards: list[float],
    discounts: list[float],
    values: list[float],
    done: list[bool],
    td_lambda: float = 1.0,
    td_steps: int = 0,
) -> list[float]:
    reward, discount, value, over = (jnp.array(x)[:, None] for x in (rewards, discounts, values, done))
    result = targets.returns(reward, discount, value, over, td_lambda=td_lambda, td_steps=td_steps)
    return result[:, 0].tolist()


def test_result_is_seen_by_each_mover() -> None:
    result = returns([0, 0, 0, 0, 1.0], [-1, -1, -1, -1, 0.0], [0.5] * 5, [False] * 4 + [True])
    assert result == [1, -1, 1, -1, 1]


def test_a_player_who_moves_twice_keeps_the_sign() -> None:
    # Movers 0, 1, 1, 0, 0; player 0 wins with the last move.
    result = returns([0, 0, 0, 0, 1.0], [-1, 1, -1, 1, 0.0], [0.5] * 5, [False] * 4 + [True])
    assert result == [1, -1, -1, 1, 1]


def test_one_step_targets_use_the_next_value() -> None:
    values = [0.1, 0.2, 0.3, 0.4, 0.0]
    result = returns([0, 0, 0, 0, 1.0], [-1, -1, 1, -1, 0.0], values, [False] * 4 + [True], td_lambda=0.0)
    np.testing.assert_allclose(result, [-0.1, -0.2, 0.3, -0.4, 1.0], rtol=1e-6)


def test_lambda_mixes_by_hand() -> None:
    result = returns([0, 1.0], [-1, 0.0], [0.2, 0.0], [False, True], td_lambda=0.75)
    np.testing.assert_allclose(result, [-(0.25 * 0.2 + 0.75 * 1.0), 1.0], rtol=1e-6)


def test_rewards_of_three_steps_and_the_value_behind_them() -> None:
    # 0.97^2 + 0.97^3 / 2
    result = returns([0, 0, 1.0], [0.97] * 3, [0.0, 0.0, 0.5], [False] * 3)
    np.testing.assert_allclose(result[0], 1.397236, rtol=1e-6)


def test_three_plies_turn_the_view_three_times() -> None:
    np.testing.assert_allclose(returns([0, 0, 0.0], [-1.0] * 3, [0.0, 0.0, 0.4], [False] * 3)[0], -0.4, rtol=1e-6)


def test_an_average_of_the_values_to_come() -> None:
    # KataGo's short-term target: (1 - λ) times the sum of λ^i V(i), λ = 5/6, the last value for all that would follow.
    result = returns([0.0] * 4, [1.0] * 4, [0.1, 0.2, 0.4, 0.5], [False] * 4, td_lambda=5 / 6)
    np.testing.assert_allclose(result[0], 0.380093, atol=1e-6)


def test_a_game_cut_by_the_segment_rests_on_the_value_there() -> None:
    assert returns([0, 0.0], [-1, -1.0], [0.9, 0.25], [False, False]) == [0.25, -0.25]


def test_nothing_leaks_from_the_game_after() -> None:
    # The first game ends at t = 1, decided; the second is cut short by its rules at t = 3.
    result = returns(
        [0, 1.0, 0, 0, 0, -1.0],
        [-1, 0.0, -1, -1, -1, 0.0],
        [0.7, 0.0, 0.7, 0.5, 0.7, 0.0],
        [False, True, False, True, False, True],
    )
    assert result == [-1, 1, 0.5, -0.5, 1, -1]


def test_samples_of_a_played_game_with_repeated_turns() -> None:
    # Five moves by 0, 1, 1, 0, 0: the winner is 0. Seven steps: the second game is cut after two moves.
    env = Pairs(length=5)
    model = model_from_env(env, half_evaluator(2))
    games = selfplay.start(jax.random.key(0), env=env, games=3, opening_plies=0)
    games, trajectory = selfplay.play(
        (), games, jax.random.key(1), env=env, model=model, explorer=random_explorer(env), steps=7, opening_plies=0
    )
    sample = targets.samples(trajectory, td_lambda=1.0, td_steps=0, search_value_share=0.0)
    values = sample.value.reshape(7, 3)
    np.testing.assert_array_equal(values[:5], np.repeat([[1], [-1], [-1], [1], [1]], 3, axis=1))
    # The cut game waits for player 1's second move, worth 0.5 to it.
    np.testing.assert_array_equal(values[5:], np.repeat([[-0.5], [0.5]], 3, axis=1))
    np.testing.assert_array_equal(sample.state.board.reshape(7, 3)[:, 0], [0, 1, 2, 3, 4, 0, 1])
    np.testing.assert_array_equal(sample.policy_weight.reshape(7, 3)[:, 0], [1, 0, 1, 0, 1, 1, 0])
    np.testing.assert_array_equal(games.state.board, [2, 2, 2])
    # Half of each target is the search's value of the position, an eighth a ply.
    half = targets.samples(trajectory, td_lambda=1.0, td_steps=0, search_value_share=0.5)
    np.testing.assert_array_equal(half.value, sample.value / 2 + trajectory.ply.reshape(-1) / 16)


def test_two_steps_by_hand() -> None:
    # Rewards are the mover's own, and every position is worth 0.5 to who is to move there (movers 0, 1, 0, 1, 0).
    values, done = [0.5] * 4 + [0.0], [False] * 4 + [True]
    result = returns([0, 0, 0, 0, 1.0], [-1, -1, -1, -1, 0.0], values, done, td_steps=2)
    assert result == [0.5, 0.5, 0.5, -1, 1]


def test_two_steps_of_a_player_who_moves_twice() -> None:
    # Movers 0, 1, 1, 0, 0; t0 sees the position of t2, which is the other's, t1 that of t3, and t2 that of t4.
    values, done = [0.1, 0.2, 0.3, 0.4, 0.0], [False] * 4 + [True]
    result = returns([0, 0, 0, 0, 1.0], [-1, 1, -1, 1, 0.0], values, done, td_steps=2)
    np.testing.assert_allclose(result, [-0.2, -0.3, -0.4, 1, 1], rtol=1e-6)


def test_rewards_count_less_the_later_they_come() -> None:
    for rewards, expected in (([0, 0, 1.0], 0.81), ([1.0, 0, 0], 1.0)):
        result = returns(rewards, [0.9, 0.9, 0.0], [0.0] * 3, [False, False, True])
        np.testing.assert_allclose(result[0], expected, rtol=1e-6)


def test_a_game_shorter_than_the_steps_gives_its_result() -> None:
    result = returns([0, 0, 0, 0, 1.0], [-1, -1, -1, -1, 0.0], [0.5] * 5, [False] * 4 + [True], td_steps=9)
    assert result == [1, -1, 1, -1, 1]


def by_definition(t: int, game: tuple[np.ndarray, ...], td_lambda: float, td_steps: int) -> float:
    """The weighted mean of n-step returns in one row of games (Sutton and Barto 2018, equations 7.1 and 12.9)."""
    reward, discount, next_value, done = game
    last = t + int(np.argmax(done[t:])) if done[t:].any() else len(reward) - 1  # move of this game in the segment
    most = min(last - t + 1, td_steps or len(reward))

    def after(n: int) -> float:
        total, factor = 0.0, 1.0
        for k in range(t, t + n):
            total, factor = total + factor * reward[k], factor * discount[k]
        return float(total + factor * next_value[t + n - 1])

    early = sum((1 - td_lambda) * td_lambda ** (n - 1) * after(n) for n in range(1, most))
    return early + td_lambda ** (most - 1) * after(most)


@pytest.mark.parametrize("td_steps", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("td_lambda", [0.0, 0.6, 1.0])
def test_returns_are_those_of_the_definition(td_lambda: float, td_steps: int) -> None:
    rng = np.random.default_rng(0)
    shape = (12, 40)
    done = rng.random(shape) < 0.2
    decided = done & (rng.random(shape) < 0.6)  # the others are cut short by their rules
    discount = np.where(decided, 0, rng.choice([-1.0, 1.0, -0.9], shape)).astype(np.float32)
    reward, next_value = rng.uniform(-1, 1, (2, *shape)).astype(np.float32)
    result = targets.returns(reward, discount, next_value, done, td_lambda=td_lambda, td_steps=td_steps)
    rows = list(zip(reward.T, discount.T, next_value.T, done.T, strict=True))
    expected = [[by_definition(t, row, td_lambda, td_steps) for row in rows] for t in range(12)]
    np.testing.assert_allclose(result, expected, atol=1e-5)


def numbered_moves(steps: int, games: int) -> Trajectory:
    """Games of one move. All that is said of move t in game b holds the number t * games + b of that move."""
    number = jnp.arange(steps * games).reshape(steps, games)
    return Trajectory(
        state=number,
        ply=number,
        action_weights=jnp.stack([number, -number], axis=-1).astype(jnp.float32),
        policy_weight=number.astype(jnp.float32),
        value=1000.0 + number,
        reward=number.astype(jnp.float32),
        discount=jnp.zeros((steps, games)),
        next_value=jnp.zeros((steps, games)),
        done=jnp.ones((steps, games), bool),
    )


@pytest.mark.parametrize(("share", "expected"), [(0.25, 0.75 * 5 + 0.25 * 1005), (0.0, 5), (1.0, 1005)])
def test_the_share_is_that_of_the_search(share: float, expected: float) -> None:
    """A result of 5, where the search said 1,005."""
    mixed = targets.samples(numbered_moves(2, 3), td_lambda=1.0, td_steps=0, search_value_share=share)
    assert mixed.value[5] == expected


def test_c105_every_position_is_kept_once_with_what_belongs_to_it() -> None:
    @jax.jit
    def draw() -> tuple[targets.Sample, targets.Sample]:
        sample = targets.samples(numbered_moves(6, 4), td_lambda=1.0, td_steps=0, search_value_share=0.0)
        ring = replay.add(replay.create(jax.tree.map(lambda x: x[0], sample), 24), sample)
        return sample, replay.sample(ring, jax.random.key(0), 24_000)

    sample, drawn = draw()
    np.testing.assert_array_equal(sample.state, np.arange(24))
    counts = np.bincount(drawn.state, minlength=24)
    assert counts.shape == (24,) and (abs(counts - 1000) < 130).all()
    np.testing.assert_array_equal(drawn.value, drawn.state)
    np.testing.assert_array_equal(drawn.policy_weight, drawn.state)
    np.testing.assert_array_equal(drawn.action_weights, np.stack([drawn.state, -drawn.state], axis=-1))


def test_c107_a_game_across_two_segments_has_its_targets_where_they_belong() -> None:
    """Ten moves in segments of five; the search says an eighth for every move before a position."""
    env, steps = Pairs(length=10), 5

    @jax.jit
    def start(key: jax.Array) -> tuple[Games, Replay]:
        games = selfplay.start(key, env=env, games=1, opening_plies=0)
        return games, replay.create(targets.empty_sample(env, jax.tree.map(lambda x: x[0], games.state)), 2 * steps)

    @jax.jit
    def segment(games: Games, ring: Replay, key: jax.Array) -> tuple[Games, Replay]:
        model, explorer = model_from_env(env, half_evaluator(2)), random_explorer(env)
        games, trajectory = selfplay.play(
            (), games, key, env=env, model=model, explorer=explorer, steps=steps, opening_plies=0
        )
        return games, replay.add(ring, targets.samples(trajectory, td_lambda=1.0, td_steps=0, search_value_share=1.0))

    games, ring = start(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1)):
        games, ring = segment(games, ring, key)
    assert int(ring.size) == 10
    np.testing.assert_array_equal(ring.items.state.board, np.arange(10))
    np.testing.assert_array_equal(ring.items.state.to_play, [0, 1, 1, 0, 0, 1, 1, 0, 0, 1])
    np.testing.assert_array_equal(ring.items.value * 8, np.arange(10))
