"""Random games step by step beside OpenSpiel and pgx.

Conventions: pgx draws by lot which player id begins, so its rewards are compared through the one who began;
its mask is all True at the end, ours all False; its rows count from the top. OpenSpiel's `returns` hold the
result of the whole game, which for these games is the reward of its last step.
"""

import functools
from typing import Any

import jax
import numpy as np
import pgx
import pyspiel
import pytest

import envs
from tests.envs import playing

CASES = [
    ("tic_tac_toe", {}, "tic_tac_toe", 10),
    ("connect_four", {}, "connect_four", 43),
    ("connect_four", {"rows": 5, "columns": 8, "connect": 3}, "connect_four(rows=5,columns=8,x_in_row=3)", 40),
    ("connect_four", {"rows": 9, "columns": 9, "connect": 5}, "connect_four(rows=9,columns=9,x_in_row=5)", 81),
    ("hex", {"size": 3, "swap": True}, "hex(board_size=3,swap=True)", 10),
    ("hex", {"size": 5}, "hex(board_size=5)", 25),
    ("hex", {"size": 8, "swap": True}, "hex(board_size=8,swap=True)", 65),
    ("hex", {"size": 11}, "hex(board_size=11)", 121),
    ("othello", {}, "othello", 70),
    ("mnk", {}, "mnk", 225),
    ("mnk", {"rows": 4, "columns": 7, "connect": 3}, "mnk(m=7,n=4,k=3)", 28),
    ("mnk", {"rows": 9, "columns": 5, "connect": 4}, "mnk(m=5,n=9,k=4)", 45),
]
MANY: list[tuple[str, dict[str, Any], str, int, int]] = [
    ("othello", {}, "othello", 70, 3400),  # 200,000 plies each
    ("mnk", {}, "mnk", 225, 1850),
]
GAMES = 60


@pytest.mark.parametrize(
    ("name", "options", "theirs", "plies", "games"),
    [
        *(pytest.param(*case, GAMES, id=case[2]) for case in CASES),
        *(pytest.param(*case, id=f"{case[2]}, {case[4]} games", marks=pytest.mark.slow) for case in MANY),
    ],
)
def test_open_spiel_agrees_at_every_ply(
    name: str, options: dict[str, Any], theirs: str, plies: int, games: int
) -> None:
    env = envs.make(name, **options)
    states, masks, moves = playing.random_moves(env, games, plies, seed=1)
    game = pyspiel.load_game(theirs)
    ends = 0
    for row in range(games):
        other = game.new_initial_state()
        for ply in range(plies + 1):
            ours = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
            assert other.is_terminal() == ours.terminated
            assert other.returns() == ours.rewards.tolist()
            legal = [] if other.is_terminal() else other.legal_actions()
            assert np.flatnonzero(masks[ply, row]).tolist() == legal
            if other.is_terminal():
                break
            assert other.current_player() == ours.to_play
            other.apply_action(int(moves[ply, row]))
        ends += other.is_terminal()
    assert ends == games


@pytest.mark.parametrize(
    ("name", "options", "plies", "games"),
    [
        ("tic_tac_toe", {}, 10, GAMES),
        ("connect_four", {}, 43, GAMES),
        ("hex", {"swap": True}, 122, GAMES),
        pytest.param("othello", {"double_pass": True}, 70, 3400, marks=pytest.mark.slow),
        pytest.param("hex", {"swap": True}, 122, 2400, marks=pytest.mark.slow),  # 200,000 plies
    ],
)
def test_pgx_agrees_at_every_ply(name: str, options: dict[str, Any], plies: int, games: int) -> None:
    env = envs.make(name, **options)
    states, masks, moves = playing.random_moves(env, games, plies, seed=2)
    theirs = jax.device_get(playing.pgx_program(_pgx(name))(moves))
    beginner = theirs.current_player[0]
    np.testing.assert_array_equal(states.terminated, theirs.terminated)
    live = ~states.terminated
    np.testing.assert_array_equal(masks[live], theirs.legal_action_mask[live])
    np.testing.assert_array_equal((states.to_play ^ beginner)[live], theirs.current_player[live])
    # After the end, too: both are frozen with rewards 0.
    ours = np.where(beginner[:, None] == 0, states.rewards, states.rewards[..., ::-1])
    np.testing.assert_array_equal(ours, theirs.rewards)
    seen = np.asarray(jax.jit(jax.vmap(jax.vmap(env.observe)))(states))
    seen = seen[:, :, ::-1] if env.bottom_up else seen
    # In Hex pgx has one plane more, whether swapping is allowed: the mask says so.
    np.testing.assert_array_equal(seen[live], theirs.observation[live][..., : seen.shape[-1]])


@functools.cache
def _pgx(name: str) -> Any:
    return pgx.make(name)


@pytest.mark.parametrize(("name", "plies", "moves"), [("tic_tac_toe", 10, [4, 4]), ("connect_four", 43, [3] * 7)])
def test_pgx_punishes_an_illegal_move_alike(name: str, plies: int, moves: list[int]) -> None:
    padded = np.zeros((plies, GAMES), np.int32)
    padded[: len(moves), 0] = moves
    theirs = jax.tree.map(lambda x: x[: len(moves) + 1, 0], jax.device_get(playing.pgx_program(_pgx(name))(padded)))
    ours = playing.play(envs.make(name), moves)
    assert theirs.terminated[-1] and ours.terminated
    loser = theirs.current_player[-2] ^ theirs.current_player[0]
    assert ours.rewards[loser] == theirs.rewards[-1].min() == -1
