"""Stones in a row against a plain Python referee, tic-tac-toe and exact counts; boards of three players."""

import itertools
import re
import textwrap
from typing import Any

import jax
import numpy as np
import pytest

import envs
from envs.picture import to_svg
from envs.render import from_text, to_text
from tests.envs import playing

THREE = envs.MNK(rows=4, columns=6, connect=3, players=3)


def has_line(cells: np.ndarray, length: int) -> bool:
    """Look for `length` cells in a row, one after another."""
    rows, columns = cells.shape
    for row, column, (down, right) in itertools.product(range(rows), range(columns), [(0, 1), (1, 0), (1, 1), (1, -1)]):
        line = [(row + i * down, column + i * right) for i in range(length)]
        if all(0 <= r < rows and 0 <= c < columns and cells[r, c] for r, c in line):
            return True
    return False


@pytest.mark.parametrize(
    "env",
    [
        THREE,
        envs.MNK(rows=19, columns=3, connect=4, players=2),
        envs.MNK(rows=2, columns=19, connect=5, players=3),
        envs.MNK(rows=6, columns=6, connect=6, players=2),
    ],
    ids=repr,
)
def test_a_plain_referee_agrees_at_every_ply(env: envs.MNK) -> None:
    games = 12
    states, masks, moves = playing.random_moves(env, games, env.num_actions + 1, seed=1)
    seen = np.asarray(jax.jit(jax.vmap(jax.vmap(env.observe)))(states)) > 0
    results = []
    for row in range(games):
        board = np.full((env.rows, env.columns), -1)
        for ply in range(env.num_actions + 1):
            mover, last = ply % env.players, (ply - 1) % env.players
            won = has_line(board == last, env.connect)
            over = won or bool((board >= 0).all())
            assert states.terminated[ply, row] == over
            assert states.rewards[ply, row].tolist() == [won * (1 if p == last else -1) for p in range(env.players)]
            np.testing.assert_array_equal(masks[ply, row], (board < 0).reshape(-1) & (not over))
            for player in range(env.players):
                np.testing.assert_array_equal(seen[ply, row, ..., player], board == (mover + player) % env.players)
            if over:
                break
            assert states.to_play[ply, row] == mover
            board.flat[moves[ply, row]] = mover
        results.append(won)
    assert any(results) or env.connect == 6


def test_three_by_three_is_tic_tac_toe() -> None:
    env, other = envs.MNK(rows=3, columns=3, connect=3), envs.TicTacToe()
    ours, theirs = (list(playing.layers(game, 9)) for game in (env, other))
    assert [len(layer) for layer in ours] == [len(layer) for layer in theirs]
    assert [layer.paths[layer.states.terminated].sum() for layer in ours][-5:] == [1440, 5328, 47952, 72576, 127872]


def test_lines_of_five_or_six_win_and_those_of_four_do_not() -> None:
    """In all directions, in the corners, with the last stone in the middle; and not round an edge."""
    size = 19
    env = envs.MNK(rows=size, columns=size)
    last = size * size - 1
    far = [row * size + column for row in (6, 7) for column in (6, 7, 8)]  # of the other player

    def played(line: list[int]) -> Any:
        return playing.play(env, [move for pair in zip(line, far) for move in pair][: 2 * len(line) - 1])

    for begin, step in ((0, 1), (0, size), (0, size + 1), (size - 1, size - 1), (last, -1), (last, -size)):
        five = [begin + i * step for i in (0, 1, 3, 4, 2)]
        assert played(five).rewards.tolist() == [1, -1], (begin, step)
        assert not played(five[:4]).terminated
        six = [begin + i * step for i in (0, 1, 3, 4, 5, 2)]
        assert not played(six[:5]).terminated and played(six).rewards.tolist() == [1, -1]
    assert not played([size - 2, size - 1, size, size + 1, size + 2]).terminated


def test_of_three_the_winner_gets_one_and_the_others_lose_one() -> None:
    state = playing.play(THREE, [0, 6, 12, 1, 7, 18, 3, 8])
    assert state.terminated and state.rewards.tolist() == [-1, 1, -1]
    forfeit = playing.play(THREE, [0, 6, 12, 0])
    assert forfeit.terminated and forfeit.rewards.tolist() == [-1, 1, 1]
    assert to_text(THREE, forfeit).splitlines()[-1] == "O and Z won"


def test_a_full_board_is_a_draw() -> None:
    state = playing.play(envs.MNK(rows=2, columns=2, connect=3, players=3), [0, 1, 2, 3])
    assert state.terminated and state.rewards.tolist() == [0, 0, 0]


def test_a_board_has_eight_symmetries_if_square_and_else_four() -> None:
    for env, count in ((envs.MNK(rows=4, columns=4), 8), (envs.MNK(rows=4, columns=5), 4)):
        policies = {tuple(symmetry.policy(np.arange(env.num_actions))) for symmetry in env.symmetries}
        assert len(policies) == len(env.symmetries) == count


def test_the_third_player_is_z() -> None:
    text = textwrap.dedent("""
          a b c d e f
        1 X . . . . .
        2 O . . . . .
        3 Z . . . . .
        4 . . . . . X
        O to play
    """).strip("\n")
    state = playing.play(THREE, [0, 6, 12, 23])
    assert to_text(THREE, state) == text
    jax.tree.map(np.testing.assert_array_equal, from_text(THREE, text), state)


@pytest.mark.parametrize("env", [THREE, envs.MNK(rows=3, columns=5, connect=4)], ids=repr)
def test_every_position_reads_back_to_the_same_state(env: envs.MNK) -> None:
    states, _, _ = playing.random_moves(env, 6, env.num_actions, seed=1)
    fresh = np.concatenate([np.ones((1, 6), bool), ~states.terminated[:-1]])
    for ply, row in np.argwhere(fresh)[::2]:
        state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
        jax.tree.map(np.testing.assert_array_equal, from_text(env, to_text(env, state)), state)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X.....\n......\nZ.....\n......", "1 X, 0 O and 1 Z with X to play"),
        ("X.....\nO.....\n......\n......\nX to play", "1 X, 1 O and 0 Z with X to play"),
        ("XXX...\nOO....\nZZ....\nO.....", "has a win of X, who did not move last"),
        ("OXX...\nOX....\nOZ....\nZ..Z..", "has a win of O, who did not move last"),
        ("XXX...\nOO.O..\nZZ.Z..\n......", "has a win of X, who is to play"),
        ("X.....\nO.....\n......\n......\nZ won", "with X to play"),
    ],
)
def test_what_cannot_be_a_position_of_three_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_text(THREE, text)


def test_two_players_have_no_z() -> None:
    with pytest.raises(ValueError, match=r"rows of lengths \[3, 3\]"):
        from_text(envs.TicTacToe(), "X..\n...\nZ..")


def test_pictures_tell_three_players_apart() -> None:
    svg = to_svg(THREE, playing.play(THREE, [0, 6, 12, 23]), last=23)
    assert [svg.count(f'class="stone {name}"') for name in ("first", "second", "third")] == [2, 1, 1]
    assert "mnk, O to play: 2 stones of X, 1 of O, 1 of Z" in svg
    shapes = re.findall(r'class="stone (?:first|third)" d="([^"]*)"', svg)
    assert len({re.sub(r"[-.\d ]", "", shape) for shape in shapes}) == 2
    assert "--third" in svg


@pytest.mark.parametrize("options", [{"rows": 0}, {"columns": 20}, {"connect": 20}, {"players": 4}, {"players": 2.0}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    option, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"`{option}` is {value!r}, expected"):
        envs.make("mnk", **options)
