"""The contract (`envs.check`) as far as playing tells: random games, and what their states do when played on."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr

from envs.base import is_finished

# Leaves that an illegal action may change; everything else is the position.
_OUTCOME = ("to_play", "terminated", "truncated", "rewards")
_LARGEST = 2**31 - 1  # of the integers that actions are


def breaches_played(env: Any, num_games: int, max_plies: int, key: jax.Array) -> list[str]:
    """Play games of `env`, whose types are right, and list what is wrong with them."""
    try:
        games = _play(env, num_games, max_plies, key)
    except Exception as error:
        return [f"Playing {num_games} games at once under `vmap` raises {type(error).__name__}: {error}"]
    found = list(_courses(env, games))
    if games.finished[0].all():
        return found
    checks = [_forfeits, _integers, _ends, _repeats, _symmetries]
    if hasattr(env, "num_outcomes"):
        checks.append(_chances)
    for check in checks:
        try:
            found += check(env, games)
        except Exception as error:
            found.append(f"A check ({check.__name__[1:]}) ends in {type(error).__name__}: {error}")
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Games:
    """Random games played side by side, as NumPy arrays; rows stay at their end once finished."""

    states: Any  # [T + 1, B, ...]
    masks: np.ndarray  # [T + 1, B, A]
    observations: np.ndarray  # [T + 1, B, ...]
    actions: np.ndarray  # [T, B]
    finished: np.ndarray  # [T + 1, B]
    max_plies: int
    key: jax.Array
    look: Callable[[Any], tuple[Any, Any]]  # states [K, ...] -> masks, observations
    step: Callable[[Any, Any, jax.Array], Any]  # states [K, ...], actions [K], one key -> states

    def some(self, which: np.ndarray) -> tuple[Any, np.ndarray]:
        """Draw as many of the states marked in `which` [T + 1, B] as there are games, with their masks.

        Always that many, some of them twice if need be, so that one compiled `step` serves every check.
        """
        rows = np.random.default_rng(0).permutation(np.argwhere(which))
        at = tuple(np.resize(rows, (which.shape[1], 2)).T)
        return jax.tree.map(lambda x: x[at], self.states), self.masks[at]


def _play(env: Any, num_games: int, max_plies: int, key: jax.Array) -> _Games:
    @jax.jit
    def look(states: Any) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(env.legal_action_mask)(states), jax.vmap(env.observe)(states)

    @jax.jit
    def step(states: Any, actions: jax.Array, key: jax.Array) -> Any:
        return jax.vmap(env.step)(states, actions, jax.random.split(key, len(actions)))

    rng = np.random.default_rng(0)
    states = jax.device_get(jax.jit(jax.vmap(env.init))(jax.random.split(key, num_games)))
    frames = [(states, *look(states))]
    moves: list[np.ndarray] = []
    while len(moves) < max_plies and not is_finished(states).all():
        masks = np.asarray(frames[-1][1])
        moves.append(_draw(rng, masks))
        states = jax.device_get(step(states, moves[-1], jax.random.fold_in(key, len(moves))))
        frames.append((states, *look(states)))
    states, masks, observations = jax.tree.map(lambda *x: np.stack(x), *frames)
    return _Games(
        states=states,
        masks=masks,
        observations=observations,
        actions=np.array(moves, np.int32).reshape(-1, num_games),
        finished=states.terminated | states.truncated,
        max_plies=max_plies,
        key=key,
        look=look,
        step=step,
    )


def _draw(rng: np.random.Generator, masks: np.ndarray) -> np.ndarray:
    """Draw one of the marked actions for each row: [K] int32."""
    return np.where(masks, rng.random(masks.shape), -1).argmax(axis=1).astype(np.int32)


def _courses(env: Any, games: _Games) -> Iterator[str]:
    states, finished, live = games.states, games.finished, ~games.finished
    if finished[0].any():
        yield "`init` gives a finished game: `terminated` and `truncated` must be False at the start."
    if states.rewards[0].any():
        yield "`init` gives rewards that are not 0: nothing has been played yet."
    if live[-1].any():
        yield f"{live[-1].sum()} of {live.shape[1]} random games still run after {games.max_plies} plies."
    if (states.terminated & states.truncated).any():
        yield "A state is terminated and truncated: a game decided with its last ply is terminated alone."
    if not games.masks[live].any(axis=-1).all():
        yield "`legal_action_mask` is all False in a running game: such a state must be terminated."
    if games.masks[finished].any():
        yield "`legal_action_mask` allows an action in a finished game: it must be all False there."
    if not np.isin(states.to_play[live], np.arange(env.num_players)).all():
        yield f"`state.to_play` leaves the range 0 to {env.num_players - 1}."
    if not np.isfinite(states.rewards).all() or not np.isfinite(games.observations).all():
        yield "`state.rewards` or an observation is not finite."
    if env.num_players == 2 and not np.allclose(states.rewards.sum(axis=-1), 0, atol=1e-6):
        yield "`state.rewards` of two players do not sum to 0."


def _forfeits(env: Any, games: _Games) -> Iterator[str]:
    with_illegal = ~games.finished & ~games.masks.all(axis=-1)
    if with_illegal.any():
        states, masks = games.some(with_illegal)
        yield from _forfeit(env, games, "An illegal action", states, _draw(np.random.default_rng(1), ~masks))
    states, masks = games.some(~games.finished)
    # The nearest ones wrap around or are clamped where a game looks its mask up by them, the largest overflows.
    outside = np.array([-1, env.num_actions, _LARGEST, -_LARGEST - 1], np.int32)
    found = _forfeit(env, games, "An action out of range", states, np.resize(outside, len(masks)))
    yield from itertools.islice(found, 1)


def _forfeit(env: Any, games: _Games, what: str, states: Any, actions: np.ndarray) -> Iterator[str]:
    after = games.step(states, actions, games.key)
    if not after.terminated.all():
        yield f"{what} does not end the game: `terminated` must be True after it."
    of_mover = np.take_along_axis(after.rewards, np.clip(states.to_play, 0, env.num_players - 1)[:, None], axis=1)
    if not (of_mover < 0).all():
        yield f"{what} is no loss for the mover: their reward must be negative."
    if env.num_players == 2 and not np.allclose(after.rewards.sum(axis=-1), 0, atol=1e-6):
        yield f"After {what[0].lower()}{what[1:]} the rewards of two players do not sum to 0."
    for name in _changed(states, after):
        if not name.endswith(_OUTCOME):
            yield f"{what} changes `state{name}`: the position must stay as it was."


def _integers(env: Any, games: _Games) -> Iterator[str]:
    states, masks = games.some(~games.finished)
    actions = _draw(np.random.default_rng(4), masks)
    expected = games.step(states, actions, games.key)
    held = actions <= np.iinfo(np.uint8).max
    after = games.step(states, np.where(held, actions, 0).astype(np.uint8), games.key)
    for name in _changed(*(jax.tree.map(lambda x: x[held], tree) for tree in (expected, after))):
        yield f"An action of type uint8 gives another `state{name}` than int32: cast it in `step`."
        return


def _ends(env: Any, games: _Games) -> Iterator[str]:
    if not games.finished.any():
        return
    states, masks = games.some(games.finished)
    for action in (*range(0, env.num_actions, max(1, env.num_actions // 16)), env.num_actions, -1):
        after = games.step(states, np.full(len(masks), action, np.int32), games.key)
        for name in _changed(states, after):
            if not name.endswith("rewards"):
                yield f"Action {action} after the end changes `state{name}`: a finished game is frozen."
                return
        if after.rewards.any():
            yield f"Action {action} after the end gives a reward: `rewards` are those of the last step only."
            return


def _repeats(env: Any, games: _Games) -> Iterator[str]:
    states, masks = games.some(~games.finished)
    actions = _draw(np.random.default_rng(2), masks)
    batched = games.step(states, actions, games.key)
    keys = jax.random.split(games.key, len(actions))
    jitted = jax.jit(env.step)
    for row in range(min(3, len(actions))):
        arguments = _row(states, row), actions[row], keys[row]
        plain = env.step(*arguments)
        again = {
            "called a second time": env.step(*arguments),
            "under `jit`": jitted(*arguments),
            "under `vmap`": _row(batched, row),
        }
        for way, after in again.items():
            for name in _changed(plain, after):
                yield f"`step` {way} gives another `state{name}`: it must be a pure function."
                return
    yield from _looks_alike(env, games, states)


def _looks_alike(env: Any, games: _Games, states: Any) -> Iterator[str]:
    one, seen = _row(states, 0), games.look(states)
    looks = {"legal_action_mask": (one, _row(seen[0], 0)), "observe": (one, _row(seen[1], 0))}
    for name, (argument, batched) in (looks | {"init": (games.key, None)}).items():
        function = getattr(env, name)
        plain = function(argument)
        again = {"called a second time": function(argument), "under `jit`": jax.jit(function)(argument)}
        for way, other in (again | ({} if batched is None else {"under `vmap`": batched})).items():
            if _changed(plain, other):
                yield f"`{name}` {way} gives something else: it must be a pure function."
                break


def _row(tree: Any, row: int) -> Any:
    return jax.tree.map(lambda x: jnp.asarray(x[row]), tree)


def _symmetries(env: Any, games: _Games) -> Iterator[str]:
    symmetries = getattr(env, "symmetries", ())
    moves = np.arange(env.num_actions)
    by_chance = _depends_on_key(games)
    for index, symmetry in enumerate(symmetries):
        moved = np.asarray(symmetry.policy(moves))
        seen = np.asarray(symmetry.observation(games.observations))
        if sorted(moved.ravel()) != list(moves) or seen.shape != games.observations.shape:
            yield f"Symmetry {index} does not permute the actions or changes the observation's shape."
        elif index == 0 and not (np.array_equal(moved, moves) and np.array_equal(seen, games.observations)):
            yield "Symmetry 0 is not the identity, which comes first."
        elif not by_chance:
            yield from _replay(env, games, index, np.argsort(moved).astype(np.int32))


def _replay(env: Any, games: _Games, index: int, image: np.ndarray) -> Iterator[str]:
    # `image[a]` is where the symmetry takes action a: the same games are played again with all moves mapped.
    symmetry = env.symmetries[index]
    seen = np.asarray(symmetry.observation(games.observations))
    masks = np.asarray(symmetry.policy(games.masks))
    kept = (seen[0] == games.observations[0]).reshape(len(seen[0]), -1).all(axis=1)
    states = jax.tree.map(lambda x: x[0], games.states)
    for ply in range(len(games.actions) + 1):
        states = states if ply == 0 else games.step(states, image[games.actions[ply - 1]], games.key)
        legal, observations = games.look(states)
        for what, came, expected in (
            ("`observe`", observations, seen[ply]),
            ("`legal_action_mask`", legal, masks[ply]),
            ("`state.rewards`", states.rewards, games.states.rewards[ply]),
        ):
            if not np.array_equal(np.asarray(came)[kept], expected[kept]):
                yield f"Symmetry {index} is wrong: a game played through it differs in {what} after {ply} plies."
                return


def _chances(env: Any, games: _Games) -> Iterator[str]:
    outcomes = np.arange(env.num_outcomes, dtype=np.int32)

    @jax.jit
    def unfold(states: Any, actions: Any) -> tuple[Any, jax.Array, Any]:
        afterstates = jax.vmap(env.decide)(states, actions)
        happened = jax.vmap(jax.vmap(env.happen, (None, 0)), (0, None))(afterstates, outcomes)
        return afterstates, jax.vmap(env.odds)(afterstates), happened  # [K, ...], [K, O], [K, O, ...]

    for which in (~games.finished, games.finished):
        if not which.any():
            continue
        states, masks = games.some(which)
        actions = _draw(np.random.default_rng(4), np.ones_like(masks))  # illegal ones among them
        afterstates, odds, happened = jax.device_get(unfold(states, actions))
        over = is_finished(afterstates)
        unmoved = _alike(jax.tree.map(lambda x: x[:, None], afterstates), happened)
        if not np.isfinite(odds).all() or (odds < 0).any() or not np.allclose(odds.sum(axis=1), 1, atol=1e-5):
            yield "`odds` are not finite, negative or do not sum to 1."
        elif (odds[over] != (outcomes == 0)).any() or not unmoved[over].all():
            yield "Something may happen after the end: there outcome 0 is certain, and `happen` changes nothing."
        stepped = jax.tree.map(lambda x: x[:, None], games.step(states, actions, games.key))
        if not (_alike(stepped, happened) & (odds > 0)).any(axis=1).all():
            yield "`step` gives what is not `decide` and then `happen` with an outcome whose odds are positive."
            return


def _alike(some: Any, others: Any) -> Any:
    """Compare two trees of states [K, O, ...] or [K, 1, ...] one by one: [K, O] bool, floats up to rounding."""

    def same(old: Any, new: Any) -> Any:
        close = np.isclose(np.asarray(old, np.float64), np.asarray(new, np.float64), rtol=1e-5, atol=1e-6)
        return np.asarray(close.reshape(*close.shape[:2], -1).all(axis=2))

    return np.all(jax.tree.leaves(jax.tree.map(same, some, others)), axis=0)


def _depends_on_key(games: _Games) -> bool:
    states, masks = games.some(~games.finished)
    actions = _draw(np.random.default_rng(3), masks)
    once, again = (games.step(states, actions, jax.random.key(seed)) for seed in (1, 2))
    return bool(_changed(once, again))


def _changed(before: Any, after: Any) -> list[str]:
    """Name the leaves that differ, floats by more than rounding."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    return [keystr(path) for (path, old), new in pairs if not _same(np.asarray(old), np.asarray(new))]


def _same(old: np.ndarray, new: np.ndarray) -> bool:
    if jnp.issubdtype(old.dtype, jnp.floating):
        return np.allclose(old, new, rtol=1e-5, atol=1e-6, equal_nan=True)
    return np.array_equal(old, new)
