"""What holds for every game: the contract itself, how it behaves under JAX, resets and time limits."""

import dataclasses
import functools
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.base import auto_reset
from envs.check import check_env
from envs.time_limit import TimeLimit
from tests.envs import playing

LARGE = ("hex", "go", "othello", "mnk", "2048", "sliding_puzzle")  # smaller ones stand for them below
GAMES = [
    *(envs.make(name) for name in envs.names() if name not in LARGE),
    *(pytest.param(envs.make(name), marks=pytest.mark.slow) for name in LARGE),
    envs.make("go", size=5),
    envs.make("othello", size=4),
    envs.make("sliding_puzzle", rows=2, columns=3),
    envs.make("2048", rows=2, columns=3),
    envs.make("mnk", rows=4, columns=5, connect=3),
    envs.make("connect_four", rows=4, columns=4),
    envs.make("connect_four", rows=12, columns=5, connect=5),
    envs.make("hex", size=3, swap=True),
    TimeLimit(envs.make("connect_four"), 20),
]
every_game = pytest.mark.parametrize("env", GAMES, ids=repr)
TTT = envs.make("tic_tac_toe")


@every_game
def test_contract(env: Any) -> None:
    check_env(env)


@every_game
def test_no_dtype_depends_on_the_key(env: Any) -> None:
    typed, raw = jax.random.key(0), jax.random.PRNGKey(0)
    action = jnp.int32(0)
    chance = isinstance(env, (envs.ChanceGame, envs.SlidingPuzzle))  # there a key is needed
    states = [env.step(env.init(key), action, key) for key in ((typed, raw) if chance else (typed, raw, None))]
    for state in states[1:]:
        jax.tree.map(np.testing.assert_array_equal, state, states[0])
    bare = env.step(env.init(typed), 0, typed) if chance else env.step(env.init(), 0)
    jax.tree.map(np.testing.assert_array_equal, bare, states[0])


@every_game
def test_games_of_equal_options_share_compiled_programs(env: Any) -> None:
    traces = []

    @jax.jit
    def step(state: Any, action: jax.Array) -> Any:
        traces.append(1)
        return dataclasses.replace(env).step(state, action, jax.random.key(0))

    state = env.init(jax.random.key(0))
    for action in (jnp.int32(0), jnp.int32(1), jnp.int32(0)):
        state = step(state, action)
    assert len(traces) == 1
    assert dataclasses.replace(env) == env and len({env, dataclasses.replace(env)}) == 1


@pytest.mark.parametrize("env", GAMES[:2], ids=repr)
def test_c068_a_batch_of_one_is_no_special_case(env: Any) -> None:
    four, masks, moves = playing.random_moves(env, 4, 8, seed=0)
    one = jax.tree.map(lambda x: x[0, :1], four)
    step = jax.jit(jax.vmap(env.step))
    for ply in range(8):
        one = step(one, moves[ply, :1])
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[ply + 1, :1]), one, four)  # noqa: B023
    assert jax.vmap(env.observe)(one).shape == (1, *env.observation_shape)
    np.testing.assert_array_equal(jax.vmap(env.legal_action_mask)(one), masks[8, :1])


@every_game
def test_symmetries_can_be_drawn_by_lot_on_the_device(env: Any) -> None:
    """As a trainer does: one `switch` over a batch gives what NumPy gives outside."""
    rng = np.random.default_rng(0)
    seen = rng.random((3, *env.observation_shape)).astype(np.float32)
    policy = rng.random((3, env.num_actions)).astype(np.float32)
    observe, move = zip(*env.symmetries, strict=True)
    turn = jax.jit(lambda i: (jax.lax.switch(i, observe, seen), jax.lax.switch(i, move, policy)))
    for index in range(len(env.symmetries)):
        turned = turn(index)
        np.testing.assert_array_equal(turned[0], observe[index](seen))
        np.testing.assert_array_equal(turned[1], move[index](policy))


def test_states_are_small() -> None:
    states = {name: jax.eval_shape(envs.make(name).init, jax.random.key(0)) for name in envs.names()}
    sizes = {name: sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state)) for name, state in states.items()}
    store = 2 * 4 * (2 * 9 * 9 + 6)  # of Go's superko: a hash of every board, of 21 at once
    assert sizes.pop("go") - store == 43
    assert sizes == {
        "tic_tac_toe": 18, "connect_four": 30, "hex": 135, "othello": 30, "mnk": 78, "2048": 26, "pig": 30,
        "sliding_puzzle": 23,
    }  # fmt: skip


