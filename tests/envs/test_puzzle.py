"""The sliding puzzle against known counts of positions by distance, and solved by a search."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
import jaxmcts
from envs import SlidingPuzzle
from tests.envs import playing

LEFT, UP, RIGHT, DOWN = range(4)
# Positions by the moves they are from the solved one, the hole in a corner; the last is OEIS A089473.
DISTANCES = {
    (2, 2): [1, 2, 2, 2, 2, 2, 1],
    (2, 3): [1, 2, 3, 5, 6, 7, 10, 12, 12, 16, 23, 25, 28, 39, 44, 40, 29, 21, 18, 12, 6, 1],
    (3, 3): [
        *(1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485, 5638, 9529, 10878, 16993),
        *(17110, 23952, 20224, 24047, 15578, 14560, 6274, 3910, 760, 221, 2),
    ],
}


def _running(env: SlidingPuzzle, boards: Any) -> Any:
    """States with these boards [N, cells] in running games, the solved one too."""
    count = len(boards)
    flags = jnp.zeros(count, bool)
    return jax.tree.map(jnp.asarray, envs.puzzle.PuzzleState(
        board=boards, to_play=jnp.zeros(count, jnp.int32), terminated=flags, truncated=flags,
        rewards=jnp.zeros((count, 1)), moves=jnp.zeros(count, jnp.int32),
    ))  # fmt: skip


@functools.partial(jax.jit, static_argnums=0)
def _step_all(env: SlidingPuzzle, boards: jax.Array) -> tuple[jax.Array, jax.Array]:
    states = _running(env, boards)
    four = jnp.arange(4, dtype=jnp.int32)
    after = jax.vmap(jax.vmap(env.step, (None, 0)), (0, None))(states, four)
    return after.board, jax.vmap(env.legal_action_mask)(states)


@functools.cache
def layers(env: SlidingPuzzle, chunk: int = 4096) -> list[np.ndarray]:
    """The positions at each distance from the solved one, [N, cells] each, by steps of the game."""
    cells = env.rows * env.columns
    weights = cells ** np.arange(cells, dtype=np.int64)
    frontier = np.roll(np.arange(cells, dtype=np.uint8), -1)[None]
    known, found = frontier @ weights, []
    while len(frontier):
        found.append(frontier)
        step = functools.partial(_step_all, env)
        reached, masks = playing.in_chunks(step, frontier, size=64 if len(frontier) <= 64 else chunk)
        boards = reached[masks]
        keys, first = np.unique(boards @ weights, return_index=True)
        new = ~np.isin(keys, known)
        frontier, known = boards[first[new]], np.concatenate([known, keys[new]])
    return found


@pytest.mark.parametrize(("rows", "columns"), list(DISTANCES))
def test_positions_by_distance_are_as_known(rows: int, columns: int) -> None:
    found = layers(SlidingPuzzle(rows, columns))
    assert [len(layer) for layer in found] == DISTANCES[rows, columns]
    if (rows, columns) == (3, 3):
        assert sum(map(len, found)) == 181_440 and len(found) - 1 == 31


def test_on_3x2_the_counts_are_those_of_2x3() -> None:
    assert [len(layer) for layer in layers(SlidingPuzzle(3, 2))] == DISTANCES[2, 3]


def test_every_solvable_start_is_as_likely_and_no_other_comes() -> None:
    env = SlidingPuzzle(2, 2)
    draws = 11_000
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), draws))
    assert not states.terminated.any() and not states.moves.any()
    boards, counts = np.unique(np.asarray(states.board), axis=0, return_counts=True)
    known = {tuple(board) for layer in layers(env)[1:] for board in layer.tolist()}
    assert {tuple(board) for board in boards.tolist()} == known
    assert ((counts - 1000) ** 2 / 1000).sum() < 29.6  # 10 degrees of freedom: 0.1 % of right ones are beyond


def test_starts_of_larger_boards_can_be_solved() -> None:
    env = SlidingPuzzle(2, 3)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 3000))
    known = {tuple(board) for layer in layers(env)[1:] for board in layer.tolist()}
    assert {tuple(board) for board in np.asarray(states.board).tolist()} == known


@pytest.mark.parametrize("scramble", [2, 5])
def test_a_scrambled_start_is_no_further_than_its_moves(scramble: int) -> None:
    env = SlidingPuzzle(2, 3, scramble=scramble)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 500))
    known = {tuple(b): d for d, layer in enumerate(layers(SlidingPuzzle(2, 3))[: scramble + 1]) for b in layer.tolist()}
    distances = {known[tuple(board)] for board in np.asarray(states.board).tolist()}
    assert distances == set(range(2 - scramble % 2, scramble + 1, 2))


def test_tiles_slide_the_way_the_moves_are_called() -> None:
    env = SlidingPuzzle()
    state = envs.from_text(env, "1 2 3\n4 . 5\n7 8 6")
    boards = [envs.to_text(env, env.step(state, action)).splitlines()[:3] for action in range(4)]
    assert boards[LEFT] == ["1 2 3", "4 5 .", "7 8 6"]
    assert boards[UP] == ["1 2 3", "4 8 5", "7 . 6"]
    assert boards[RIGHT] == ["1 2 3", ". 4 5", "7 8 6"]
    assert boards[DOWN] == ["1 . 3", "4 2 5", "7 8 6"]
    solved: Any = env.step(env.step(state, LEFT), UP)
    assert solved.terminated and solved.rewards.tolist() == [1] and solved.moves == 2


def test_a_slide_of_no_tile_loses_and_the_last_allowed_move_cuts_short() -> None:
    env = SlidingPuzzle(2, 2, max_moves=2)
    state = envs.from_text(env, ". 1\n3 2")
    assert env.legal_action_mask(state).tolist() == [True, True, False, False]
    wrong = env.step(state, DOWN)
    assert wrong.terminated and wrong.rewards.tolist() == [-1] and wrong.board.tolist() == [0, 1, 3, 2]
    back = env.step(env.step(state, LEFT), RIGHT)
    assert back.truncated and not back.terminated and not env.legal_action_mask(back).any()
    solved: Any = env.step(env.step(state, LEFT), UP)
    assert solved.terminated and not solved.truncated


# --- Search


def _uniform(params: Any, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
    del params, keys
    return jnp.zeros((len(state.to_play), 4)), jnp.zeros(len(state.to_play))


@pytest.mark.parametrize("name", ["gumbel", pytest.param("alphazero", marks=pytest.mark.slow)])
def test_a_search_solves_every_position_near_the_goal_in_the_fewest_moves(name: str) -> None:
    env = SlidingPuzzle(2, 3)
    model = jaxmcts.model_from_env(env, _uniform, gamma=0.9)
    near = layers(env)[1:7]
    states = _running(env, np.concatenate(near))
    fewest = np.repeat(np.arange(1, 7), [len(layer) for layer in near])

    @jax.jit
    def ply(states: Any, key: jax.Array) -> Any:
        if name == "gumbel":
            out = jaxmcts.gumbel_policy((), key, states, model, num_simulations=512, gumbel_scale=0.0)
        else:
            out = jaxmcts.alphazero_policy(
                (), key, states, model, num_simulations=512, temperature=0.0, dirichlet_fraction=0.0
            )
        return jax.vmap(env.step)(states, out.action)

    solved_after = np.zeros(len(fewest), int)
    for move in range(1, 9):
        states = ply(states, jax.random.key(move))
        solved_after[(solved_after == 0) & np.asarray(states.rewards[:, 0] > 0)] = move
    assert (solved_after[fewest <= 5] == fewest[fewest <= 5]).all()
    assert (solved_after > 0).mean() > 0.9


# --- Text and pictures


def test_what_cannot_be_solved_is_refused() -> None:
    env = SlidingPuzzle()
    for text, message in [
        ("1 2 3\n4 5 6\n8 7 .", "cannot be solved"),
        ("1 2 3\n4 5 6\n8 8 .", "expected each from 0, the hole, to 8 once"),
        ("1 2 3\n4 5 6", r"rows of lengths \[3, 3\], expected 3 of 3"),
        ("1 2 3\n4 5 6\n7 8 9", "expected each from 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            envs.from_text(env, text)


def test_tiles_of_two_digits_are_right_aligned() -> None:
    env = SlidingPuzzle(3, 4)
    text = " 1  2  3  4\n 5  6  .  8\n 9 10  7 11\nto play"
    assert envs.to_text(env, envs.from_text(env, text)) == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1}, "`rows` is 1, expected an integer from 2 to 8"),
        ({"columns": 9}, "`columns` is 9, expected an integer from 2 to 8"),
        ({"scramble": 0}, "`scramble` is 0, expected an integer from 1"),
        ({"max_moves": 0}, "`max_moves` is 0, expected an integer from 1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.make("sliding_puzzle", **options)
