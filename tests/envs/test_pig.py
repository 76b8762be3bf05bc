"""Pig beside OpenSpiel move by move, and its published value by iteration over the game's own odds."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

import envs
from envs import Pig
from tests.envs import playing

ROLL, HOLD = range(2)


@pytest.mark.parametrize(("target", "faces", "plies"), [(10, 3, 80), (40, 6, 200)])
def test_open_spiel_agrees_at_every_ply(target: int, faces: int, plies: int) -> None:
    env = Pig(target, faces)
    states, masks, moves = playing.random_moves(env, 30, plies, seed=1)
    states = jax.tree.map(np.asarray, states)
    game = pyspiel.load_game(f"pig(players=2,winscore={target},diceoutcomes={faces})")
    ends = 0
    for row in range(30):
        other = game.new_initial_state()
        for ply in range(plies):
            ours, after = (jax.tree.map(lambda x: x[at, row], states) for at in (ply, ply + 1))  # noqa: B023
            assert other.current_player() == ours.to_play
            assert f"Scores: {ours.board[0]} {ours.board[1]}, Turn total: {ours.board[2]}\n" in str(other)
            assert np.flatnonzero(masks[ply, row]).tolist() == other.legal_actions()
            other.apply_action(int(moves[ply, row]))
            if other.is_chance_node():
                grown = after.to_play == ours.to_play
                other.apply_action(int(after.board[2] - ours.board[2]) - 1 if grown else 0)
            assert other.is_terminal() == after.terminated
            assert other.returns() == after.rewards.tolist()
            if other.is_terminal():
                break
        ends += other.is_terminal()
    assert ends > 20


def test_the_odds_are_those_of_open_spiel() -> None:
    other = pyspiel.load_game("pig").new_initial_state()
    other.apply_action(ROLL)
    env = Pig()
    odds = env.odds(env.decide(env.init(), ROLL))
    assert dict(enumerate(odds.tolist())) == pytest.approx(dict(other.chance_outcomes()))


@functools.partial(jax.jit, static_argnums=0)
def _unfold(env: Pig, mine: jax.Array, theirs: jax.Array, total: jax.Array) -> Any:
    """Odds, boards, movers and rewards of all outcomes of both actions, from a position of player 0."""
    board = jnp.stack([mine, theirs, total, jnp.zeros((), jnp.int32)])
    state = dataclasses.replace(env.init(), board=board)

    def one(action: jax.Array) -> Any:
        after = env.decide(state, action)
        happened = jax.vmap(env.happen, (None, 0))(after, jnp.arange(env.num_outcomes, dtype=jnp.int32))
        return env.odds(after), happened

    return jax.vmap(one)(jnp.arange(2, dtype=jnp.int32)), env.legal_action_mask(state)


def first_player_wins(env: Pig) -> float:
    """Iterate the values of all positions (Neller and Presser, 2004) to where they stay."""
    grid = np.indices((env.target, env.target, env.target + env.faces), np.int32)
    mine, theirs, total = grid[:, grid[0] + grid[2] < env.target + env.faces]
    (odds, happened), masks = jax.device_get(jax.vmap(functools.partial(_unfold, env))(mine, theirs, total))
    index = np.full((env.target, env.target, env.target + env.faces), -1)
    index[mine, theirs, total] = np.arange(len(mine))
    # Where the other moves next the board is seen from there.
    board, other = happened.board, happened.to_play == 1
    first, second = np.where(other, board[..., 1], board[..., 0]), np.where(other, board[..., 0], board[..., 1])
    over = happened.terminated
    last = env.target - 1
    at = index[np.minimum(first, last), np.minimum(second, last), np.minimum(board[..., 2], env.target + env.faces - 1)]
    possible = (odds > 0) & ~over & masks[..., None]
    assert (at[possible] >= 0).all() and (first[possible] <= last).all()
    sign = np.where(other, -1, 1) * possible
    values = np.zeros(len(mine))
    for _ in range(2000):
        q = (odds * (happened.rewards[..., 0] * over + sign * values[at])).sum(axis=-1)
        after = np.where(masks, q, -np.inf).max(axis=1)
        change, values = np.max(abs(after - values)), after
        if change < 1e-7:
            break
    return float(values[index[0, 0, 0]] + 1) / 2


def recurrence(target: int, faces: int) -> float:
    """The same in plain Python, by the equations of the paper: P(own score, other's, turn's total)."""
    wins = {(i, j, k): 0.0 for i in range(target) for j in range(target) for k in range(target - i)}

    def probability(i: int, j: int, k: int) -> float:
        return 1.0 if i + k >= target else wins[i, j, k]

    change = 1.0
    while change > 1e-9:
        change = 0.0
        for (i, j, k), old in wins.items():
            lost = 1 - probability(j, i, 0)
            roll = (lost + sum(probability(i, j, k + face) for face in range(2, faces + 1))) / faces
            wins[i, j, k] = max(roll, 1 - probability(j, i + k, 0))
            change = max(change, abs(wins[i, j, k] - old))
    return wins[0, 0, 0]


@pytest.mark.parametrize(("target", "faces"), [(10, 2), (15, 6)])
def test_the_value_is_that_of_a_plain_recurrence(target: int, faces: int) -> None:
    assert first_player_wins(Pig(target, faces)) == pytest.approx(recurrence(target, faces), abs=1e-5)


@pytest.mark.slow
def test_the_first_player_wins_as_often_as_published() -> None:
    assert first_player_wins(Pig()) == pytest.approx(0.5306, abs=5e-5)


def test_a_hold_leaves_nothing_to_chance() -> None:
    env = Pig(20)
    state = env.happen(env.decide(env.init(), ROLL), 4)
    held = env.decide(state, HOLD)
    assert held.board.tolist() == [5, 0, 0, 0] and held.to_play == 1 and not held.terminated
    assert env.odds(held).tolist() == [1, 0, 0, 0, 0, 0]
    jax.tree.map(np.testing.assert_array_equal, env.happen(held, 0), held)


def test_a_one_loses_the_turn_and_the_move() -> None:
    env = Pig(20)
    state = env.happen(env.decide(env.init(), ROLL), 4)
    lost = env.happen(env.decide(state, ROLL), 0)
    assert lost.board.tolist() == [0, 0, 0, 0] and lost.to_play == 1


def test_who_can_win_by_holding_must() -> None:
    env = Pig(5)
    state = env.happen(env.decide(env.init(), ROLL), 4)
    assert env.legal_action_mask(state).tolist() == [False, True]
    assert env.step(state, HOLD, jax.random.key(0)).rewards.tolist() == [1, -1]
    assert env.step(state, ROLL, jax.random.key(0)).rewards.tolist() == [-1, 1]


def test_the_score_is_one_line() -> None:
    env = Pig(20)
    state = env.happen(env.decide(env.init(), ROLL), 4)
    assert envs.to_text(env, state) == "X 0, O 0, turn 5\nX to play"
    assert envs.to_text(env, env.decide(state, HOLD)) == "X 5, O 0, turn 0\nO to play"
    assert envs.to_text(envs.TimeLimit(env, 3), envs.TimeLimit(env, 3).init()) == "X 0, O 0, turn 0\nX to play"
    with pytest.raises(ValueError, match=r"'pig' is seen as \(3,\): it has no board to read"):
        envs.from_text(env, "X 0, O 0, turn 5")
    with pytest.raises(ValueError, match=r"'pig' is seen as \(3,\) by 2 players, expected \(rows, columns, planes\)"):
        envs.to_svg(env, state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0}, "`target` is 0, expected an integer from 1"),
        ({"faces": 1}, "`faces` is 1, expected an integer from 2"),
        ({"target": 1.5}, "`target` is 1.5"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.make("pig", **options)
