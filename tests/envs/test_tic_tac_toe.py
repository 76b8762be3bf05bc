"""Tic-tac-toe against exact counts, exact values and known faults of other programs."""

import jax
import numpy as np
import pytest

import envs
from tests.envs import playing

ENV = envs.make("tic_tac_toe")

# (ply) -> distinct positions; 5,478 in all.
POSITIONS = [1, 9, 72, 252, 756, 1260, 1520, 1140, 390, 78]
# OEIS A008907: the same up to the symmetries of the square.
CLASSES = [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]
SEQUENCES = [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]
GAMES_BY_LENGTH = [0, 0, 0, 0, 0, 1440, 5328, 47952, 72576, 127872]


@pytest.fixture(scope="module")
def tree() -> list[playing.Layer]:
    return list(playing.layers(ENV, 9))


def test_position_counts(tree: list[playing.Layer]) -> None:
    assert [len(layer) for layer in tree] == POSITIONS
    assert sum(POSITIONS) == 5478
    assert sum((~layer.states.terminated).sum() for layer in tree) == 4520


def test_position_counts_up_to_symmetry(tree: list[playing.Layer]) -> None:
    weights = 3 ** np.arange(9)
    counts = []
    for layer in tree:
        seen = np.asarray(jax.vmap(ENV.observe)(layer.states))
        turned = [symmetry.observation(seen) for symmetry in ENV.symmetries]
        names = [(t @ np.array([1, 2])).reshape(-1, 9) @ weights for t in turned]
        counts.append(len(np.unique(np.min(names, axis=0))))
    assert counts == CLASSES


def test_c141_game_counts(tree: list[playing.Layer]) -> None:
    over = [layer.paths[layer.states.terminated].sum() for layer in tree]
    assert [layer.paths.sum() for layer in tree] == SEQUENCES
    assert over == GAMES_BY_LENGTH
    by_result = {
        result: sum(
            layer.paths[layer.states.terminated & (layer.states.rewards[:, 0] == result)].sum() for layer in tree
        )
        for result in (1, -1, 0)
    }
    assert by_result == {1: 131_184, -1: 77_904, 0: 46_080}
    assert sum(by_result.values()) == 255_168


def test_exact_values_of_all_open_positions(tree: list[playing.Layer]) -> None:
    values = np.zeros(0)  # for the first player
    results = []
    for layer in reversed(tree):
        legal = layer.children >= 0
        # The first player takes the best child, the second the worst; illegal moves are never taken.
        sign = np.where(layer.states.to_play == 0, 1, -1)[:, None]
        padded = np.append(values, 0)
        best = np.where(legal, sign * padded[layer.children], -np.inf).max(axis=1) * sign[:, 0]
        values = np.where(layer.states.terminated, layer.states.rewards[:, 0], best)
        results.append(values[~layer.states.terminated])
    assert values[0] == 0
    everything = np.concatenate(results)
    assert [(everything == value).sum() for value in (1, 0, -1)] == [2310, 1052, 1158]


def test_c037_playing_a_taken_cell_loses_and_overwrites_nothing() -> None:
    before, after = playing.play(ENV, [4]), playing.play(ENV, [4, 4])
    assert after.board == before.board
    assert after.terminated and not after.truncated
    np.testing.assert_array_equal(after.rewards, [1, -1])
    assert not ENV.legal_action_mask(after).any()


@pytest.mark.parametrize("action", [-1, 9, 10, 2**31 - 1, -(2**31)])
def test_an_action_out_of_range_is_illegal(action: int) -> None:
    state = ENV.step(playing.play(ENV, [0]), action)
    np.testing.assert_array_equal(state.rewards, [1, -1])
    assert state.terminated


def test_c136_a_win_with_the_last_move_is_no_draw() -> None:
    state = playing.play(ENV, [0, 1, 2, 3, 5, 4, 7, 6, 8])
    assert state.terminated
    np.testing.assert_array_equal(state.rewards, [1, -1])


def test_a_full_board_without_a_line_is_a_draw() -> None:
    states = playing.history(ENV, [0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert states.terminated.tolist() == [False] * 9 + [True]
    assert not states.rewards.any()


@pytest.mark.parametrize(
    "line", [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
)
def test_every_line_wins_for_either_player(line: tuple[int, int, int]) -> None:
    others = [cell for cell in range(9) if cell not in line]
    a, b = others[:2]
    first = playing.play(ENV, [line[0], a, line[1], b, line[2]])
    np.testing.assert_array_equal(first.rewards, [1, -1])
    # Of three other cells in index order none is a line except a row or column; skip one to break it.
    c = next(x for x in others[2:] if not _is_line(a, b, x))
    second = playing.play(ENV, [a, line[0], b, line[1], c, line[2]])
    np.testing.assert_array_equal(second.rewards, [-1, 1])
    assert first.terminated and second.terminated


def _is_line(*cells: int) -> bool:
    rows, columns = {cell // 3 for cell in cells}, {cell % 3 for cell in cells}
    straight = len(rows) == 1 or len(columns) == 1
    return straight or sorted(cells) in ([0, 4, 8], [2, 4, 6])


def test_the_mover_sees_own_stones_first() -> None:
    seen = np.asarray(ENV.observe(playing.play(ENV, [0, 4, 8])))
    assert np.argwhere(seen[..., 0]).tolist() == [[1, 1]]
    assert np.argwhere(seen[..., 1]).tolist() == [[0, 0], [2, 2]]


def test_there_are_eight_different_symmetries() -> None:
    policies = {tuple(symmetry.policy(np.arange(9))) for symmetry in ENV.symmetries}
    assert len(policies) == 8
