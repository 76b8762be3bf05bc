"""2048 beside pgx move by move, exact values by dynamic programming over the game's own odds, and known traps."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

import envs
import jaxmcts
from envs import Twenty48
from tests.envs import playing

ENV = Twenty48()
LEFT, UP, RIGHT, DOWN = range(4)


def slide(line: list[int], action: int) -> tuple[list[int], float]:
    """Slide one line, which lies along the action's axis in the middle of a board."""
    board = np.zeros((len(line), len(line)), int)
    board[1] = line
    board = board if action in (LEFT, RIGHT) else board.T
    env = Twenty48(len(line), len(line))
    after = env.decide(env.arrange(board), action)
    labels = np.asarray(env.labels(after))
    return (labels[1] if action in (LEFT, RIGHT) else labels[:, 1]).tolist(), float(after.rewards[0])


@pytest.mark.parametrize(
    ("line", "slid", "reward"),
    [
        ([2, 2, 4, 0], [4, 4, 0, 0], 4),  # what has merged does not merge again
        ([2, 2, 2, 2], [4, 4, 0, 0], 8),
        ([4, 2, 2, 0], [4, 4, 0, 0], 4),
        ([2, 2, 2, 0], [4, 2, 0, 0], 4),  # at the wall first
        ([0, 2, 0, 2], [4, 0, 0, 0], 4),
        ([2, 0, 4, 2], [2, 4, 2, 0], 0),
        ([0, 0, 0, 2], [2, 0, 0, 0], 0),
        ([8, 8, 16, 32], [16, 16, 32, 0], 16),
        ([32768, 32768, 0, 65536], [65536, 65536, 0, 0], 65536),
        ([65536, 65536, 0, 0], [131072, 0, 0, 0], 131072),
    ],
)
def test_a_line_slides_and_merges_once(line: list[int], slid: list[int], reward: float) -> None:
    for action in (LEFT, UP):
        assert slide(line, action) == (slid, reward)
    for action in (RIGHT, DOWN):
        assert slide(line[::-1], action) == (slid[::-1], reward)


def test_nothing_wraps_around_at_the_largest_tiles() -> None:
    env = Twenty48(5, 6)
    board = np.zeros((5, 6), int)
    board[4, :2] = 2**30
    after = env.decide(env.arrange(board), LEFT)
    assert env.labels(after)[4].tolist() == [2**31, 0, 0, 0, 0, 0] and after.rewards[0] == 2.0**31
    assert np.asarray(env.observe(after))[4, 0].argmax() == 31 == env.observation_shape[-1] - 1


# --- Beside pgx


@functools.cache
def _pgx_games(games: int, plies: int) -> Any:
    """Random games of pgx: boards [T + 1, G, 16], masks, moves [T, G], rewards and ends."""
    env = pgx.make("2048")

    @jax.jit
    def play(key: jax.Array) -> Any:
        def ply(states: Any, key: jax.Array) -> Any:
            move_key, step_key = jax.random.split(key)
            moves = playing.draw(states.legal_action_mask, move_key)
            after = jax.vmap(env.step)(states, moves, jax.random.split(step_key, games))
            return after, (after, moves)

        start = jax.vmap(env.init)(jax.random.split(key, games))
        _, (rest, moves) = jax.lax.scan(ply, start, jax.random.split(key, plies))
        return jax.tree.map(lambda first, x: jnp.concatenate([first[None], x]), start, rest), moves

    return jax.device_get(play(jax.random.key(5)))


def _states(exponents: np.ndarray) -> envs.State:
    """Our states of boards [N, R, C] of exponents; running ones, as they are given."""
    columns = np.arange(exponents.shape[-1], dtype=np.uint32)
    board = (exponents.astype(np.uint32) << 5 * columns).sum(axis=-1, dtype=np.uint32)
    zeros = np.zeros(len(board))
    return envs.State(
        board=jnp.asarray(board),
        to_play=jnp.asarray(zeros, jnp.int32),
        terminated=jnp.asarray(zeros, bool),
        truncated=jnp.asarray(zeros, bool),
        rewards=jnp.zeros((len(board), 1), jnp.float32),
    )


