"""The contract of a game, checked by playing it: `check_env(my_game)` lists every breach in one error.

What is checked, in this order. The first two are about declarations and shapes, found by tracing (`check_types`
does these alone); if they fail nothing is played, since everything after would fail with them.

1. `name`, `num_actions`, `num_players`, `observation_shape`; equal and hashable with equal options.
2. `init`, `step`, `observe`, `legal_action_mask` trace with the right shapes and dtypes, none of them weak,
   and `step` returns what it was given, so that loops and `jit` do not retrace; `action_layout` fits the board;
   `symmetries` trace too and keep shapes and dtypes.
3. Random games: they begin unfinished with rewards 0, keep a legal action until they end, end within
   `max_plies`, have no legal action after, give finite rewards that sum to 0 between two players.
4. An illegal action, one out of range included, ends the game as a loss for the mover and leaves the position as it
   was; actions of every integer type are the same.
5. A step after the end changes nothing and gives reward 0.
6. Called twice, under `jit`, or under `vmap`, each function gives the same.
7. `symmetries`, where a game has them: the first one is the identity, moves are permuted, and a game played
   through a symmetry is the same game seen through it (in games without chance, from starts that the
   symmetry keeps: other symmetries can be right without passing through the same start).
8. Games that tell their odds (those with `num_outcomes`, see `envs.chance`): `decide` and `happen` trace and give what
   `init` gives; `odds` are finite, not negative and sum to 1; after an end outcome 0 is certain and no outcome changes
   anything; a step is a decision and one of its possible outcomes.
"""

import copy
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.base import is_finished
from envs.moves import check_names

PyTree = Any

# Leaves that an illegal action may change; everything else is the position.
_OUTCOME = ("to_play", "terminated", "truncated", "rewards")
_LARGEST = 2**31 - 1  # of the integers that actions are


class ContractError(AssertionError):
    """A game does not keep the contract; the message has one sentence a breach."""


def check_env(env: Any, *, num_games: int = 64, max_plies: int = 1000, key: jax.Array | None = None) -> None:
    """Play `num_games` random games of `env` and raise `ContractError` listing every breach found.

    `max_plies` bounds a game's length; `key` draws starts and moves, `jax.random.key(0)` if left out.
    """
    found = breaches(env, num_games=num_games, max_plies=max_plies, key=key)
    if found:
        raise ContractError("\n".join([f"{type(env).__name__} breaks the contract of a game:", *found]))


def check_types(env: Any, *, key: jax.Array | None = None) -> None:
    """Raise `ContractError` for wrong declarations, shapes and dtypes: what tracing tells, without a game played."""
    found = _traced(env, jax.random.key(0) if key is None else key)
    if found:
        raise ContractError("\n".join([f"{type(env).__name__} breaks the contract of a game:", *found]))


def breaches(env: Any, *, num_games: int = 64, max_plies: int = 1000, key: jax.Array | None = None) -> list[str]:
    """List every breach of the contract, one sentence each; see `check_env`, which raises them."""
    if isinstance(env, type):
        raise TypeError(f"`env` is the class {env.__name__}, expected a game: call it to make one.")
    if num_games < 1 or max_plies < 1:
        raise ValueError(f"`num_games` is {num_games} and `max_plies` {max_plies}, expected 1 or more of each.")
    key = jax.random.key(0) if key is None else key
    found = _traced(env, key)
    if found:
        return found
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


def _traced(env: Any, key: jax.Array) -> list[str]:
    try:
        return list(_declarations(env)) or list(_signatures(env, key))
    except Exception as error:  # whatever a user's property may raise is the finding
        return [f"What the game declares cannot be read: {type(error).__name__}: {error}"]


def _declarations(env: Any) -> Iterator[str]:
    counts = ["num_actions", "num_players"] + ["num_outcomes"] * hasattr(env, "num_outcomes")
    for attribute in counts:
        value = getattr(env, attribute, None)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            yield f"`{attribute}` is {value!r}, expected an int of at least 1."
    shape = getattr(env, "observation_shape", None)
    if not isinstance(shape, tuple) or not all(isinstance(size, int) for size in shape):
        yield f"`observation_shape` is {shape!r}, expected a tuple of ints."
    if not isinstance(getattr(env, "name", None), str):
        yield f"`name` is {getattr(env, 'name', None)!r}, expected a string."
    try:
        twin = copy.copy(env)
        if twin != env or hash(twin) != hash(env):
            yield "Two games of the same options differ: make the class a frozen dataclass, or jit retraces."
    except TypeError:
        yield "The game is not hashable: make the class a frozen dataclass of hashable options."


