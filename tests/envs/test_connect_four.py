"""Connect Four against exact counts and known faults of other programs."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from tests.envs import playing

ENV = envs.ConnectFour()

# OEIS A212693: distinct positions after each ply.
POSITIONS = [1, 7, 49, 238, 1120, 4263, 16422, 54859]
SEQUENCES = [1, 7, 49, 343, 2401, 16807, 117649, 823536]
# Tromp: 161,029 positions of the 4 x 4 board in all.
SMALL_POSITIONS = [*(1, 4, 16, 52, 160, 436, 1128, 2512, 5084, 9276, 14788, 21720, 26698, 28922, 24912, 18076, 7244)]


@pytest.fixture(scope="module")
def tree() -> list[playing.Layer]:
    return list(playing.layers(ENV, 7))


def test_position_counts(tree: list[playing.Layer]) -> None:
    assert [len(layer) for layer in tree] == POSITIONS


def test_c141_sequence_counts(tree: list[playing.Layer]) -> None:
    assert [layer.paths.sum() for layer in tree] == SEQUENCES
    won = [layer.paths[layer.states.terminated].sum() for layer in tree]
    assert won == [0] * 7 + [13_032]


def test_four_by_four_is_a_draw_with_161_029_positions() -> None:
    tree = list(playing.layers(envs.make("connect_four", rows=4, columns=4), 16))
    assert [len(layer) for layer in tree] == SMALL_POSITIONS
    assert sum(SMALL_POSITIONS) == 161_029
    values = np.zeros(0)
    for layer in reversed(tree):
        sign = np.where(layer.states.to_play == 0, 1, -1)[:, None]
        moves = np.where(layer.children >= 0, sign * np.append(values, 0)[layer.children], -np.inf)
        values = np.where(layer.states.terminated, layer.states.rewards[:, 0], moves.max(axis=1) * sign[:, 0])
    assert values.tolist() == [0]


def test_c037_a_seventh_stone_loses_and_overwrites_nothing() -> None:
    before, after = playing.play(ENV, [3] * 6), playing.play(ENV, [3] * 7)
    assert ENV.legal_action_mask(before).tolist() == [True, True, True, False, True, True, True]
    np.testing.assert_array_equal(after.board, before.board)
    assert after.terminated and not ENV.legal_action_mask(after).any()
    np.testing.assert_array_equal(after.rewards, [-1, 1])


@pytest.mark.parametrize("action", [-1, 7, 8, 28, 2**31 - 1, -(2**31)])
def test_an_action_out_of_range_is_illegal(action: int) -> None:
    before = playing.play(ENV, [0])
    after = ENV.step(before, action)
    np.testing.assert_array_equal(after.board, before.board)
    np.testing.assert_array_equal(after.rewards, [1, -1])


WINS = {
    "C138 rising diagonal": [0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3],
    "C138 falling diagonal": [6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3],
    "C139 five in a row": [0, 0, 1, 1, 2, 2, 6, 6, 4, 4, 3],
    "column": [0, 1, 0, 1, 0, 1, 0],
    "row at the right edge": [3, 3, 4, 4, 5, 5, 6],
}
# C140: lines that exist in the numbering of cells alone.
NO_WINS = {
    "C140 across the left and right edge": [1, 2, 5, 0, 6, 6, 0, 5, 0, 0, 1],
    "C140 across the top and bottom edge": [1, 0, 1, 0, 0, 0, 0, 3, 0],
}


@pytest.mark.parametrize("moves", WINS.values(), ids=WINS.keys())
def test_wins(moves: list[int]) -> None:
    states = playing.history(ENV, moves)
    assert states.terminated.tolist() == [False] * len(moves) + [True]
    np.testing.assert_array_equal(states.rewards[-1], [1, -1])


@pytest.mark.parametrize("moves", NO_WINS.values(), ids=NO_WINS.keys())
def test_no_wins(moves: list[int]) -> None:
    state = playing.play(ENV, moves)
    assert not state.terminated and not state.rewards.any()


@pytest.mark.parametrize(("rows", "columns", "length"), [(6, 7, 4), (4, 4, 4), (5, 9, 3), (8, 8, 5), (10, 7, 1)])
def test_lines_are_found_wherever_they_are(rows: int, columns: int, length: int) -> None:
    """All lines of the board, each alone, and the same with one stone missing."""
    grid = envs.ConnectFour(rows, columns).grid
    lines = []
    steps = (0, 1), (1, 0), (1, 1), (-1, 1)
    for row, column, (up, right) in itertools.product(range(rows), range(columns), steps):
        cells = [(row + i * up, column + i * right) for i in range(length)]
        if all(0 <= r < rows and 0 <= c < columns for r, c in cells):
            lines.append(cells)
    boards = np.zeros((len(lines), length + 1, rows, columns), bool)
    for board, cells in zip(boards, lines, strict=True):
        for missing in range(length + 1):
            board[missing][tuple(np.transpose([c for i, c in enumerate(cells) if i != missing]))] = (
                length > 1 or missing
            )
    words = jnp.asarray(grid.pack(boards.reshape(-1, rows, columns)))
    found = np.asarray(grid.has_line(tuple(words.T), length)).reshape(len(lines), -1)
    assert found[:, -1].all()
    assert not found[:, :-1].any()


def test_random_stones_have_a_line_when_a_slow_search_finds_one() -> None:
    """Not only single lines: dense boards, where lines of guards and carries would show."""
    rng = np.random.default_rng(0)
    boards = rng.random((2000, 6, 7)) < rng.uniform(0.2, 0.8, (2000, 1, 1))
    slow = np.zeros(2000, bool)
    for up, right in ((0, 1), (1, 0), (1, 1), (-1, 1)):
        for row, column in itertools.product(range(6), range(7)):
            cells = [(row + i * up, column + i * right) for i in range(4)]
            if all(0 <= r < 6 and 0 <= c < 7 for r, c in cells):
                slow |= np.all([boards[:, r, c] for r, c in cells], axis=0)
    found = ENV.grid.has_line(tuple(jnp.asarray(ENV.grid.pack(boards)).T), 4)
    np.testing.assert_array_equal(found, slow)
    assert 0.2 < slow.mean() < 0.8


def test_a_full_board_without_a_line_is_a_draw() -> None:
    # Columns in pairs, shifted by one ply in the middle, never line up.
    moves = [0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 2, 3, 2, 3, 3, 2, 3, 2, 2, 3, 2, 3, 4, 5, 4, 5, 5, 4, 5, 4]
    states = playing.history(ENV, [*moves, 4, 5, 4, 5, 6, 6, 6, 6, 6, 6])
    assert states.terminated.tolist() == [False] * 42 + [True]
    assert not states.rewards.any()


def test_a_line_with_the_last_stone_is_no_draw() -> None:
    small = envs.make("connect_four", rows=1, columns=3, connect=2)
    state = playing.play(small, [0, 1, 2])
    assert state.terminated and not state.rewards.any()
    small = envs.make("connect_four", rows=2, columns=2, connect=2)
    np.testing.assert_array_equal(playing.play(small, [0, 0, 1]).rewards, [1, -1])
    one = envs.make("connect_four", rows=1, columns=1, connect=1)
    np.testing.assert_array_equal(playing.play(one, [0]).rewards, [1, -1])


def test_c166_planes_are_the_movers_and_the_others() -> None:
    seen = np.asarray(ENV.observe(playing.play(ENV, [3])))
    assert seen.shape == (6, 7, 2) and seen.dtype == np.float32
    assert not seen[..., 0].any()
    assert np.argwhere(seen[..., 1]).tolist() == [[0, 3]]


def test_planes_hold_every_stone_of_a_long_game() -> None:
    moves = [3, 3, 3, 3, 3, 3, 0, 6, 6, 2, 4, 4, 5]
    seen = np.asarray(ENV.observe(playing.play(ENV, moves)))
    own = [[1, 3], [3, 3], [5, 3], [0, 6], [0, 2], [1, 4]]  # an odd number of plies: the second player sees
    assert sorted(np.argwhere(seen[..., 0]).tolist()) == sorted(own)
    assert seen[..., 1].sum() == 7


def test_c116_the_mirror_takes_stones_and_policy_along() -> None:
    mirror = ENV.symmetries[1]
    seen = np.asarray(ENV.observe(playing.play(ENV, [0])))
    policy = np.array([0.1, 0.2, 0.3, 0.4, 0, 0, 0], np.float32)
    assert np.argwhere(mirror.observation(seen)[..., 1]).tolist() == [[0, 6]]
    np.testing.assert_array_equal(mirror.policy(policy), policy[::-1])


@pytest.mark.parametrize("options", [{"rows": 0}, {"rows": 32}, {"columns": -1}, {"connect": 0}, {"rows": 6.0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` is"):
        envs.make("connect_four", **options)
