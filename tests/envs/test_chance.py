"""The contract of games of chance: what `check_env` finds in broken ones, and how the three functions behave."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.chance import ChanceGame
from envs.check import breaches, check_env
from tests.envs import playing

BROKEN: list[tuple[str, Any]] = []


def broken(sentence: str) -> Callable[[type], type]:
    """Register a game and a part of the sentence that `check_env` must say about it."""

    def register(game: type) -> type:
        BROKEN.append((sentence, game(target=10, faces=3)))
        return game

    return register


@broken("`num_outcomes` is 0, expected an int of at least 1")
class NoOutcomes(envs.Pig):
    num_outcomes = 0


@broken("`odds` is float32[4], expected float32[3]")
class LongOdds(envs.Pig):
    def odds(self, afterstate):
        return jnp.append(super().odds(afterstate), jnp.float32(0))


@broken("Tracing `decide`, `odds`, `happen` raises")
class Untraceable(envs.Pig):
    def odds(self, afterstate):
        return super().odds(afterstate) if afterstate.board[3] else jnp.ones(3, jnp.float32) / 3

    def _draw(self, afterstate, key):
        return jnp.int32(0)


@broken("`decide` returns PyTreeDef")
class DecidesTwoThings(envs.Pig):
    def decide(self, state, action):
        return super().decide(state, action), action

    def odds(self, afterstate):
        return super().odds(afterstate[0])

    def happen(self, afterstate, outcome):
        return super().happen(afterstate[0], outcome)


@broken("`odds` are not finite, negative or do not sum to 1")
class HalfTheOdds(envs.Pig):
    def _odds(self, afterstate):
        return super()._odds(afterstate) / 2


@broken("`odds` are not finite, negative or do not sum to 1")
class NegativeOdds(envs.Pig):
    def _odds(self, afterstate):
        return super()._odds(afterstate) + jnp.array([0.5, 0.5, -1], jnp.float32)

    def _draw(self, afterstate, key):
        return jnp.int32(0)


@broken("Something may happen after the end")
class RollsOn(envs.Pig):
    def odds(self, afterstate):
        return jnp.ones(3, jnp.float32) / 3


@broken("Something may happen after the end")
class MovesAfterTheEnd(envs.Pig):
    def happen(self, afterstate, outcome):
        after = super().happen(afterstate, outcome)
        return dataclasses.replace(after, to_play=jnp.where(after.terminated, 1 - after.to_play, after.to_play))


@broken("`step` gives what is not `decide` and then `happen`")
class LoadedDie(envs.Pig):
    """It always shows the face that its odds leave out."""

    def _odds(self, afterstate):
        return jnp.where(afterstate.board[3] == 1, jnp.array([0.5, 0.5, 0], jnp.float32), super()._odds(afterstate))

    def _draw(self, afterstate, key):
        return jnp.where(afterstate.board[3] == 1, 2, 0)


@broken("`step` gives what is not `decide` and then `happen`")
class OtherStep(envs.Pig):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return dataclasses.replace(after, board=after.board.at[2].multiply(2))


@pytest.mark.parametrize(("sentence", "env"), BROKEN, ids=[type(env).__name__ for _, env in BROKEN])
def test_every_breach_is_found(sentence: str, env: Any) -> None:
    found = breaches(env, num_games=8, max_plies=200)
    assert any(sentence in breach for breach in found), found


def test_a_limit_keeps_the_contract_of_chance() -> None:
    """That each game does is tested with all the others."""
    check_env(envs.TimeLimit(envs.Pig(), 9), num_games=8)


@pytest.mark.parametrize("env", [envs.Twenty48(2, 2), envs.Pig(12)], ids=repr)
def test_a_step_without_a_key_is_refused(env: ChanceGame) -> None:
    state = env.init(jax.random.key(0))
    with pytest.raises(TypeError, match=rf"`step` of '{env.name}' came without a `key`, expected one such as"):
        env.step(state, 0)
    # The three parts do without one.
    after = env.happen(env.decide(state, 0), 1)
    assert str(jax.tree.structure(after)) == str(jax.tree.structure(state))


@pytest.mark.parametrize("name", ["2048", "sliding_puzzle"])
def test_a_start_without_a_key_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"`init` of '{name}' came without a `key`"):
        envs.make(name).init()


def test_an_outcome_is_one_integer() -> None:
    env = envs.Pig()
    rolled = env.decide(env.init(), 0)
    with pytest.raises(TypeError, match=r"`outcome` has dtype float32, expected an integer"):
        env.happen(rolled, jnp.float32(1))
    with pytest.raises(TypeError, match=r"`outcome` has shape \(2,\), expected one outcome: batch the call"):
        env.happen(rolled, jnp.array([1, 2]))
    with pytest.raises(TypeError, match=r"`action` has shape \(2,\), expected one action"):
        env.decide(rolled, jnp.array([0, 1]))


@pytest.mark.parametrize("action", [-1, 2, 2**31 - 1])
def test_an_illegal_decision_ends_the_game_and_leaves_nothing_to_chance(action: int) -> None:
    env = envs.Pig()
    state = env.step(env.init(), 0, jax.random.key(1))
    lost = env.decide(state, action)
    assert lost.terminated and lost.rewards[state.to_play] == -1
    np.testing.assert_array_equal(lost.board, state.board)
    assert env.odds(lost).tolist() == [1, 0, 0, 0, 0, 0]
    jax.tree.map(np.testing.assert_array_equal, env.happen(lost, 5), lost)
    jax.tree.map(np.testing.assert_array_equal, env.step(state, action, jax.random.key(0)), lost)
    again = env.decide(lost, 0)
    assert not again.rewards.any() and again.terminated


def test_the_die_falls_by_its_odds() -> None:
    env, draws = envs.Pig(), 30_000
    after = jax.jit(jax.vmap(env.step, (None, None, 0)))(env.init(), 0, jax.random.split(jax.random.key(0), draws))
    counts = np.bincount(after.board[:, 2], minlength=7)
    assert counts[1] == 0
    chi2 = ((counts[[0, 2, 3, 4, 5, 6]] - draws / 6) ** 2 / (draws / 6)).sum()
    assert chi2 < 20.5  # 5 degrees of freedom: 0.1 % of right ones are beyond


def test_a_limit_counts_a_ply_when_chance_has_done_its_part() -> None:
    env = envs.TimeLimit(envs.make("pig"), 2)
    state = env.init()
    for ply in (1, 2):
        afterstate = env.decide(state, 0)
        assert afterstate.plies == ply - 1 and not afterstate.truncated
        state = env.happen(afterstate, 3)
        assert state.plies == ply and state.truncated == (ply == 2)
    assert env.odds(env.decide(state, 0)).tolist() == [1, 0, 0, 0, 0, 0]
    assert not hasattr(envs.TimeLimit(envs.make("tic_tac_toe"), 2), "num_outcomes")


def test_random_games_end_by_chance_at_different_lengths() -> None:
    states, _, _ = playing.random_moves(envs.make("2048(rows=2, columns=2)"), 64, 60, seed=0)
    lengths = (~np.asarray(states.terminated)).sum(axis=0)
    assert states.terminated[-1].all() and len(set(lengths.tolist())) > 5
