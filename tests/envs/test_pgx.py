"""Games of pgx as ours, beside pgx itself at every ply, and ours as pgx's."""

import copy
import dataclasses
import functools
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest
from pgx._src import api_test
from pgx.experimental import auto_reset

import envs
import jaxmcts
from envs.pgx import from_pgx, to_pgx
from tests.envs import playing

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _their_ranks() -> Iterator[None]:
    """Let arrays of different ranks meet, as they do in pgx's chess."""
    with jax.numpy_rank_promotion("allow"):
        yield


slow = pytest.mark.slow
GAMES = [
    ("tic_tac_toe", 10),
    ("connect_four", 43),
    pytest.param("2048", 60, marks=slow),
    pytest.param("backgammon", 300, marks=slow),
    pytest.param("animal_shogi", 120, marks=slow),
    pytest.param("gardner_chess", 120, marks=slow),
    pytest.param("othello", 70, marks=slow),
    pytest.param("hex", 122, marks=slow),
    pytest.param("go_9x9", 170, marks=slow),
    pytest.param("kuhn_poker", 5, marks=slow),
    pytest.param("sparrow_mahjong", 100, marks=slow),  # three players
    pytest.param("minatar-breakout", 200, marks=slow),
    pytest.param("chess", 120, marks=slow),
]


@functools.cache
def side_by_side(name: str, plies: int, games: int = 16) -> Any:
    """Play the same random moves, legal in pgx, with the same keys in both: states and looks [T + 1, G, ...]."""
    env, theirs = from_pgx(name), pgx.make(name)

    def look(ours: Any, other: Any) -> Any:
        return ours, jax.vmap(env.legal_action_mask)(ours), jax.vmap(env.observe)(ours), other

    def ply(states: Any, key: jax.Array) -> Any:
        move_key, step_key = jax.random.split(key)
        moves = playing.draw(states[1].legal_action_mask, move_key)
        keys = jax.random.split(step_key, games)
        after = jax.vmap(env.step)(states[0], moves, keys), jax.vmap(theirs.step)(states[1], moves, keys)
        return after, look(*after)

    @jax.jit
    def program(key: jax.Array) -> Any:
        keys = jax.random.split(key, games)
        start = jax.vmap(env.init)(keys), jax.vmap(theirs.init)(keys)
        start = start[0], jax.tree.map(jnp.asarray, start[1])
        rest = jax.lax.scan(ply, _strong(start), jax.random.split(key, plies))[1]
        return jax.tree.map(lambda first, x: jnp.concatenate([first[None], x]), look(*start), rest)

    return jax.device_get(program(KEY))


def _strong(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), tree)


@pytest.mark.parametrize(("name", "plies"), GAMES)
def test_pgx_itself_agrees_at_every_ply(name: str, plies: int) -> None:
    ours, masks, seen, theirs = side_by_side(name, plies)
    first, players = theirs.current_player[0], theirs.rewards.shape[-1]
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
    np.testing.assert_array_equal(ours.truncated, theirs.truncated)
    np.testing.assert_array_equal(ours.to_play, (theirs.current_player - first) % players)
    for player in range(players):
        id_there = np.broadcast_to((first + player) % players, ours.to_play.shape)
        reward = np.take_along_axis(theirs.rewards, id_there[..., None], axis=-1)[..., 0]
        np.testing.assert_array_equal(ours.rewards[..., player], reward)
    live = ~theirs.terminated
    np.testing.assert_array_equal(masks, theirs.legal_action_mask & live[..., None])
    np.testing.assert_array_equal(seen, theirs.observation.astype(np.float32))
    assert not ours.to_play[0].any() and (players == 1 or {*first.tolist()} == {*range(players)})
    assert live[1].any()


@slow
@pytest.mark.parametrize("name", ["tic_tac_toe", "2048", "backgammon", "animal_shogi", "othello", "sparrow_mahjong"])
def test_contract(name: str) -> None:
    envs.check_env(envs.make(f"pgx:{name}"), num_games=8, max_plies=2000)