@pytest.mark.parametrize(
    ("games", "plies"), [(48, 192), pytest.param(1800, 256, marks=pytest.mark.slow)]
)  # 200,000 plies
def test_pgx_agrees_at_every_ply(games: int, plies: int) -> None:
    theirs, moves = _pgx_games(games, plies)
    live = ~theirs.terminated[:-1]
    before, after = theirs._board[:-1][live], theirs._board[1:][live].reshape(-1, 4, 4)
    states = _states(before.reshape(-1, 4, 4))
    decided = jax.jit(jax.vmap(ENV.decide))(states, moves[live])
    slid = np.asarray(jax.jit(jax.vmap(ENV._exponents))(decided))
    # One tile more, a 2 or a 4, on a cell that the slide left empty: that is the outcome.
    new = after != slid
    assert (new.sum(axis=(1, 2)) == 1).all() and (slid[new] == 0).all() and np.isin(after[new], [1, 2]).all()
    outcomes = (2 * np.nonzero(new.reshape(-1, 16))[1] + after[new] - 1).astype(np.int32)
    assert (np.take_along_axis(jax.jit(jax.vmap(ENV.odds))(decided), outcomes[:, None], axis=1) > 0).all()
    happened = jax.jit(jax.vmap(ENV.happen))(decided, outcomes)
    np.testing.assert_array_equal(jax.jit(jax.vmap(ENV._exponents))(happened), after)
    np.testing.assert_array_equal(happened.rewards, theirs.rewards[1:][live])
    ended = theirs.terminated[1:][live]
    np.testing.assert_array_equal(happened.terminated, ended)
    masks = jax.jit(jax.vmap(ENV.legal_action_mask))(happened)
    np.testing.assert_array_equal(masks, theirs.legal_action_mask[1:][live] & ~ended[:, None])
    seen = jax.jit(jax.vmap(ENV.observe))(happened)
    np.testing.assert_array_equal(seen, theirs.observation[1:][live][..., :18])
    assert ended.sum() > games / 2


def test_a_move_commutes_with_every_symmetry() -> None:
    theirs, moves = _pgx_games(48, 192)
    boards = theirs._board[:-1][::8].reshape(-1, 4, 4)
    moves = moves[::8].reshape(-1)
    decide = jax.jit(jax.vmap(ENV.decide))
    slid = np.asarray(jax.jit(jax.vmap(ENV._exponents))(decide(_states(boards), moves)))
    assert len(ENV.symmetries) == 8 and len(Twenty48(2, 3).symmetries) == 4
    for symmetry in ENV.symmetries:
        turned = symmetry.observation(boards[..., None])[..., 0]
        image = np.argsort(symmetry.policy(np.arange(4)))[moves].astype(np.int32)
        after = np.asarray(jax.jit(jax.vmap(ENV._exponents))(decide(_states(turned), image)))
        np.testing.assert_array_equal(after, symmetry.observation(slid[..., None])[..., 0])


# --- Exact values


@functools.partial(jax.jit, static_argnums=0)
def _unfold(env: Twenty48, states: envs.State) -> Any:
    outcomes = jnp.arange(env.num_outcomes, dtype=jnp.int32)

    def one(state: envs.State, action: jax.Array) -> Any:
        after = env.decide(state, action)
        happened = jax.vmap(env.happen, (None, 0))(after, outcomes)
        return after.rewards[0], jnp.where(after.terminated, 0, env.odds(after)), happened.board

    four = jnp.arange(4, dtype=jnp.int32)
    return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(states, four), jax.vmap(env.legal_action_mask)(states)


def _key(env: Twenty48, boards: np.ndarray) -> np.ndarray:
    return boards.astype(np.int64) @ (1 << 5 * env.columns * np.arange(env.rows))


def _start_odds(env: Twenty48) -> dict[int, float]:
    """The probability of each start, from the empty board by two outcomes."""
    empty = _states(np.zeros((1, env.rows, env.columns), int))
    odds: dict[int, float] = {}
    states, weights = empty, np.ones(1)
    for _ in range(2):
        outcomes = np.arange(env.num_outcomes, dtype=np.int32)
        weights = (weights[:, None] * np.asarray(jax.jit(jax.vmap(env.odds))(states), np.float64)).reshape(-1)
        states = jax.jit(jax.vmap(jax.vmap(env.happen, (None, 0)), (0, None)))(states, outcomes)
        states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[weights > 0], states)  # noqa: B023
        weights = weights[weights > 0]
    for key, weight in zip(_key(env, np.asarray(states.board)).tolist(), weights, strict=True):
        odds[key] = odds.get(key, 0) + weight
    return odds


