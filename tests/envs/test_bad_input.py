"""Bad input to every game that has a name: each has a documented outcome or an error that says what to do."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs

every_game = pytest.mark.parametrize("name", envs.names())
KEY = jax.random.key(0)
HUGE = 10**9


# Boards that compile fast; the shell around them is the same.
SMALL: dict[str, dict[str, Any]] = {
    "hex": {"size": 3},
    "go": {"size": 2},
    "othello": {"size": 4},
    "mnk": {"rows": 3, "columns": 3, "connect": 3},
    "2048": {"rows": 2, "columns": 2},
}


@functools.cache
def game(name: str) -> tuple[Any, Any, Any]:
    """A game, its first state and its compiled step."""
    env = envs.make(name, **SMALL.get(name, {}))
    return env, jax.jit(env.init)(KEY), jax.jit(env.step)


def options(name: str) -> list[tuple[str, Any]]:
    """The options of a game with their defaults."""
    env = envs.make(name)
    return [(field.name, field.default) for field in dataclasses.fields(env) if field.init]  # type: ignore[arg-type]


CHOICES = [
    (name, option, default)
    for name in envs.names()
    for option, default in options(name)
    if isinstance(default, int | float | str)
]
every_option = pytest.mark.parametrize(
    ("name", "option", "default"), CHOICES, ids=[f"{name}-{option}" for name, option, _ in CHOICES]
)


@pytest.mark.parametrize("typo", ["", " ", "conect_four", "Hex!", "hexx", "hex(", "hex)", "(size=3)", "hex size=3"])
def test_a_name_that_is_none_is_answered_by_what_there_is(typo: str) -> None:
    with pytest.raises(ValueError, match=r"Unknown game .* known games are .*\(nearest first\)|cannot be read: write"):
        envs.make(typo)


@every_game
def test_the_nearest_name_comes_first(name: str) -> None:
    with pytest.raises(ValueError, match=f"known games are {name}, "):
        envs.make(name[:-1] + name[-1] * 2)


@pytest.mark.parametrize("name", [None, 3, ["hex"], b"hex"])
def test_a_name_is_text(name: Any) -> None:
    with pytest.raises(ValueError, match=r"Unknown game|cannot be"):
        envs.make(name)


@every_option
def test_an_option_of_another_type_is_refused(name: str, option: str, default: Any) -> None:
    wrong: list[Any] = [None, [3], (), "three", 2.5, np.float32(3)]
    wrong += [True, False] if type(default) is int else [1, 0] if type(default) is bool else []
    for value in wrong:
        if type(value) is not type(default):
            with pytest.raises(ValueError, match=f"`{option}` is "):
                envs.make(name, **{option: value})


@every_option
@pytest.mark.parametrize("value", [0, -1, HUGE, -HUGE, 2**63])
def test_an_option_out_of_range_is_refused_or_makes_a_sound_game(
    name: str, option: str, default: Any, value: int
) -> None:
    if isinstance(default, bool | str):
        return  # of another type: above
    given = float(value) if isinstance(default, float) else value
    try:
        env = envs.make(name, **{option: given})
    except ValueError as error:
        assert f"`{option}`" in str(error)
    else:
        envs.check_types(env)


@every_game
def test_an_unknown_option_is_answered_by_those_there_are(name: str) -> None:
    offer = "its options are " + ", ".join(option for option, _ in options(name)) if options(name) else "no options"
    with pytest.raises(ValueError, match=f"Unknown option 'sise' of game '{name}': .*{re.escape(offer)}"):
        envs.make(name, sise=3)


def _assert_lost(env: Any, state: Any, after: Any) -> None:
    # The mover loses and the position stays: all leaves but those that tell the outcome.
    assert after.terminated and not after.truncated
    assert after.rewards[state.to_play] == -1
    assert not env.legal_action_mask(after).any()
    np.testing.assert_array_equal(env.observe(state), env.observe(after))


@every_game
def test_an_action_out_of_range_loses_at_once(name: str) -> None:
    env, state, step = game(name)
    for action in (-1, env.num_actions, env.num_actions + 1, 2**31 - 1, -(2**31)):
        _assert_lost(env, state, step(state, jnp.int32(action), KEY))


@every_game
def test_an_illegal_action_loses_at_once(name: str) -> None:
    env, state, step = game(name)
    for ply in range(8):  # to where some action is illegal
        mask = np.asarray(env.legal_action_mask(state))
        if not mask.any():
            break
        if not mask.all():
            _assert_lost(env, state, step(state, jnp.int32(np.argmin(mask)), KEY))
        state = step(state, jnp.int32(np.argmax(mask)), jax.random.fold_in(KEY, ply))


@every_game
def test_no_action_wraps_around_at_32_bits(name: str) -> None:
    env, state, _ = game(name)
    for action in (2**31, np.int64(2**32), np.uint64(2**32), np.int64(-(2**32)), np.uint32(2**32 - 1)):
        assert env.step(state, action, KEY).terminated, action


@every_game
def test_small_integer_types_are_integers(name: str) -> None:
    env, state, step = game(name)
    action = int(np.argmax(env.legal_action_mask(state)))
    expected = step(state, jnp.int32(action), KEY)
    for dtype in (np.uint8, np.int64):
        if action <= np.iinfo(dtype).max:
            jax.tree.map(np.testing.assert_array_equal, env.step(state, dtype(action), KEY), expected)


@every_game
@pytest.mark.parametrize("action", [1.0, np.float32(1), True, 1j, None, "a1", 10**30])
def test_an_action_that_is_no_integer_is_refused(name: str, action: Any) -> None:
    env, state, _ = game(name)
    with pytest.raises(TypeError, match=r"`action` has dtype .*, expected an integer"):
        env.step(state, action, KEY)


@every_game
def test_one_is_expected_and_many_are_refused(name: str) -> None:
    env, state, _ = game(name)
    for actions in (np.zeros(1, np.int32), jnp.zeros((2, 1), jnp.int32), [0, 1]):
        with pytest.raises(TypeError, match=r"`action` has shape \(.*\), expected one action: batch the call"):
            env.step(state, actions, KEY)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    own = [getattr(env, function) for function in ("labels", "caption", "area_score") if hasattr(env, function)]
    for call in (lambda states: env.step(states, 0, KEY), env.legal_action_mask, env.observe, env.cut_short, *own):
        with pytest.raises(TypeError, match=r"`state` is a batch of shape \(2,\), expected one game"):
            call(batch)


@every_game
def test_a_finished_game_is_frozen(name: str) -> None:
    env, state, step = game(name)
    over = step(state, jnp.int32(-1), KEY)
    still = dataclasses.replace(over, rewards=jnp.zeros_like(over.rewards))
    for action in (0, env.num_actions - 1, -1, env.num_actions, 2**31 - 1):
        jax.tree.map(np.testing.assert_array_equal, step(over, jnp.int32(action), jax.random.key(7)), still)
    cut = dataclasses.replace(state, truncated=jnp.ones((), bool))
    assert not env.legal_action_mask(cut).any()
    after = step(cut, jnp.int32(0), KEY)
    assert after.truncated and not after.terminated and not after.rewards.any()


@every_game
def test_a_batch_has_no_hash_and_no_odds(name: str) -> None:
    env, state, _ = game(name)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(TypeError, match="`state` is a batch"):
        env.hash(batch)
    if isinstance(env, envs.ChanceGame):
        for ask in (env.odds, lambda states: env.happen(states, 0)):
            with pytest.raises(TypeError, match="`state` is a batch"):
                ask(batch)


@pytest.mark.parametrize(
    "env", [envs.TimeLimit(envs.TicTacToe(), 5), envs.make("pgx:tic_tac_toe")], ids=lambda env: type(env).__name__
)
def test_a_batch_is_not_seen_through_a_wrapper_either(env: Any) -> None:
    batch = jax.eval_shape(jax.vmap(env.init), jax.random.split(KEY, 2))
    with pytest.raises(TypeError, match=r"`state` is a batch of shape \(2,\), expected one game"):
        jax.eval_shape(env.observe, batch)


def test_what_has_no_board_has_no_hash() -> None:
    env = envs.make("pgx:tic_tac_toe")
    with pytest.raises(NotImplementedError, match="States of 'pgx:tic_tac_toe' have no `board` to hash"):
        env.hash(jax.eval_shape(env.init, KEY))


@pytest.mark.parametrize("max_plies", [0, True, 2.5, float("nan"), "x"])
def test_a_time_limit_is_a_number_of_plies(max_plies: Any) -> None:
    with pytest.raises(ValueError, match=r"`max_plies` is .*, expected an integer from 1"):
        envs.TimeLimit(envs.TicTacToe(), max_plies)


@pytest.mark.parametrize("env", [None, envs.TicTacToe, envs.TimeLimit(envs.TicTacToe(), 5)])
def test_a_time_limit_is_of_a_game_without_one(env: Any) -> None:
    with pytest.raises(TypeError, match=r"`env` is .*, expected a game without a time limit"):
        envs.TimeLimit(env, 3)


def test_a_time_limit_shows_what_its_game_shows() -> None:
    go, timed = envs.Go(5), envs.TimeLimit(envs.Go(5), 10)
    assert envs.to_svg(timed, timed.init()) == envs.to_svg(go, go.init())
    text = ". X .\n. O .\n. . .\nX to play"
    limited = envs.TimeLimit(envs.TicTacToe(), 5)
    assert envs.to_text(limited, envs.from_text(limited, text)) == envs.to_text(
        limited.env, envs.from_text(limited.env, text)
    )
