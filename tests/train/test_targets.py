import jax
import jax.numpy as jnp
import numpy as np

from jaxmcts import model_from_env
from tests.train.toys import Pairs, half_evaluator, random_policy
from train import selfplay, targets


def returns(
    rewards: list[float],
    discounts: list[float],
    values: list[float],
    done: list[bool],
    td_lambda: float = 1.0,
) -> list[float]:
    reward, discount, value, over = (jnp.array(x)[:, None] for x in (rewards, discounts, values, done))
    return targets.returns(reward, discount, value, over, td_lambda)[:, 0].tolist()


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
        (), games, jax.random.key(1), env=env, model=model, policy=random_policy(env), steps=7, opening_plies=0
    )
    sample = targets.samples(trajectory, td_lambda=1.0)
    values = sample.value.reshape(7, 3)
    np.testing.assert_array_equal(values[:5], np.repeat([[1], [-1], [-1], [1], [1]], 3, axis=1))
    # The cut game waits for player 1's second move, worth 0.5 to it.
    np.testing.assert_array_equal(values[5:], np.repeat([[-0.5], [0.5]], 3, axis=1))
    np.testing.assert_array_equal(sample.state.board.reshape(7, 3)[:, 0], [0, 1, 2, 3, 4, 0, 1])
    np.testing.assert_array_equal(games.state.board, [2, 2, 2])
