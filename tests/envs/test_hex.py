"""Hex against exact results, an independent search for chains, and known faults of other programs."""

import functools
import itertools
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.render import from_text, to_text
from tests.envs import playing

THREE = envs.Hex(3)

# Distinct positions and finished games of the 3 x 3 board, by ply.
POSITIONS = [1, 9, 72, 252, 756, 1260, 1520, 1140, 420, 84]
FINISHED_GAMES = [0] * 5 + [1440, 5760, 43200, 86400, 120960]

# Published: the first moves that win without a swap.
WINNING_FIRST_MOVES = {
    2: """
        . W
         W .""",
    3: """
        . . W
         W W W
          W . .""",
    4: """
        . . . W
         . . W .
          . W . .
           W . . .""",
}


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("size", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 4, 5, 11)), 19])
def test_contract(size: int, swap: bool) -> None:
    envs.check_env(envs.Hex(size, swap), num_games=16)


def test_three_by_three_has_5_514_positions_and_257_760_games() -> None:
    tree = list(playing.layers(THREE, 9))
    assert [len(layer) for layer in tree] == POSITIONS
    assert [layer.paths[layer.states.terminated].sum() for layer in tree] == FINISHED_GAMES


@pytest.mark.parametrize("size", WINNING_FIRST_MOVES)
def test_winning_first_moves(size: int) -> None:
    """An exact solver over bit masks; which stones win is asked of the game, for every set of cells."""
    joined = [_joined(size, player) for player in (0, 1)]
    cells = [1 << cell for cell in range(size * size)]
    middle_first = sorted(cells, key=lambda cell: abs(cell.bit_length() - (size * size + 1) / 2))

    @functools.cache
    def wins(mine: int, theirs: int, player: int) -> bool:
        free = [cell for cell in middle_first if not (mine | theirs) & cell]
        if any(joined[player][mine | move] for move in free):
            return True
        # Whatever the other player wins with has to be taken from them first.
        threats = [move for move in free if joined[1 - player][theirs | move]]
        return any(not wins(theirs, mine | move, 1 - player) for move in threats or free)

    drawing = "".join(WINNING_FIRST_MOVES[size].split())
    assert "".join(".W"[not wins(0, cell, 1)] for cell in cells) == drawing


def _joined(size: int, player: int) -> list[bool]:
    """Tell for each set of cells, as a bit mask, whether `player` has won with stones on just these."""
    subsets = np.arange(2 ** (size * size))[:, None] >> np.arange(size * size) & 1 == 1
    planes = np.stack([np.zeros_like(subsets), subsets], axis=-1).reshape(-1, size, size, 2)
    arrange = jax.vmap(envs.Hex(size).arrange, in_axes=(0, None))
    return (arrange(planes, 1 - player).rewards[:, player] > 0).tolist()