@pytest.mark.parametrize("action", [1.0, True, jnp.float32(2)])
def test_an_action_must_be_an_integer(action: Any) -> None:
    with pytest.raises(TypeError, match="`action` has dtype"):
        TTT.step(TTT.init(), action)


def test_one_game_takes_one_action() -> None:
    with pytest.raises(TypeError, match=r"`action` has shape \(2,\), expected one action"):
        TTT.step(TTT.init(), jnp.array([1, 2]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_actions_of_any_integer_type_are_the_same(dtype: Any) -> None:
    for env, moves in ((TTT, [8, 0]), (envs.make("connect_four"), [6, 6])):
        state = env.init()
        for move in moves:
            state = env.step(state, dtype(move))
        jax.tree.map(np.testing.assert_array_equal, state, playing.play(env, moves))


def test_make_suggests_the_nearest_name_and_lists_options() -> None:
    with pytest.raises(ValueError, match="Unknown game 'conect_four': known games are connect_four, "):
        envs.make("conect_four")
    with pytest.raises(ValueError, match="Unknown option 'row' of game 'connect_four': its options are rows, "):
        envs.make("connect_four", row=5)
    with pytest.raises(ValueError, match="it has no options"):
        envs.make("tic_tac_toe", size=4)


@pytest.mark.parametrize("name", ["connect_four(5)", "connect_four(**{})", "connect_four(=)", "hex(size=5, size=6)"])
def test_make_says_how_options_are_written(name: str) -> None:
    with pytest.raises(ValueError, match=r"options in .* cannot be read: write each once, as in"):
        envs.make(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "go(superko=situational)",
            r"`superko` is written as situational .*: text stands in quotes, superko='situational'",
        ),
        ("hex(size=3, swap=true)", "`swap` is written as true in the name, which is no value: write swap=True"),
        ("hex(size=2 + 3)", r"`size` is written as 2 \+ 3 .*: write a number, True, False, None or text in quotes"),
        ("hex(size=int(3))", r"`size` is written as int\(3\) in the name, which is no value"),
    ],
)
def test_make_says_what_it_read_and_how_a_value_is_written(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.make(name)


def test_make_takes_no_option_twice() -> None:
    with pytest.raises(ValueError, match=r"options \['size'\] of game 'hex' are given in the name and beside it"):
        envs.make("hex(size=5)", size=6)


def test_make_reads_options_in_the_name() -> None:
    assert envs.make("connect_four(rows=5, columns=6)") == envs.make("connect_four", rows=5, columns=6)
    assert envs.make("connect_four(rows=5)", connect=3) == envs.make("connect_four", rows=5, connect=3)
    assert envs.make(" tic_tac_toe() ") == envs.make("tic_tac_toe")


def test_make_gives_equal_games() -> None:
    assert envs.make("connect_four") == envs.make("connect_four", rows=6, columns=7, connect=4)
    assert envs.make("connect_four") != envs.make("connect_four", rows=5)


# One fresh interpreter for all questions, since each start costs seconds.
FRESH = """
import sys
import jax
import envs, envs.check, envs.render, envs.time_limit
assert "pgx" not in sys.modules
assert not jax.live_arrays(), jax.live_arrays()
assert jax.config.jax_enable_x64
import numpy as np
key = jax.random.key(0)
for name in envs.names():
    env = envs.make(name)
    state = jax.eval_shape(env.step, jax.eval_shape(env.init, key), np.int64(1), key)
    print([str(x.dtype) for x in jax.tree.leaves(state)], jax.eval_shape(env.observe, state).dtype)
    envs.check_types(env)
env = envs.make("tic_tac_toe")
for action in (2**32, -(2**32), 2**63 - 1):
    assert env.step(env.init(), np.int64(action)).terminated, action
envs.check_env(env, num_games=4)
"""


def test_c070_dtypes_are_the_same_in_64_bit_mode_and_importing_makes_no_array() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH],
        env=os.environ | {"JAX_ENABLE_X64": "1", "JAX_NUMPY_DTYPE_PROMOTION": "strict"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    for name, line in zip(envs.names(), run.stdout.splitlines(), strict=True):
        state = jax.eval_shape(envs.make(name).init, jax.random.key(0))
        assert line == f"{[str(x.dtype) for x in jax.tree.leaves(state)]} float32"


# --- Resets and limits


@functools.cache
def _reset(env: Any) -> Any:
    return jax.jit(jax.vmap(lambda *args: auto_reset(env, *args)))


def test_c095_a_game_after_a_finished_one_is_fresh() -> None:
    env, keys = TTT, jax.random.split(jax.random.key(0), 2)
    short, long = [0, 3, 1, 4, 2], [0, 1, 2, 3, 5]
    states = jax.vmap(env.init)(keys)
    for moves in zip(short, long, strict=True):
        after, states = _reset(env)(states, jnp.array(moves), keys)
    fresh = env.init()
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[0], y), states, fresh)
    assert env.legal_action_mask(jax.tree.map(lambda x: x[0], states)).all()
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[1], y[1]), states, after)
    # The result is not lost: it is in what the step gave.
    assert after.terminated.tolist() == [True, False]
    np.testing.assert_array_equal(after.rewards[0], [1, -1])


