"""Othello against exact counts, an exact value, a plain flipper, and known faults of other programs."""

import functools
import itertools
import textwrap
from typing import Any

import jax
import numpy as np
import pytest

import envs
from envs.picture import to_svg
from envs.render import from_text, to_text
from tests.envs import playing

ENV, BY_PASSES = envs.Othello(), envs.Othello(double_pass=True)
FOUR, FOUR_BY_PASSES = envs.Othello(4), envs.Othello(4, double_pass=True)

# Published numbers of move sequences by length, a pass being one move; games that ended earlier count one each.
PERFT = {
    8: [4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288, 24571284],
    6: [4, 12, 56, 244, 1364, 7604, 47740, 308716, 2114912],
    4: [4, 12, 44, 128, 424, 1256, 3624, 9116, 20044, 36540, 50704, 57436, 59564],
}
STRICT_FOUR = [4, 12, 44, 128, 424, 1256, 3624, 9112, 20032, 36412, 50268, 55112, 31396]  # without those that ended
STRICT_TEN = 24_571_056  # of 10 moves on 8 x 8, without the 228 that ended after 9
POSITIONS = [1, 4, 12, 54, 236, 1288]  # 8 x 8, with the side to move

WIPE_OUT = "e6 f4 e3 f6 g5 d6 e7 f5 c5"


def moves(text: str, env: Any = ENV) -> list[int]:
    return [envs.parse_move(env, name) for name in text.split()]


@functools.cache
def tree(env: envs.Othello, plies: int) -> list[playing.Layer]:
    """The positions after 0 to `plies` plies, or to the end of the longest game."""
    layers = []
    for layer in playing.layers(env, plies):
        layers.append(layer)
        if layer.states.terminated.all():
            break
    return layers


def sequences(env: envs.Othello, plies: int) -> tuple[list[int], list[int]]:
    """Count the move sequences of 1 to `plies` plies, and the games that ended before each."""
    layers = tree(env, 30 if env.size == 4 else plies - 1)[:plies]
    going_on = [int((layer.paths[:, None] * (layer.children >= 0)).sum()) for layer in layers]
    return going_on, np.cumsum([layer.paths[layer.states.terminated].sum() for layer in layers]).tolist()


@pytest.mark.parametrize(
    ("size", "plies", "double_pass"), [(8, 6, False), (6, 6, False), (4, 13, False), (4, 13, True)]
)
def test_sequence_counts(size: int, plies: int, double_pass: bool) -> None:
    going_on, ended = sequences(envs.Othello(size, double_pass), plies)
    assert np.add(going_on, ended).tolist() == PERFT[size][:plies]


def test_games_end_when_nobody_can_move() -> None:
    going_on, _ = sequences(FOUR, 13)
    assert going_on == STRICT_FOUR


def test_position_counts() -> None:
    assert [len(layer) for layer in tree(ENV, 5)] == POSITIONS


@pytest.mark.slow
@pytest.mark.parametrize("double_pass", [False, True])
def test_sequence_counts_to_ten_moves(double_pass: bool) -> None:
    env = envs.Othello(double_pass=double_pass)
    states, paths = jax.tree.map(lambda x: np.asarray(x)[None], env.init()), np.ones(1, np.int64)
    look, step = jax.jit(jax.vmap(env.legal_action_mask)), jax.jit(jax.vmap(env.step))
    counts: list[int] = []
    while True:
        masks = playing.in_chunks(look, states)
        counts.append(int((paths[:, None] * masks).sum()))
        if len(counts) == 10:
            break
        parent, action = np.nonzero(masks)
        after = playing.in_chunks(step, jax.tree.map(lambda x: x[parent], states), action.astype(np.int32))  # noqa: B023
        _, first, same = np.unique(after.board, axis=0, return_index=True, return_inverse=True)
        paths = np.bincount(same.reshape(-1), weights=paths[parent]).astype(np.int64)
        states = jax.tree.map(lambda x: x[first], after)  # noqa: B023
    assert counts == [*PERFT[8][:9], STRICT_TEN]
    assert counts[9] + paths[states.terminated].sum() == PERFT[8][9]


def test_four_by_four_is_won_by_the_second_player_with_eight_discs() -> None:
    look = jax.jit(jax.vmap(FOUR.observe))
    values = np.zeros(0)  # black's lead
    for layer in reversed(tree(FOUR, 30)):
        sign = np.where(layer.states.to_play == 0, 1, -1)
        seen = playing.in_chunks(look, layer.states)
        lead = sign * (seen[..., 0] - seen[..., 1]).sum(axis=(1, 2))
        over = layer.states.terminated
        np.testing.assert_array_equal(layer.states.rewards[over, 0], np.sign(lead[over]))
        moves = np.where(layer.children >= 0, sign[:, None] * np.append(values, 0)[layer.children], -np.inf)
        values = np.where(over, lead, sign * moves.max(axis=1, initial=-np.inf))
    assert values.tolist() == [-8]