def test_a_state_keeps_what_cannot_be_had_otherwise() -> None:
    def size(tree: Any) -> int:
        return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))

    for name, ours, theirs in (("connect_four", 199, 285), ("2048", 83, 578)):
        assert size(jax.eval_shape(from_pgx(name).init, KEY)) == ours
        assert size(jax.eval_shape(pgx.make(name).init, KEY)) == theirs


def test_equal_ids_are_equal_games_and_do_not_retrace() -> None:
    traces = []

    @functools.partial(jax.jit, static_argnums=0)
    def step(env: Any, state: Any, action: jax.Array) -> Any:
        traces.append(1)
        return env.step(state, action)

    state = envs.make("pgx:tic_tac_toe").init(KEY)
    for action in range(3):
        state = step(envs.make("pgx:tic_tac_toe"), state, jnp.int32(action))
    assert len(traces) == 1
    own = pgx.make("tic_tac_toe")
    assert from_pgx(own) == from_pgx(own) != from_pgx("tic_tac_toe")
    assert repr(from_pgx(own)) == "from_pgx('tic_tac_toe')" and from_pgx(own).name == "pgx:tic_tac_toe"


def test_what_pgx_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = from_pgx("2048")
    with pytest.raises(ValueError, match="Unknown game 'ches' of pgx: its games are chess, "):
        envs.make("pgx:ches")
    with pytest.raises(ValueError, match="Unknown option 'size' of game 'pgx:hex': it has no options"):
        envs.make("pgx:hex(size=5)")
    with pytest.raises(TypeError, match=r"expected the id of a game of pgx or a `pgx.Env`"):
        from_pgx(envs.make("hex"))
    with pytest.raises(TypeError, match="`init` of 'pgx:2048' came without a `key`"):
        jax.eval_shape(chance.init)
    with pytest.raises(TypeError, match="`step` of 'pgx:2048' came without a `key`"):
        jax.eval_shape(lambda key: chance.step(chance.init(key), 0), KEY)
    for wrong in ("hex", envs.TicTacToe, pgx.make("tic_tac_toe")):
        with pytest.raises(TypeError, match=r"`game` is .*, expected a game of ours"):
            to_pgx(wrong)
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ImportError, match="install it with `pip install pgx`"):
        from_pgx("chess")
    with pytest.raises(ValueError, match="install it with `pip install pgx`"):
        envs.make("pgx:chess")


def test_pictures_are_of_games_with_stones(monkeypatch: pytest.MonkeyPatch) -> None:
    env = from_pgx("tic_tac_toe")
    state = jax.jit(env.step)(jax.jit(env.init)(KEY), jnp.int32(4))
    assert envs.to_text(env, state) == ". . .\n. X .\n. . .\nO to play"
    # One of 2048, or of chess, would show something that means nothing.
    monkeypatch.setattr("envs.pgx._WITH_STONES", ())
    with pytest.raises(ValueError, match=r"'pgx:tic_tac_toe' is seen as \(3, 3, 2\) by 2 players, expected .* stones"):
        envs.to_svg(env, state)
    assert not from_pgx("2048").has_stones


@dataclasses.dataclass(frozen=True)
class _ByStones:
    """Judge Connect Four by where stones lie, rows counted from the bottom; the same for both games."""

    env: Any
    flipped: bool

    def __call__(self, params: Any, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
        seen = jax.vmap(self.env.observe)(state)
        seen = (seen[:, ::-1] if self.flipped else seen).reshape(len(keys), -1)
        weights = jax.random.normal(jax.random.key(5), (seen.shape[1], 8))
        out = jnp.tanh(seen @ weights)
        return out[:, :7], out[:, 7]


@pytest.mark.slow
def test_a_search_of_connect_four_is_the_same_in_ours_and_in_theirs() -> None:
    outputs = []
    for env, flipped in ((envs.make("connect_four"), False), (envs.make("pgx:connect_four"), True)):
        model = jaxmcts.model_from_env(env, _ByStones(env, flipped))

        @jax.jit
        def search(env: Any = env, model: Any = model) -> Any:
            keys = jax.random.split(KEY, 8)

            def ply(states: Any, moves: jax.Array) -> Any:
                return jax.vmap(env.step)(states, moves, keys), None

            moves = jax.random.randint(KEY, (6, 8), 0, 7)
            states, _ = jax.lax.scan(ply, jax.vmap(env.init)(keys), moves)
            return jaxmcts.uct_policy((), jax.random.key(1), states, model, num_simulations=48)

        outputs.append(search())
    ours, theirs = outputs
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_array_equal(ours.tree.visits, theirs.tree.visits)
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-6)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, atol=1e-6)