def _signatures(env: Any, key: jax.Array) -> Iterator[str]:
    action = jax.ShapeDtypeStruct((), jnp.int32)
    try:
        state = jax.eval_shape(env.init, key)
        after = jax.eval_shape(env.step, state, action, key)
        seen = jax.eval_shape(env.observe, state)
        mask = jax.eval_shape(env.legal_action_mask, state)
    except Exception as error:  # whatever a user's game may raise is the finding
        yield f"Tracing `init`, `step`, `observe`, `legal_action_mask` raises {type(error).__name__}: {error}"
        return
    yield from _state_types(state, env.num_players)
    yield from _symmetry_types(env)
    yield from _unlike("`step`", after, "`init`", state)
    if hasattr(env, "num_outcomes"):
        yield from _chance_signatures(env, state)
    try:
        check_names(env)
    except ValueError as error:
        yield str(error)
    if (mask.shape, mask.dtype) != ((env.num_actions,), jnp.bool_):
        yield f"`legal_action_mask` is {_type(mask)}, expected bool[{env.num_actions}], True where allowed."
    if not hasattr(seen, "shape") or seen.shape != env.observation_shape:
        yield f"`observe` gives {seen}, expected one array of `observation_shape` {env.observation_shape}."
    elif seen.weak_type:
        yield f"`observe` gives {_type(seen)}, expected a dtype of its own: name it where the array is made."
    try:
        inspect.signature(env.step).bind(state, action)
    except TypeError:
        yield "`step` cannot be called without a key: give the third argument the default None."


def _chance_signatures(env: Any, state: Any) -> Iterator[str]:
    index, count = jax.ShapeDtypeStruct((), jnp.int32), env.num_outcomes
    try:
        afterstate = jax.eval_shape(env.decide, state, index)
        odds = jax.eval_shape(env.odds, afterstate)
        happened = jax.eval_shape(env.happen, afterstate, index)
    except Exception as error:  # as above
        yield f"Tracing `decide`, `odds`, `happen` raises {type(error).__name__}: {error}"
        return
    yield from _unlike("`decide`", afterstate, "`init`", state)
    yield from _unlike("`happen`", happened, "`init`", state)
    if _type(odds) != f"float32[{count}]":
        yield f"`odds` is {_type(odds)}, expected float32[{count}]."


def _state_types(state: Any, num_players: int) -> Iterator[str]:
    expected = {
        "to_play": ((), jnp.int32),
        "terminated": ((), jnp.bool_),
        "truncated": ((), jnp.bool_),
        "rewards": ((num_players,), jnp.float32),
    }
    for field, (shape, dtype) in expected.items():
        value = getattr(state, field, None)
        if value is None:
            yield f"The state has no `{field}`."
        elif (value.shape, value.dtype) != (shape, dtype):
            yield f"`state.{field}` is {_type(value)}, expected {jnp.dtype(dtype).name}{list(shape)}."
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if leaf.weak_type:
            yield f"`init` gives `state{_name(path)}` weakly typed: name the dtype where the array is made."


def _symmetry_types(env: Any) -> Iterator[str]:
    symmetries = getattr(env, "symmetries", None)
    if symmetries is None:
        return
    if not isinstance(symmetries, tuple) or not symmetries:
        yield f"`symmetries` is {symmetries!r}, expected a tuple that begins with the identity, `envs.base.IDENTITY`."
        return
    observation = jax.ShapeDtypeStruct((2, *env.observation_shape), jnp.float32)
    mask = jax.ShapeDtypeStruct((2, env.num_actions), jnp.bool_)
    for (index, symmetry), (part, given) in itertools.product(
        enumerate(symmetries), (("observation", observation), ("policy", mask))
    ):
        try:
            came = jax.eval_shape(getattr(symmetry, part), given)
        except Exception as error:
            yield f"Symmetry {index} cannot be traced: its `{part}` raises {type(error).__name__}: {error}"
            continue
        if _type(came) != _type(given):
            yield f"The `{part}` of symmetry {index} turns {_type(given)} into {_type(came)}, expected the same."


def _unlike(what: str, tree: PyTree, other_what: str, other: PyTree) -> Iterator[str]:
    structure, expected = str(jax.tree.structure(tree)), str(jax.tree.structure(other))
    if structure != expected:
        yield f"{what} returns {structure}, {other_what} {expected}: both must be of one structure."
        return
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    for (path, leaf), other_leaf in zip(leaves, jax.tree.leaves(other), strict=True):
        if _type(leaf) != _type(other_leaf):
            yield f"{what} gives `state{_name(path)}` as {_type(leaf)}, {other_what} as {_type(other_leaf)}."


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
    return [_name(path) for (path, old), new in pairs if not _same(np.asarray(old), np.asarray(new))]


def _same(old: np.ndarray, new: np.ndarray) -> bool:
    if jnp.issubdtype(old.dtype, jnp.floating):
        return np.allclose(old, new, rtol=1e-5, atol=1e-6, equal_nan=True)
    return np.array_equal(old, new)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path)


def _type(array: Any) -> str:
    weak = "weak " if getattr(array, "weak_type", False) else ""
    return f"{weak}{jnp.dtype(array.dtype).name}{list(array.shape)}"
