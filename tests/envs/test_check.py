"""`check_env` finds what is wrong with a game: one deliberately broken game for each breach."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.base import BoardGame, State, is_finished, select, win_rewards
from envs.check import ContractError, breaches, check_env
from envs.symmetry import Symmetry
from envs.tic_tac_toe import TicTacToe

BROKEN: list[tuple[str, Any]] = []


def broken(sentence: str) -> Callable[[type], type]:
    """Register a game and a part of the sentence that `check_env` must say about it."""

    def register(game: type) -> type:
        BROKEN.append((sentence, game()))
        return game

    return register


def edit(state: State, **fields: Any) -> State:
    return dataclasses.replace(state, **fields)


# --- Declarations


@broken("`num_actions` is 0, expected an int of at least 1")
class NoActions(TicTacToe):
    num_actions = 0


@broken("`num_players` is True, expected an int")
class TruthfulPlayers(TicTacToe):
    num_players: ClassVar[Any] = True


@broken("What the game declares cannot be read: ZeroDivisionError")
class Divides(TicTacToe):
    @property
    def num_actions(self) -> int:  # type: ignore[override]
        return 9 // 0


@broken("`num_players` is None")
class NoPlayers(TicTacToe):
    num_players: ClassVar[Any] = None


@broken("`observation_shape` is [3, 3, 2], expected a tuple of ints")
class ShapeAsList(TicTacToe):
    observation_shape: ClassVar[Any] = [3, 3, 2]


@broken("`name` is None, expected a string")
class Nameless(TicTacToe):
    name: ClassVar[Any] = None


@broken("`action_layout` of 'tic_tac_toe' puts its actions on cells, of which the observation has 9, but")
class FewerActionsThanCells(TicTacToe):
    num_actions = 7

    def legal_action_mask(self, state: State, /) -> jax.Array:
        return super().legal_action_mask(state)[:7]


@broken("The game is not hashable")
@dataclasses.dataclass
class Unhashable:
    num_actions = 9
    num_players = 2
    observation_shape = (3, 3, 2)
    name = "unhashable"


@broken("Two games of the same options differ")
class Identity(TicTacToe):
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


# --- Signatures


@broken("Tracing `init`, `step`, `observe`, `legal_action_mask` raises TracerBoolConversionError")
class Untraceable(TicTacToe):
    def step(self, state, action, key=None):
        return state if state.terminated else super().step(state, action, key)


@broken("The state has no `truncated`")
class NoTruncation(TicTacToe):
    def init(self, key=None):
        return _Short(to_play=jnp.int32(0), terminated=jnp.bool_(False), rewards=jnp.zeros(2, jnp.float32))

    def step(self, state, action, key=None):
        return state

    def observe(self, state):
        return jnp.zeros((3, 3, 2), jnp.float32)

    def legal_action_mask(self, state):
        return jnp.ones(9, bool)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Short:
    to_play: Any
    terminated: Any
    rewards: Any


@broken("`state.rewards` is float32[3], expected float32[2]")
class ThreeRewards(TicTacToe):
    def init(self, key=None):
        return edit(super().init(key), rewards=jnp.zeros(3, jnp.float32))

    def step(self, state, action, key=None):
        return state


@broken("`state.to_play` is int8[], expected int32[]")
class SmallMover(TicTacToe):
    def init(self, key=None):
        return edit(super().init(key), to_play=jnp.int8(0))


@broken("`init` gives `state.to_play` weakly typed")
class WeakStart(TicTacToe):
    def init(self, key=None):
        return edit(super().init(key), to_play=jnp.asarray(0))


@broken("`step` gives `state.rewards` as int32[2], `init` as float32[2]")
class WholeRewards(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return edit(after, rewards=after.rewards.astype(jnp.int32))


@broken("`step` gives `state.to_play` as weak int32[], `init` as int32[]")
class WeakStep(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return edit(after, to_play=jnp.where(after.to_play == 0, 0, 1))


@broken("`step` returns PyTreeDef")
class StepAndReward(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return after, after.rewards


@broken("`legal_action_mask` is float32[9], expected bool[9], True where allowed")
class FloatMask(TicTacToe):
    def legal_action_mask(self, state):
        return super().legal_action_mask(state).astype(jnp.float32)


@broken("`legal_action_mask` is bool[10], expected bool[9]")
class LongMask(TicTacToe):
    def legal_action_mask(self, state):
        return jnp.append(super().legal_action_mask(state), False)


@broken("expected one array of `observation_shape` (3, 3, 2)")
class FlatObservation(TicTacToe):
    def observe(self, state):
        return super().observe(state).reshape(9, 2)


@broken("`observe` gives weak float32[3, 3, 2]")
class WeakObservation(TicTacToe):
    def observe(self, state):
        return jnp.where(super().observe(state) > 0, 1.0, 0.0)


@broken("`observe` gives bool[3, 3, 2], expected float32")
class BoolObservation(TicTacToe):
    def observe(self, state):
        return super().observe(state) > 0


@broken("`step` cannot be called without a key")
class NeedsKey(TicTacToe):
    def step(self, state, action, key):  # type: ignore[override]
        return super().step(state, action, key)


# --- Courses of games


@broken("`init` gives a finished game")
class BornDead(TicTacToe):
    def init(self, key=None):
        return edit(super().init(key), terminated=jnp.ones((), bool))


@broken("`init` gives rewards that are not 0")
class Gift(TicTacToe):
    def init(self, key=None):
        return edit(super().init(key), rewards=win_rewards(0))


@broken("still run after 50 plies")
class Endless(TicTacToe):
    def _moved(self, mine, theirs, mover):
        after = super()._moved(mine, theirs, mover)
        going_on = edit(after, terminated=jnp.zeros((), bool), rewards=jnp.zeros(2, jnp.float32))
        return edit(going_on, board=jnp.where(after.terminated, 0, after.board))


@broken("`legal_action_mask` is all False in a running game")
class NoDraws(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return edit(after, terminated=after.terminated & (after.rewards != 0).any() | state.terminated)


@broken("`legal_action_mask` allows an action in a finished game")
class OpenEnd(TicTacToe):
    def legal_action_mask(self, state):
        return super().legal_action_mask(state) | is_finished(state)


@broken("A state is terminated and truncated")
class BothFlags(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return edit(after, truncated=after.terminated)


@broken("`state.to_play` leaves the range 0 to 1")
class ThirdMan(TicTacToe):
    def _moved(self, mine, theirs, mover):
        return edit(super()._moved(mine, theirs, mover), to_play=mover + 1)


@broken("`state.rewards` of two players do not sum to 0")
class BothWin(TicTacToe):
    def _moved(self, mine, theirs, mover):
        after = super()._moved(mine, theirs, mover)
        return edit(after, rewards=jnp.abs(after.rewards))


@broken("`state.rewards` or an observation is not finite")
class NotANumber(TicTacToe):
    def observe(self, state):
        seen = super().observe(state)
        return seen / (1 - is_finished(state).astype(jnp.float32))


# --- Illegal actions


@broken("An illegal action does not end the game")
class Lenient(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        legal = self.legal_action_mask(state)[action] | is_finished(state)
        return select(legal, after, edit(state, rewards=jnp.zeros(2, jnp.float32)))


@broken("An illegal action is no loss for the mover")
class Forgiving(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        legal = self.legal_action_mask(state)[action]
        return edit(after, rewards=after.rewards * legal)


@broken("An illegal action is no loss for the mover")
class PunishesTheOther(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        legal = self.legal_action_mask(state)[action]
        return edit(after, rewards=jnp.where(legal, 1, -1) * after.rewards)


@broken("After an illegal action the rewards of two players do not sum to 0")
class Unearned(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        legal = self.legal_action_mask(state)[action]
        return edit(after, rewards=jnp.where(legal, after.rewards, jnp.minimum(after.rewards, 0)))


@broken("An illegal action changes `state.board`")
class Overwrites(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        played = self._play(state, action, key)
        return edit(after, board=jnp.where(is_finished(state), state.board, played.board))


@broken("An action out of range does not end the game")
class WrapsAround(TicTacToe):
    """It looks its mask up by the action, and there -1 is the last one."""

    def step(self, state, action, key=None):
        return super().step(state, jnp.where(action == -1, 8, action), key)


@broken("An action out of range does not end the game")
class Clamps(TicTacToe):
    def step(self, state, action, key=None):
        return super().step(state, jnp.clip(jnp.asarray(action, jnp.int32), 0, 8), key)


@broken("An action of type uint8 gives another `state.board` than int32")
class Overflows(TicTacToe):
    def step(self, state, action, key=None):
        within = jnp.asarray(action) < 9
        return super().step(state, jnp.where(within, (action * 64) // 64, action), key)


# --- Ends


@broken("after the end changes `state.board`")
class PlaysOn(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return select(is_finished(state), edit(self._play(state, action, key), terminated=state.terminated), after)


@broken("after the end gives a reward")
class PaysTwice(TicTacToe):
    def step(self, state, action, key=None):
        return select(is_finished(state), state, super().step(state, action, key))


# --- The same in every way of calling


@broken("`step` called a second time gives another `state.rewards`")
class Moody(TicTacToe):
    calls: ClassVar[list[int]] = []

    def step(self, state, action, key=None):
        self.calls.append(1)
        after = super().step(state, action, key)
        return edit(after, rewards=after.rewards + jnp.array([1, -1], jnp.float32) * len(self.calls))


@broken("`step` under `jit` gives another `state.to_play`")
class KnowsTheTracer(TicTacToe):
    def step(self, state, action, key=None):
        after = super().step(state, action, key)
        return after if isinstance(action, jax.core.Tracer) else edit(after, to_play=state.to_play)


@broken("Playing 32 games at once under `vmap` raises")
class OnTheHost(TicTacToe):
    def observe(self, state):
        shape = jax.ShapeDtypeStruct((3, 3, 2), jnp.float32)
        return jax.pure_callback(lambda board: np.zeros((3, 3, 2), np.float32), shape, state.board)


class _Counts(TicTacToe):
    calls: ClassVar[list[int]] = []

    def count(self) -> int:
        self.calls.append(1)
        return len(self.calls)


@broken("`observe` called a second time gives something else")
class LooksTwice(_Counts):
    def observe(self, state):
        return super().observe(state) + self.count()


@broken("`legal_action_mask` under `jit` gives something else")
class MaskKnowsTheTracer(TicTacToe):
    def legal_action_mask(self, state):
        mask = super().legal_action_mask(state)
        return mask if isinstance(state.board, jax.core.Tracer) else ~mask


@broken("`init` called a second time gives something else")
class StartsAnew(_Counts):
    def init(self, key=None):
        start = super().init(key)
        return edit(start, board=jnp.uint32(self.count() % 16))


# --- Symmetries


@broken("`symmetries` is (), expected a tuple that begins with `envs.symmetry.IDENTITY`")
class NoSymmetries(TicTacToe):
    symmetries: ClassVar[Any] = ()


def _keep(x: Any) -> Any:
    return x


class _Mirrored(TicTacToe):
    mirror: Any = None

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (envs.TicTacToe().symmetries[0], self.mirror)


@broken("Symmetry 1 is wrong: a game played through it differs in `observe` after 1 plies")
class PolicyLeftBehind(_Mirrored):  # C116
    mirror = Symmetry(lambda seen: seen[..., ::-1, :], _keep)


@broken("Symmetry 1 is wrong")
class TurnedTheOtherWay(_Mirrored):
    mirror = Symmetry(
        lambda seen: jnp.rot90(seen, 1, (-3, -2)),
        lambda policy: jnp.rot90(policy.reshape(*policy.shape[:-1], 3, 3), -1, (-2, -1)).reshape(policy.shape),
    )


@broken("Symmetry 1 does not permute the actions or changes the observation's shape")
class NotAPermutation(_Mirrored):
    mirror = Symmetry(_keep, lambda policy: policy[..., [0] * 9])


@broken("Symmetry 1 cannot be traced: its `policy` raises TracerArrayConversionError")
class OnlyNumPy(_Mirrored):
    mirror = Symmetry(_keep, lambda policy: np.asarray(policy)[..., ::-1])


@broken("The `policy` of symmetry 1 turns bool[2, 9] into int32[2, 9], expected the same")
class CountsMasks(_Mirrored):
    mirror = Symmetry(_keep, lambda policy: policy * jnp.int32(1))


@broken("The `observation` of symmetry 1 turns float32[2, 3, 3, 2] into float32[9, 2, 2], expected the same")
class ForgetsTheBatch(_Mirrored):
    mirror = Symmetry(lambda seen: seen.reshape(9, -1, 2), _keep)


@broken("Symmetry 0 is not the identity")
class NoIdentity(TicTacToe):
    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return super().symmetries[1:]


@pytest.mark.parametrize(("sentence", "env"), BROKEN, ids=[type(env).__name__ for _, env in BROKEN])
def test_every_breach_is_found(sentence: str, env: Any) -> None:
    found = breaches(env, num_games=32, max_plies=50)
    assert any(sentence in breach for breach in found), found


def test_one_error_lists_all_breaches() -> None:
    class Twice(OpenEnd, PaysTwice):
        pass

    with pytest.raises(ContractError, match=r"(?s)Twice breaks.*allows an action.*after the end gives a reward"):
        check_env(Twice())


def test_a_game_from_elsewhere_passes() -> None:
    """A race by one player, with chance and an intermediate reward: nothing of `BoardGame` is needed."""
    check_env(Race(), num_games=8)
    assert not isinstance(Race(), BoardGame)


@dataclasses.dataclass(frozen=True)
class Race:
    """Walk 1 or 2 steps and a random one; the second action is illegal at first."""

    goal: int = 9
    name = "race"
    num_actions = 2
    num_players = 1
    observation_shape = (1,)

    def init(self, key: jax.Array) -> State:
        flag = jnp.zeros((), bool)
        place = jax.random.randint(key, (), 0, 2, jnp.int32)
        rewards = jnp.zeros(1, jnp.float32)
        return State(board=place, to_play=jnp.int32(0), terminated=flag, truncated=flag, rewards=rewards)

    def legal_action_mask(self, state: State) -> jax.Array:
        return jnp.stack([state.board >= 0, state.board > 2]) & ~state.terminated

    def step(self, state: State, action: jax.Array, key: jax.Array | None = None) -> State:
        luck = 0 if key is None else jax.random.randint(key, (), 0, 2, jnp.int32)
        legal, over = self.legal_action_mask(state)[action] & (action >= 0) & (action < 2), state.terminated
        place = jnp.where(legal, state.board + action.astype(jnp.int32) + 1 + luck, state.board)
        reward = jnp.where(legal, 0.25, jnp.where(over, 0, -1)).astype(jnp.float32)
        return edit(state, board=place, terminated=over | ~legal | (place >= self.goal), rewards=reward[None])

    def observe(self, state: State) -> jax.Array:
        return state.board[None].astype(jnp.float32)
