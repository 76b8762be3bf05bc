"""Boards as text: what a drawing looks like, and that it reads back to the same state."""

import textwrap
from typing import Any

import jax
import numpy as np
import pytest

import envs
from envs.render import _board_lines, from_text, status, stones_of, to_text
from envs.time_limit import TimeLimit
from tests.envs import playing

TTT, C4 = envs.make("tic_tac_toe"), envs.make("connect_four")


def drawing(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_connect_four_lies_on_its_column_numbers() -> None:
    assert to_text(C4, playing.play(C4, [3, 3, 2, 2, 1])) == drawing("""
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . O O . . .
        . X X X . . .
        0 1 2 3 4 5 6
        O to play
    """)


def test_tic_tac_toe_reads_like_its_cells() -> None:
    assert to_text(TTT, playing.play(TTT, [0, 5])) == drawing("""
          a b c
        1 X . .
        2 . . O
        3 . . .
        X to play
    """)


def test_a_board_whose_moves_are_a_list_has_no_names_on_it() -> None:
    class Listed(envs.TicTacToe):
        action_layout = envs.ActionLayout()

    assert to_text(Listed(), playing.play(TTT, [0, 5])) == "X . .\n. . O\n. . .\nX to play"


@pytest.mark.parametrize(
    ("moves", "status"),
    [
        ([], "X to play"),
        ([0, 3, 1, 4, 2], "X won"),
        ([8, 3, 1, 4, 2, 5], "O won"),
        ([4, 4], "X won"),
        ([0, 1, 2, 4, 3, 5, 7, 6, 8], "game over"),
    ],
)
def test_the_last_line_says_how_it_stands(moves: list[int], status: str) -> None:
    assert to_text(TTT, playing.play(TTT, moves)).splitlines()[-1] == status


def test_a_cut_game_is_said_to_be_cut() -> None:
    env = TimeLimit(C4, 3)
    assert to_text(env, playing.play(env, [0, 0, 1])).splitlines()[-2:] == ["0 1 2 3 4 5 6", "cut short"]


@pytest.mark.parametrize("env", [TTT, C4, envs.make("connect_four", rows=9, columns=12)], ids=repr)
def test_a_drawing_reads_back_to_the_same_state(env: envs.BoardGame) -> None:
    states, _, _ = playing.random_moves(env, 8, 40, seed=0)
    # After the end the rewards of the last move are gone, so those are left to the move itself.
    fresh = np.concatenate([np.ones((1, 8), bool), ~states.terminated[:-1]])
    for ply, row in np.argwhere(fresh)[::9]:
        state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
        again = from_text(env, to_text(env, state))
        jax.tree.map(np.testing.assert_array_equal, again, state)
        assert jax.tree.map(lambda x: x.dtype, again) == jax.tree.map(lambda x: x.dtype, state)


LIMITED = TimeLimit(envs.make("hex", size=3, swap=True), 5)
EVERY = [
    *(envs.make("mnk", rows=3, columns=3, connect=3, players=players) for players in (2, 3)),
    envs.make("connect_four", rows=4, columns=4, connect=3),
    envs.make("hex", size=3, swap=True),
    envs.make("go", size=3, komi=1.0, max_plies=12),
    envs.make("othello", size=4),
    envs.make("2048", rows=2, columns=2),
    envs.make("sliding_puzzle", rows=2, columns=2, max_moves=6),
    LIMITED,
]


@pytest.mark.parametrize("env", EVERY, ids=repr)
def test_every_position_of_a_game_reads_back_its_end_included(env: Any) -> None:
    states, _, _ = playing.random_moves(env, 8, 24, seed=2)
    ends = set()
    for ply, row in np.ndindex(states.to_play.shape):
        if ply > 1 and states.terminated[ply - 2, row] | states.truncated[ply - 2, row]:
            continue
        state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
        text = to_text(env, state)
        end = text.splitlines()[-1]
        ends.add(end)
        if end == "cut short" and _hides_the_mover(env, state):
            with pytest.raises(ValueError, match=r"does not say who is to play .*: add a line such as `X to play`"):
                from_text(env, text)
            text += f"\n{'XO'[state.to_play]} to play"
        again = from_text(env, text)
        assert (again.terminated, again.truncated) == (state.terminated, state.truncated)
        np.testing.assert_array_equal(_board_lines(env, again), _board_lines(env, state))
        # The game's last step alone tells who won, and in Go and Othello not even who moved last.
        assert status(again) == end or end == "game over"
        if env.turns_by_count or not again.terminated:
            assert again.to_play == state.to_play
    assert "game over" in ends or "cut short" in ends


def _hides_the_mover(env: Any, state: Any) -> bool:
    first, second = stones_of(env, state).sum(axis=(0, 1)) if env.num_players == 2 else (0, 0)
    return not env.turns_by_count or (env == LIMITED and first == second > 0)


def test_two_passes_and_a_swap_are_told_by_who_won() -> None:
    go, swap = envs.make("go", size=3, komi=1.0), envs.make("hex", size=3, swap=True)
    over = from_text(go, "XX.\nX.X\n.X.\nX won")
    assert over.terminated and over.rewards.tolist() == [1, -1] and over.to_play == 1
    assert from_text(go, "...\n...\n...\ngame over").rewards.tolist() == [-1, 1]
    assert not go.legal_action_mask(over).any() and not go.step(over, 4).rewards.any()
    with pytest.raises(ValueError, match="says 'O won', but on its board it is 'X won'"):
        from_text(go, "XX.\nX.X\n.X.\nO won")
    # As many stones of each: X can have won after a swap alone, and has moved last then.
    assert from_text(swap, "OX.\nOX.\n.XO\ngame over").to_play == 1
    assert from_text(swap, "XX.\nOOO\n..X\ngame over").to_play == 0


def test_a_game_cut_short_stays_so() -> None:
    state = from_text(TTT, "X..\n.O.\n...\ncut short")
    assert state.truncated and not state.terminated and state.to_play == 0
    assert not TTT.legal_action_mask(state).any()
    with pytest.raises(ValueError, match="says 'cut short', but on its board it is 'X won'"):
        from_text(TTT, "XXX\nOO.\n...\ncut short")


def test_a_diagram_without_spaces_is_read_too() -> None:
    """The position of case C012: X to move wins with cell 2 alone."""
    state = from_text(TTT, "XX.\nOO.\n...")
    wins = [cell for cell in range(9) if TTT.step(state, cell).rewards[0] == 1]
    assert wins == [2]


@pytest.mark.parametrize(
    ("env", "text", "message"),
    [
        (TTT, "XX.\nOO.", r"rows of lengths \[3, 3\], expected 3 of 3"),
        (TTT, "XX.\nOO.\n....", r"rows of lengths \[3, 3, 4\]"),
        (TTT, "XXX\nX..\nOO.", "4 X and 2 O"),
        (TTT, "OO.\nX..\n...", "1 X and 2 O"),
        (TTT, "XXX\nOOO\n...", "has a win of X, who is to play"),
        (TTT, "XXX\nOO.\n.O.", "has a win of X, who is to play"),
        (TTT, "XX.\nOO.\n...\nO won", "says 'O won', but on its board it is 'X to play'"),
        (TTT, "XX.\nOO.\n...\ngame over", "says 'game over', but on its board it is 'X to play'"),
        (TTT, "OOO\nXX.\nX..\n  X to play", "says 'X to play', but on its board it is 'O won'"),
        (TTT, "OXO\nXXO\nXOX\nX won", "says 'X won', but on its board it is 'game over'"),
        (C4, ".......\n" * 4 + "X......\n.......", "hangs in the air"),
    ],
)
def test_what_cannot_be_a_position_is_refused(env: envs.BoardGame, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_text(env, text)


def test_a_batch_is_refused() -> None:
    states = jax.vmap(TTT.init)(jax.random.split(jax.random.key(0), 3))
    with pytest.raises(TypeError, match=r"`state` is a batch of shape \(3,\)"):
        to_text(TTT, states)