@pytest.mark.parametrize(
    ("player", "won"),
    [
        (0, {((0, 0), (1, 0)), ((0, 1), (1, 0)), ((0, 1), (1, 1))}),
        (1, {((0, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (1, 1))}),
    ],
)
def test_c142_pairs_that_win_on_two_by_two(player: int, won: set[Any]) -> None:
    pairs = itertools.combinations(itertools.product(range(2), range(2)), 2)
    assert {pair for pair in pairs if _joined(2, player)[sum(1 << 2 * r + c for r, c in pair)]} == won


def test_c143_a_row_does_not_go_on_in_the_next_one() -> None:
    planes = np.zeros((3, 3, 2), bool)
    planes[0, 2, 1] = planes[1, 0, 1] = True
    state = THREE.arrange(planes, 0)
    assert not state.terminated and not state.rewards.any()


@pytest.mark.parametrize(("size", "swap"), [(2, True), (4, False), (7, True), (11, False), (12, False), (19, True)])
def test_groups_and_winners_are_those_of_a_slow_search(size: int, swap: bool) -> None:
    """Every ply of random games: labels are the canonical ones, and just one player wins, with the last stone."""
    env = envs.Hex(size, swap)
    states, _, _ = playing.random_moves(env, 6, env.num_actions, seed=size)
    assert states.terminated[-1].all()
    for row in range(6):
        length = np.argmax(states.terminated[:, row])
        for ply in [*range(0, length, 1 + size // 4), length]:
            seen = np.asarray(env.observe(jax.tree.map(lambda x: x[ply, row], states)))  # noqa: B023
            mover = int(states.to_play[ply, row])
            own, own_won = _groups(seen[..., 0] > 0, mover)
            other, other_won = _groups(seen[..., 1] > 0, 1 - mover)
            np.testing.assert_array_equal(states.board[ply, row, : size**2].reshape(size, size), own - other)
            assert not own_won
            assert other_won == states.terminated[ply, row]
            assert states.rewards[ply, row].tolist() == [other_won * (1 - 2 * (p == mover)) for p in (0, 1)]


def _groups(stones: np.ndarray, player: int) -> tuple[np.ndarray, bool]:
    """The label of each stone, 0 elsewhere, and whether a group joins both edges; by walking from stone to stone."""
    size, labels, won = len(stones), np.zeros(stones.shape, int), False
    for start in zip(*np.nonzero(stones), strict=True):
        if labels[start]:
            continue
        group, todo = {start}, [start]
        while todo:
            r, c = todo.pop()
            near = {(r, c - 1), (r, c + 1), (r - 1, c), (r + 1, c), (r - 1, c + 1), (r + 1, c - 1)}
            new = {(r, c) for r, c in near - group if 0 <= r < size and 0 <= c < size and stones[r, c]}
            group |= new
            todo += new
        lines = {cell[player] for cell in group}
        won |= {0, size - 1} <= lines
        label = 1 if 0 in lines else 2 if size - 1 in lines else 3 + start[0] * size + start[1]
        labels[tuple(np.transpose(list(group)))] = label
    # A win makes the two edges one group.
    return np.where(won & (labels == 2), 1, labels), won


def test_a_full_board_has_one_winner() -> None:
    rng = np.random.default_rng(0)
    first = rng.permuted(np.tile(np.arange(49) < 25, (500, 1)), axis=1).reshape(-1, 7, 7)
    views = [np.stack(stones, axis=-1) for stones in ((~first, first), (first, ~first))]
    arrange = jax.vmap(envs.Hex(7).arrange, in_axes=(0, None))
    won = [np.asarray(arrange(planes, 1 - player).terminated) for player, planes in enumerate(views)]
    assert (won[0] ^ won[1]).all()
    assert 0.3 < won[0].mean() < 0.7


# --- The swap


def test_the_second_player_may_swap_and_only_at_once() -> None:
    env = envs.Hex(3, swap=True)
    masks = jax.vmap(env.legal_action_mask)(playing.history(env, [2, 4, 0]))
    assert masks[:, 9].tolist() == [False, True, False, False]


@pytest.mark.parametrize("moves", [[9], [0, 1, 9], [0, 9, 9], [0, 9, 1, 9]])
def test_swapping_at_another_time_loses(moves: list[int]) -> None:
    env = envs.Hex(3, swap=True)
    before, after = playing.play(env, moves[:-1]), playing.play(env, moves)
    assert after.terminated and after.rewards[before.to_play] == -1
    np.testing.assert_array_equal(after.board, before.board)


@pytest.mark.parametrize("first", range(16))
def test_a_stone_taken_over_is_mirrored(first: int) -> None:
    env = envs.Hex(4, swap=True)
    row, column = divmod(first, 4)
    state = playing.play(env, [first, 16])
    seen = np.asarray(env.observe(state))
    assert state.to_play == 0 and not state.terminated
    assert np.argwhere(seen[..., 1]).tolist() == [[column, row]]
    assert not seen[..., 0].any() and not seen[..., 2].any()
    legal = np.flatnonzero(env.legal_action_mask(state))
    assert legal.tolist() == [cell for cell in range(16) if cell != column * 4 + row]


def test_a_stone_taken_over_counts_for_its_new_owner() -> None:
    """Swapped from (0, 1) to (1, 0), it is the left end of a chain along row 1."""
    env = envs.Hex(3, swap=True)
    states = playing.history(env, [1, 9, 0, 4, 1, 5])
    assert states.terminated.tolist() == [False] * 6 + [True]
    np.testing.assert_array_equal(states.rewards[-1], [-1, 1])


def test_without_the_rule_there_is_no_such_action() -> None:
    assert THREE.num_actions == 9
    before, after = playing.play(THREE, [0]), playing.play(THREE, [0, 9])
    np.testing.assert_array_equal(after.board, before.board)
    np.testing.assert_array_equal(after.rewards, [1, -1])


# --- What is seen


def test_c166_planes_are_the_movers_the_others_and_who_moves() -> None:
    env = envs.make("hex(size=5)")
    seen = np.asarray(env.observe(playing.play(env, [3])))
    assert seen.shape == (5, 5, 3) and seen.dtype == np.float32
    assert not seen[..., 0].any()
    assert np.argwhere(seen[..., 1]).tolist() == [[0, 3]]
    assert seen[..., 2].all()
    seen = np.asarray(env.observe(playing.play(env, [3, 10])))
    assert np.argwhere(seen[..., 0]).tolist() == [[0, 3]]
    assert np.argwhere(seen[..., 1]).tolist() == [[2, 0]]
    assert not seen[..., 2].any()


@pytest.mark.parametrize("player", [0, 1])
def test_c119_the_half_turn_keeps_the_winner_and_nothing_else_is_offered(player: int) -> None:
    moves = [2, 3, 4, 8, 6] if player == 0 else [0, 3, 1, 4, 8, 5]
    identity, turn = THREE.symmetries
    image = np.argsort(turn.policy(np.arange(9)))
    turned = playing.play(THREE, image[moves].tolist())
    assert image[[0, 1, 5]].tolist() == [8, 7, 3]
    assert turned.terminated and turned.rewards[player] == 1
    state = playing.play(THREE, moves)
    np.testing.assert_array_equal(turn.observation(THREE.observe(state)), THREE.observe(turned))
    np.testing.assert_array_equal(identity.policy(np.arange(9)), np.arange(9))


def test_c118_the_swap_stays_where_it_is_when_the_board_turns() -> None:
    env = envs.Hex(3, swap=True)
    policy = jnp.arange(10.0)[None]
    np.testing.assert_array_equal(env.symmetries[1].policy(policy), [[8, 7, 6, 5, 4, 3, 2, 1, 0, 9]])


def test_a_drawing_is_slanted_and_reads_back() -> None:
    text = textwrap.dedent("""
          a b c
        1 . . X
        2  O X .
        3   X O .
        X won
    """).strip("\n")
    state = from_text(THREE, text)
    assert state.terminated and state.rewards.tolist() == [1, -1]
    assert to_text(THREE, state) == text


@pytest.mark.parametrize("env", [envs.Hex(4), envs.Hex(3, swap=True), envs.Hex(12)], ids=repr)
def test_every_position_reads_back_to_the_same_state(env: envs.Hex) -> None:
    states, _, _ = playing.random_moves(env, 12, env.num_actions, seed=1)
    # After the end the rewards of the last move are gone, so those are left to the move itself.
    fresh = np.concatenate([np.ones((1, 12), bool), ~states.terminated[:-1]])
    for ply, row in np.argwhere(fresh)[:: 1 + env.size // 4]:
        state = jax.tree.map(lambda x: x[ply, row], states)  # noqa: B023
        again = from_text(env, to_text(env, state))
        jax.tree.map(np.testing.assert_array_equal, again, state)
        assert jax.tree.map(lambda x: x.dtype, again) == jax.tree.map(lambda x: x.dtype, state)


def test_a_position_after_a_swap_is_read_and_told_from_the_others() -> None:
    env = envs.Hex(3, swap=True)
    swapped = playing.play(env, [1, 9, 0])
    assert to_text(env, swapped).splitlines()[-1] == "O to play"
    assert from_text(env, to_text(env, swapped)).to_play == 1
    bare = "X . .\n O . .\n  . . ."
    assert from_text(env, bare).to_play == 0
    with pytest.raises(ValueError, match="1 X and 1 O with O to play"):
        from_text(THREE, bare + "\nO to play")


@pytest.mark.parametrize("text", ["XX.\nX..\n.O.", "OO.\n...\n...", "X..\nOOO\n..X"])
def test_what_cannot_be_a_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"`text` has"):
        from_text(THREE, text + "\nO to play")


@pytest.mark.parametrize("options", [{"size": 1}, {"size": 20}, {"size": 5.0}, {"swap": 1}, {"swap": "yes"}])
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    option, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"`{option}` is {value!r}, expected"):
        envs.make("hex", **options)
