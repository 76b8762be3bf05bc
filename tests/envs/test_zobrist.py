"""Position hashes: equal for equal positions whatever the path, and different for all others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import zobrist
from envs.time_limit import TimeLimit
from tests.envs import playing


def hashes(env: Any, states: Any) -> np.ndarray:
    """Hash a batch of states: [N] uint64."""
    low, high = playing.in_chunks(jax.jit(jax.vmap(env.hash)), states).astype(np.uint64).T
    return low | high << np.uint64(32)


@pytest.mark.parametrize(("env", "plies"), [(envs.TicTacToe(), 9), (envs.ConnectFour(), 5), (envs.Othello(4), 6)])
def test_all_positions_differ(env: envs.BoardGame, plies: int) -> None:
    layers = list(playing.layers(env, plies))
    found = np.concatenate([hashes(env, layer.states) for layer in layers])
    assert len(np.unique(found)) == len(found) == sum(map(len, layers))
    if env == envs.TicTacToe():
        assert len(found) == 5478


@pytest.mark.parametrize(
    "env",
    [envs.Hex(5, swap=True), envs.Hex(12), envs.Othello(4), envs.MNK(5, 5, 4, 3)],
    ids=repr,
)
def test_hashes_differ_where_positions_do(env: envs.BoardGame) -> None:
    states, _, _ = playing.random_moves(env, 60, 18, seed=0)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states)
    positions = np.concatenate([flat.board.astype(np.int64), flat.to_play[:, None]], axis=1)
    _, same = np.unique(positions, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([same.reshape(-1), hashes(env, flat)], axis=1), axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1])) > 500


@pytest.mark.parametrize(
    ("env", "some", "others"),
    [
        (envs.ConnectFour(), [3, 2, 3, 4, 0], [0, 4, 3, 2, 3]),
        (envs.Hex(5), [0, 7, 1, 9, 12, 8], [12, 9, 0, 8, 1, 7]),
        (envs.MNK(players=3), [0, 5, 9, 1, 6, 10], [1, 6, 10, 0, 5, 9]),
        (TimeLimit(envs.ConnectFour(), 30), [3, 2, 3, 4, 0], [0, 4, 3, 2, 3]),
    ],
    ids=repr,
)
def test_the_path_does_not_matter(env: Any, some: list[int], others: list[int]) -> None:
    one, other = playing.play(env, some), playing.play(env, others)
    np.testing.assert_array_equal(env.hash(one), env.hash(other))
    assert not (env.hash(playing.play(env, some[:-1])) == env.hash(one)).all()


def test_who_is_to_play_matters() -> None:
    """After a pass for each, on a board that shows the mover's stones first."""
    env = envs.Othello(4)
    state = env.init()
    for player in (0, 1):
        state = env.arrange(np.asarray(env.observe(env.init())) > 0, player)
        assert (np.asarray(env.hash(state)) == np.asarray(env.hash(env.init()))).all() == (player == 0)


def test_hashes_are_the_same_everywhere() -> None:
    """They may be stored: a change of the numbers is a change of the format."""
    expected = {
        "tic_tac_toe": [321163474, 2046001010],
        "connect_four": [2119253793, 2795496089],
        "hex": [2558942599, 232698014],
        "othello": [2603345293, 296282594],
        "mnk": [589064568, 1903870205],
    }
    for name, numbers in expected.items():
        env = envs.make(name)
        assert env.hash(env.init()).tolist() == numbers


def test_any_board_can_be_hashed() -> None:
    """Of bools or floats, too, and of several arrays: whatever a game of one's own keeps as its `board`."""
    boards = [jnp.zeros(5, bool), jnp.zeros(5, bool).at[2].set(True), jnp.zeros(5), jnp.zeros(5).at[0].set(-0.5)]
    assert len({tuple(zobrist.hash_arrays(board).tolist()) for board in boards}) == len(boards)