def test_the_start_has_four_moves_and_no_pass_c152() -> None:
    assert [*envs.legal_moves(ENV, ENV.init())] == ["d3", "c4", "f5", "e6"]
    after = playing.play(ENV, [64])
    assert after.terminated and after.rewards.tolist() == [-1, 1]


def test_discs_are_turned_in_several_directions_c152() -> None:
    before = moves("c4 c3 f5 d6 c7 g5 c2 d3 f4 b1 h6 f3 d2 d7 c1 b4 c5 e1 g3 g4")
    states = playing.history(ENV, [*before, *moves("e3")])
    assert not states.terminated.any()
    seen = np.asarray(jax.vmap(ENV.observe)(states))
    white_before, white_after = seen[20, ..., 1], seen[21, ..., 0]  # the other's, then of who is to move
    assert np.flatnonzero(white_before > white_after).tolist() == sorted(moves("d2 d4 e4 f3 f4"))


@pytest.mark.parametrize("env", [ENV, BY_PASSES], ids=repr)
def test_a_game_is_over_when_neither_side_can_move_c149(env: envs.Othello) -> None:
    states = playing.history(env, moves(WIPE_OUT))
    assert states.terminated.tolist() == [False] * 9 + [True]
    last = jax.tree.map(lambda x: x[-1], states)
    assert last.rewards.tolist() == [1, -1]
    assert env.observe(last).sum(axis=(0, 1)).tolist() == [0, 13]  # the other player is to move
    assert not env.legal_action_mask(last).any()


@pytest.mark.parametrize("env", [FOUR, FOUR_BY_PASSES], ids=repr)
def test_passing_is_legal_when_nothing_else_is_and_changes_sides_alone(env: envs.Othello) -> None:
    states, masks, chosen = playing.random_moves(env, 60, 18, seed=5)
    assert states.terminated[-1].all()
    live = ~states.terminated
    np.testing.assert_array_equal(masks[live][:, -1], ~masks[live][:, :-1].any(axis=1))
    passes = live[:-1] & (chosen == env.num_cells)
    assert passes.sum() > 5
    for ply, row in np.argwhere(passes):
        before, after = states.board[ply, row], states.board[ply + 1, row]
        np.testing.assert_array_equal(after[[2, 3, 0, 1]], before[:4])
        assert states.to_play[ply + 1, row] == 1 - states.to_play[ply, row]
        if not env.double_pass:
            assert masks[ply + 1, row, :-1].any()  # the other can move, or the game were over


def test_both_conventions_give_a_game_the_same_result() -> None:
    states, masks, chosen = playing.random_moves(FOUR_BY_PASSES, 60, 18, seed=7)
    strict = jax.jit(jax.vmap(FOUR.step))
    other = jax.vmap(FOUR.init)(jax.random.split(jax.random.key(0), 60))
    results = np.zeros((60, 2), np.float32)
    for ply in range(18):
        other = strict(other, chosen[ply])
        results += other.rewards
    np.testing.assert_array_equal(results, states.rewards.sum(axis=0))
    # Some games went on by passes where the others were over.
    stuck = np.logical_not(masks[..., :-1].any(axis=-1) | states.terminated)
    assert np.logical_and(stuck[:-1], stuck[1:]).any()


def test_a_plain_flipper_agrees_at_every_ply() -> None:
    """On 6 x 6, for which there is no outside program."""
    size, env = 6, envs.Othello(6)
    states, masks, chosen = playing.random_moves(env, 4, size * size, seed=2)
    for row in range(4):
        board = opening(size)
        for ply in range(size * size):
            state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
            if state.terminated:
                break
            seen = np.asarray(env.observe(state))
            player = int(state.to_play)
            np.testing.assert_array_equal(
                seen[..., 0] + 2 * seen[..., 1], np.where(board, 1 + (board != player + 1), 0)
            )
            legal = [cell for cell in range(size * size) if turned(board, player + 1, cell)]
            assert np.flatnonzero(masks[ply, row]).tolist() == (legal or [size * size])
            cell = int(chosen[ply, row])
            if cell < size * size:
                for r, c in [*turned(board, player + 1, cell), divmod(cell, size)]:
                    board[r, c] = player + 1
        assert state.terminated


def opening(size: int) -> np.ndarray:
    """The start as 0 for empty, 1 for black and 2 for white."""
    board, h = np.zeros((size, size), int), size // 2
    board[h - 1, h - 1] = board[h, h] = 2
    board[h - 1, h] = board[h, h - 1] = 1
    return board


def turned(board: np.ndarray, mine: int, cell: int) -> list[tuple[int, int]]:
    """The discs that a new one turns; none where it is illegal."""
    size, (row, column) = len(board), divmod(cell, len(board))
    found: list[tuple[int, int]] = []
    if board[row, column]:
        return found
    for down, right in itertools.product((-1, 0, 1), repeat=2):
        line: list[tuple[int, int]] = []
        for step in range(1, size):
            r, c = row + step * down, column + step * right
            if not (0 <= r < size and 0 <= c < size and board[r, c]):
                break
            if board[r, c] == mine:
                found += line
                break
            line.append((r, c))
    return found