def solve(env: Twenty48, chunk: int = 1024) -> tuple[float, int]:
    """Give the optimal expected score from a random start, and the number of positions."""
    start = _start_odds(env)
    # Every step adds 2 or 4 to the sum of the tiles: positions of one sum depend on those of the next two alone.
    sums: dict[int, set[int]] = {}
    for key in start:
        sums.setdefault(_sum(key), set()).add(key)
    layers: list[tuple[int, np.ndarray, Any]] = []
    total = min(sums)
    while sums:
        if total in sums:
            keys = np.array(sorted(sums.pop(total)), np.int64)
            layers.append((total, keys, _expand(env, keys, chunk)))
            _, odds, after, _ = layers[-1][2]
            for four in (0, 1):
                reached = np.unique(after[..., four::2][odds[..., four::2] > 0])
                if len(reached):
                    sums.setdefault(total + 2 + 2 * four, set()).update(reached.tolist())
        total += 2
    values: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for total, keys, (rewards, odds, after, masks) in reversed(layers):
        following = np.zeros(after.shape)
        for four in (0, 1):
            if total + 2 + 2 * four in values:
                known, worth = values[total + 2 + 2 * four]
                at = np.clip(np.searchsorted(known, after[..., four::2]), 0, len(known) - 1)
                following[..., four::2] = worth[at]
        q = np.where(masks, rewards + (odds * following).sum(axis=-1), -np.inf)
        values[total] = keys, np.where(masks.any(axis=1), q.max(axis=1), 0)
    best = sum(p * values[_sum(key)][1][np.searchsorted(values[_sum(key)][0], key)] for key, p in start.items())
    return float(best), sum(len(keys) for _, keys, _ in layers)


def _sum(key: int) -> int:
    tiles = [(key >> i) & 31 for i in range(0, 60, 5)]
    return sum(1 << tile for tile in tiles if tile)


def _expand(env: Twenty48, keys: np.ndarray, chunk: int) -> Any:
    """Rewards [N, 4], odds [N, 4, O], keys of what follows [N, 4, O] and masks [N, 4]."""
    exponents = ((keys[:, None] >> 5 * np.arange(env.rows * env.columns)) & 31).reshape(-1, env.rows, env.columns)
    (rewards, odds, boards), masks = playing.in_chunks(lambda x: _unfold(env, _states(x)), exponents, size=chunk)
    return rewards, odds.astype(np.float64), _key(env, boards), masks


def test_optimal_play_on_2x2_is_worth_what_is_published() -> None:
    best, _ = solve(Twenty48(2, 2), chunk=64)
    assert best == pytest.approx(66.964149, abs=1e-4)


def test_optimal_play_on_2x3_is_worth_what_is_published() -> None:
    best, _ = solve(Twenty48(2, 3))
    assert best == pytest.approx(480.258272, abs=1e-3)


# --- Chance


def test_tiles_come_up_by_their_odds() -> None:
    state = ENV.arrange(np.array([[2, 0, 4, 8], [16, 32, 64, 128], [2, 4, 8, 0], [0, 0, 2, 4]]))
    after = ENV.decide(state, LEFT)
    odds = np.asarray(ENV.odds(after))
    assert (odds > 0).sum() == 8 and odds[odds > 0].tolist() == pytest.approx([0.225, 0.025] * 4)
    draws = 40_000
    drawn = jax.jit(jax.vmap(ENV._draw, (None, 0)))(after, jax.random.split(jax.random.key(0), draws))
    counts = np.bincount(drawn, minlength=ENV.num_outcomes)
    assert not counts[odds == 0].any()
    chi2 = ((counts - draws * odds)[odds > 0] ** 2 / (draws * odds[odds > 0])).sum()
    assert chi2 < 24.3  # 7 degrees of freedom: 0.1 % of right ones are beyond


@pytest.mark.parametrize("env", [Twenty48(2, 3), Twenty48(5, 6)], ids=repr)
def test_starts_come_by_their_odds(env: Twenty48) -> None:
    draws = 20_000
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(1), draws))
    labels = np.asarray(jax.vmap(env.labels)(states))
    assert ((labels > 0).sum(axis=(1, 2)) == 2).all() and not states.terminated.any()
    cells = env.rows * env.columns
    on_cell, fours = (labels > 0).mean(axis=0), (labels == 4).sum() / (2 * draws)
    assert np.max(abs(on_cell - 2 / cells)) < 4 * (2 / cells / draws) ** 0.5
    assert abs(fours - 0.1) < 4 * (0.09 / (2 * draws)) ** 0.5