# --- Ours as pgx's


@pytest.mark.parametrize(
    "game",
    [
        envs.make("tic_tac_toe"),
        pytest.param(envs.make("connect_four"), marks=slow),
        pytest.param(envs.make("hex", size=4, swap=True), marks=slow),
        pytest.param(envs.TimeLimit(envs.make("tic_tac_toe"), 20), marks=slow),
    ],
    ids=repr,
)
def test_the_tests_of_pgx_pass(game: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its own helper takes the second axis of a mask, and of a single state there is none.
    monkeypatch.setattr(
        api_test, "act_randomly", lambda key, mask: jax.random.categorical(key, jnp.log(mask * 1.0), axis=-1)
    )
    api_test.api_test(to_pgx(game), 1)


def test_there_and_back_again() -> None:
    game = envs.make("tic_tac_toe")
    back, firsts = from_pgx(to_pgx(game)), set()
    step = jax.jit(back.step)
    for seed in range(4):
        ours: Any = game.init()
        there: Any = back.init(jax.random.key(seed))
        firsts.add(int(there.first))
        for move in (4, 0, 8, 2, 1, 7, 6, 3, 3):
            ours, there = game.step(ours, move), step(there, jnp.int32(move))
            assert (ours.to_play, ours.terminated) == (there.to_play, there.terminated)
            np.testing.assert_array_equal(ours.rewards, there.rewards)
            np.testing.assert_array_equal(game.legal_action_mask(ours), back.legal_action_mask(there))
            np.testing.assert_array_equal(game.observe(ours), back.observe(there))
    assert firsts == {0, 1}
    assert to_pgx(game) is to_pgx(envs.make("tic_tac_toe"))


def test_games_of_ours_go_on_under_their_reset() -> None:
    env = to_pgx(envs.TimeLimit(envs.make("tic_tac_toe"), 4))
    step = jax.jit(auto_reset(env.step, env.init))
    state, ends = env.init(KEY), []
    for ply in range(12):
        state = step(state, jnp.int32([0, 3, 1, 4][ply % 4]), jax.random.fold_in(KEY, ply))
        ends.append(bool(state.truncated))
        assert state.legal_action_mask.sum() == (9 if ends[-1] else 8 - ply % 4) and not state.terminated
    assert ends == [False, False, False, True] * 3
    assert "<svg" in state.to_svg()


def test_an_illegal_action_ends_it_as_in_pgx() -> None:
    env = to_pgx(envs.make("tic_tac_toe"))
    once = env.step(env.init(KEY), 4)
    after = env.step(once, 4)
    assert after.terminated and after.legal_action_mask.all()
    assert after.rewards[once.current_player] == -1 and after.rewards.sum() == 0
    assert not env.step(after, 0).rewards.any()


def test_games_of_ours_and_their_states_can_be_pickled_and_copied() -> None:
    env = to_pgx(envs.make("tic_tac_toe"))
    state = env.step(env.init(KEY), 4)
    for copied in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert type(copied) is type(state)
        jax.tree.map(np.testing.assert_array_equal, copied, state)
        jax.tree.map(np.testing.assert_array_equal, env.step(copied, 0), env.step(state, 0))
        assert copied.to_svg() == state.to_svg() and copied.env_id == "tic_tac_toe"
    assert pickle.loads(pickle.dumps(env)) is copy.deepcopy(env) is env