def test_all_eight_symmetries_keep_the_rules() -> None:
    """Also those that exchange the colours of the start, which no game from there passes through."""
    env = envs.Othello(6)
    states, masks, _ = playing.random_moves(env, 2, 9, seed=3)
    look = jax.jit(env.legal_action_mask)
    state = jax.tree.map(lambda x: x[8, 0], states)
    seen = np.asarray(env.observe(state))
    for symmetry in env.symmetries:
        turned = env.arrange(symmetry.observation(seen) > 0, int(state.to_play))
        np.testing.assert_array_equal(look(turned), symmetry.policy(masks[8, 0]))
    assert len({tuple(symmetry.policy(np.arange(env.num_actions))) for symmetry in env.symmetries}) == 8
    assert all(symmetry.policy(np.arange(env.num_actions))[-1] == env.num_cells for symmetry in env.symmetries)


def test_a_drawing_reads_back() -> None:
    text = textwrap.dedent("""
          a b c d e f g h
        1 . . . . . . . .
        2 . . . . . . . .
        3 . . O X . . . .
        4 . . . O X . . .
        5 . . . X O . . .
        6 . . . . . . . .
        7 . . . . . . . .
        8 . . . . . . . .
        X to play
    """).strip("\n")
    state = playing.play(ENV, moves("d3 c3"))
    assert to_text(ENV, state) == text
    jax.tree.map(np.testing.assert_array_equal, from_text(ENV, text), state)


@pytest.mark.parametrize("env", [ENV, FOUR_BY_PASSES], ids=repr)
def test_every_position_reads_back_to_the_same_state(env: envs.Othello) -> None:
    states, _, _ = playing.random_moves(env, 3, 70, seed=1)
    fresh = np.concatenate([np.ones((1, 3), bool), ~states.terminated[:-1]])
    ends = 0
    for ply, row in np.concatenate([np.argwhere(fresh)[::15], np.argwhere(fresh & states.terminated)]):
        state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
        again = from_text(env, to_text(env, state))
        assert again.terminated == state.terminated
        np.testing.assert_array_equal(again.rewards, state.rewards)
        ends += state.terminated
        if not state.terminated and not (env.double_pass and state.board[-1]):
            jax.tree.map(np.testing.assert_array_equal, again, state)
    assert ends >= 3


def test_where_nobody_can_move_two_passes_are_still_to_come_with_double_pass() -> None:
    board = "OXXX\nXXXX\nXXXX\nX.XX\n"
    running = from_text(FOUR_BY_PASSES, f"{board}O to play")
    assert not running.terminated and list(envs.legal_moves(FOUR_BY_PASSES, running)) == ["pass"]
    ended = from_text(FOUR_BY_PASSES, f"{board}X won")  # X has moved last
    passed = FOUR_BY_PASSES.step(FOUR_BY_PASSES.step(running, 16), 16)
    jax.tree.map(np.testing.assert_array_equal, passed, ended)
    assert from_text(FOUR, f"{board}X won").terminated
    with pytest.raises(ValueError, match="says 'X to play', but on its board it is 'X won'"):
        from_text(FOUR, f"{board}X to play")
    with pytest.raises(ValueError, match="says 'X won', but on its board it is 'O to play'"):
        from_text(FOUR_BY_PASSES, "....\n.OX.\n.XO.\n....\nX won")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("....\n.OX.\n.XO.\n....", "does not say who is to play 'othello': add a line such as `X to play`"),
        ("XO..\n.O..\n.XO.\n....\nX to play", "four cells in the middle"),
        ("....\n.XX.\n.XX.\n....\nX to play", "says 'X to play', but on its board it is 'X won'"),
        ("....\n.OX.\n.XO.\n....\nO won", "says 'O won', but on its board it is 'X to play'"),
    ],
)
def test_what_cannot_be_a_position_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_text(FOUR, text)


def test_who_is_to_play_may_be_either_with_any_number_of_discs() -> None:
    board = "....\n.OX.\n.XO.\n....\n"
    assert [int(from_text(FOUR, f"{board}{mark} to play").to_play) for mark in "XO"] == [0, 1]


def test_a_pass_stands_below_the_picture_while_it_is_legal() -> None:
    states, masks, _ = playing.random_moves(FOUR, 60, 18, seed=5)
    shares = np.full(17, 0.5)
    ply, row = np.argwhere(masks[..., -1])[0]
    for at, has_pass in (((ply, row), True), ((0, 0), False)):
        state = jax.tree.map(lambda x: x[at], states)  # noqa: B023
        picture = to_svg(FOUR, state, shares=shares)
        assert (">pass<" in picture) == has_pass
        assert picture.count('class="stone') == np.asarray(FOUR.observe(state)).sum()
    assert "othello, X to play: 2 stones of X, 2 of O" in to_svg(FOUR, FOUR.init())


@pytest.mark.parametrize("options", [{"size": 5}, {"size": 10}, {"size": 8.0}, {"double_pass": 1}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    option, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"`{option}` is {value!r}, expected"):
        envs.make("othello", **options)