def test_c098_the_last_position_is_there_beside_the_next_first_one() -> None:
    env = TTT
    state, stones = env.init(), []
    for move in [0, 3, 1, 4, 2]:
        stones.append(int(env.observe(state).sum()))
        after, state = auto_reset(env, state, jnp.int32(move), jax.random.key(0))
    assert stones == [0, 1, 2, 3, 4]
    assert env.observe(after).sum() == 5 and env.observe(state).sum() == 0


@dataclasses.dataclass(frozen=True)
class _Lot(envs.TicTacToe):
    """Tic-tac-toe where the lot decides who begins."""

    def _start(self, key: jax.Array | None) -> envs.State:
        assert key is not None
        return dataclasses.replace(super()._start(key), to_play=jax.random.bernoulli(key).astype(jnp.int32))


def test_c097_every_reset_draws_anew() -> None:
    env, games = _Lot(), 1000
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), games))
    done = dataclasses.replace(states, terminated=jnp.ones(games, bool))
    keys = jax.random.split(jax.random.key(1), games)
    _, following = _reset(env)(done, jnp.zeros(games, jnp.int32), keys)
    assert not following.terminated.any()
    assert 0.45 < following.to_play.mean() < 0.55


def test_c096_the_ply_count_starts_over_with_every_game() -> None:
    env = TimeLimit(TTT, 9)
    games = [[0, 3, 1, 4, 2], [0, 1, 3, 4, 2, 8, 6], [0, 1, 2, 3, 5, 4, 7, 6, 8]]
    state, seen = env.init(), []
    for move in [move for game in games for move in game]:
        assert not state.truncated
        after, state = auto_reset(env, state, jnp.int32(move), jax.random.key(0))
        seen.append((bool(after.terminated), bool(after.truncated), int(state.plies)))
    ends = np.cumsum([len(game) for game in games]) - 1
    assert [i for i, (terminated, _, _) in enumerate(seen) if terminated] == ends.tolist()
    assert not any(truncated for _, truncated, _ in seen)
    assert [seen[i][2] for i in ends] == [0, 0, 0]


def test_c100_a_cut_game_is_truncated_and_a_decided_one_terminated() -> None:
    moves = [0, 3, 1, 4, 2]
    cut = playing.play(TimeLimit(TTT, 4), moves[:4])
    assert cut.truncated and not cut.terminated
    assert not TimeLimit(TTT, 4).legal_action_mask(cut).any() and not cut.rewards.any()
    decided = playing.play(TimeLimit(TTT, 5), moves)
    assert decided.terminated and not decided.truncated
    np.testing.assert_array_equal(decided.rewards, [1, -1])


def test_c072_plies_are_counted_past_127() -> None:
    env = TimeLimit(envs.make("connect_four", rows=20, columns=10, connect=20), 190)
    states, _, _ = playing.random_moves(env, 4, 195, seed=0)
    # Whoever still runs at ply 190 is cut there.
    assert states.truncated[190].all() and not states.truncated[189].any()
    assert states.plies.dtype == np.int32 and states.plies.max() == 190


def test_a_limit_must_allow_a_move() -> None:
    with pytest.raises(ValueError, match="`max_plies` is 0"):
        TimeLimit(TTT, 0)