# --- The shell


def test_a_move_that_moves_nothing_ends_the_game() -> None:
    state = ENV.arrange(np.array([[2, 4, 0, 0], [4, 0, 0, 0], [0] * 4, [0] * 4]))
    assert ENV.legal_action_mask(state).tolist() == [False, False, True, True]
    after = ENV.step(state, UP, jax.random.key(0))
    assert after.terminated and after.rewards.tolist() == [-1]
    np.testing.assert_array_equal(after.board, state.board)


def test_a_full_board_without_pairs_is_the_end() -> None:
    board = np.array([[2, 4, 2, 4], [4, 2, 4, 2], [2, 4, 2, 4], [4, 2, 4, 2]])
    assert not ENV.arrange(np.where(np.arange(16).reshape(4, 4) == 5, 0, board)).terminated
    assert ENV.arrange(board).terminated and not ENV.legal_action_mask(ENV.arrange(board)).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1}, "`rows` is 1, expected an integer from 2 to 6"),
        ({"columns": 7}, "`columns` is 7, expected an integer from 2 to 6"),
        ({"rows": 4.0}, "`rows` is 4.0, expected int, as its default 4 is"),
        ({"rows": 6, "columns": 6}, "`rows` x `columns` is 36 cells, expected at most 30"),
    ],
)
def test_sizes_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.make("2048", **options)


# --- Search


def _no_opinion(params: Any, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
    del params, keys
    return jnp.zeros((len(state.to_play), 4)), jnp.zeros(len(state.to_play))


@pytest.mark.slow
def test_a_search_that_samples_its_steps_plays_better_than_chance_and_below_the_optimum() -> None:
    """The tree holds one drawn tile for each move and plans as if it were certain: a biased search, but no bad one."""
    env, games = Twenty48(2, 3), 64
    model = jaxmcts.model_from_env(env, _no_opinion)

    @jax.jit
    def ply(states: Any, key: jax.Array) -> Any:
        search_key, step_key = jax.random.split(key)
        out = jaxmcts.gumbel_policy((), search_key, states, model, num_simulations=16)
        return jax.vmap(env.step)(states, out.action, jax.random.split(step_key, games))

    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), games))
    searched, move = np.zeros(games), 0
    while not states.terminated.all():
        move += 1
        states = ply(states, jax.random.key(move))
        searched += states.rewards[:, 0]
    at_random = playing.random_moves(env, games, 100, seed=0)[0].rewards.sum(axis=(0, 2))
    assert 1.3 * at_random.mean() < searched.mean() < 480


# --- Text and pictures


TEXT = """
   2    .    4    .
   .    8    .    .
   .  128    .    2
1024    .    .    .
to play
""".strip("\n")


def test_tiles_are_written_one_below_the_other_and_read_back() -> None:
    state = envs.from_text(ENV, TEXT)
    assert np.asarray(ENV.labels(state))[:, 0].tolist() == [2, 0, 0, 1024]
    assert envs.to_text(ENV, state) == TEXT
    limited = envs.TimeLimit(ENV, 5)
    assert envs.to_text(limited, limited.init(jax.random.key(0))).count(".") == 14


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 . 4\n" * 4, r"rows of lengths \[3, 3, 3, 3\], expected 4 of 4"),
        ("2 . 4 6\n" + ". . . .\n" * 3, "6 is no tile of 2048"),
        ("2 . 4 1\n" + ". . . .\n" * 3, "1 is no tile of 2048"),
        (". . . .\n" * 4, "There is no tile"),
        ("99999999999999999999 . . .\n" + ". . . .\n" * 3, r"rows of lengths \[4, 4, 4\]"),
        ("262144 . . .\n" + ". . . .\n" * 3, "Tiles as large as 262144 cannot lie so on 16 cells"),
        ("131072 131072 . .\n" + ". . . .\n" * 3, "Tiles as large as 131072 cannot lie so"),
        ("2 . . .\n" + ". . . .\n" * 3 + "game over", "says 'game over', but on its board it is 'to play'"),
    ],
)
def test_what_cannot_be_a_position_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.from_text(ENV, text)
