"""Environments of gymnax's shape as games of one player: `from_gymnax(*gymnax.make("CartPole-v1"))`.

Nothing of gymnax is imported: what counts is the shape, `reset(key, params) -> (obs, state)` and
`step_env(key, state, action, params)` with five values (obs, state, reward, done, info) or six (obs, state, reward,
terminated, truncated, info). A search must see the end of an episode, so the step that resets by itself, `step`, is
called only where there is no other, of an environment that does not reset.

Where an environment tells a time limit apart from an end, by six values or by `is_truncated(state, params)` as gymnax
1.0 does, the state is truncated and its value still counts; the `done` of older ones is an end whatever its reason.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from envs import arguments, base


def from_gymnax(env: Any, params: Any = None) -> "GymnaxGame":
    """Make an environment a game of one player; `params` are its own defaults if left out.

    Every action is legal while the episode runs, and one out of range ends it with reward -1. `rewards` are those of
    the last step; the discount is the `gamma` of `jaxmcts.model_from_env`. The observation is kept in the state, for
    environments may draw it. `init` and `step` need keys. Games of the same `env` and `params`, the objects
    themselves, are equal. Raises `TypeError` for what is no environment, has no numbered actions or is not seen as one
    array.
    """
    missing = [part for part in ("reset", "num_actions") if not hasattr(env, part)]
    if missing or isinstance(env, type) or not (hasattr(env, "step_env") or hasattr(env, "step")):
        raise TypeError(
            f"`env` is {env!r}, expected an environment with `reset`, `step_env` and `num_actions` such as the first "
            "of the two that `gymnax.make` returns."
        )
    game = GymnaxGame(env, params)
    if hasattr(env, "action_space") and not hasattr(env.action_space(game.settings), "n"):
        raise TypeError(f"The actions of {game.name!r} are not numbered: a search needs a list of them to choose from.")
    if not isinstance(game._seen, jax.ShapeDtypeStruct):
        raise TypeError(f"{game.name!r} is seen as {game._seen}, expected one array: flatten it into one.")
    return game


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnaxState:
    """The state of an environment in our terms."""

    inner: Any  # the environment's own
    observation: jax.Array
    to_play: jax.Array  # [] int32, 0
    terminated: jax.Array  # [] bool
    truncated: jax.Array  # [] bool: a time limit
    rewards: jax.Array  # [1] float32


@dataclasses.dataclass(frozen=True, eq=False)
class GymnaxGame(base.BoardGame):
    """An environment of gymnax's shape; `from_gymnax` makes it."""

    env: Any
    params: Any = None

    def __eq__(self, other: object) -> bool:
        # By identity: environments know no equality, and parameters may be arrays.
        return isinstance(other, GymnaxGame) and self.env is other.env and self.params is other.params

    def __hash__(self) -> int:
        return hash((id(self.env), id(self.params)))

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(getattr(self.env, "name", type(self.env).__name__))

    @property
    def num_players(self) -> int:
        return 1

    @property
    def has_stones(self) -> bool:  # type: ignore[override]
        return False

    @property
    def num_actions(self) -> int:
        return int(self.env.num_actions)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return tuple(self._seen.shape)

    @property
    def settings(self) -> Any:
        """The parameters that the environment runs with."""
        return getattr(self.env, "default_params", None) if self.params is None else self.params

    @functools.cached_property
    def _seen(self) -> Any:
        return jax.eval_shape(lambda key: self.env.reset(key, self.settings)[0], jax.random.key(0))

    def observe(self, state: Any, /) -> jax.Array:
        """Give the observation of the last step as float32."""
        return state.observation.astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> Any:
        observation, inner = self.env.reset(arguments.need_key(self, "init", key), self.settings)
        return GymnaxState(
            inner=base.strongly_typed(inner),
            observation=base.strongly_typed(observation),
            to_play=jnp.zeros((), jnp.int32),
            terminated=jnp.zeros((), jnp.bool_),
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.zeros(1, jnp.float32),
        )

    def _legal(self, state: Any) -> jax.Array:
        return jnp.ones(self.num_actions, jnp.bool_)

    def _play(self, state: Any, action: jax.Array, key: jax.Array | None) -> Any:
        step = getattr(self.env, "step_env", None) or self.env.step
        observation, inner, reward, *flags, _ = step(
            arguments.need_key(self, "step", key), state.inner, action, self.settings
        )
        if len(flags) not in (1, 2):
            raise ValueError(f"The step of {self.name!r} returns {len(flags) + 4} values, expected 5 or 6.")
        if len(flags) == 1 and hasattr(self.env, "is_truncated"):
            flags.append(self.env.is_truncated(inner, self.settings))
        terminated, truncated = (jnp.asarray(flag, jnp.bool_).reshape(()) for flag in (*flags, False)[:2])
        after = GymnaxState(
            inner=inner,
            observation=observation,
            to_play=state.to_play,
            terminated=terminated,
            truncated=truncated & ~terminated,
            rewards=jnp.reshape(reward, 1),
        )
        return jax.tree.map(self._like, after, state)

    def _like(self, new: Any, old: jax.Array) -> jax.Array:
        """Cast what a step gave to the width it has in the state; another kind of number would lose what it tells."""
        given = jnp.result_type(new)
        if given == old.dtype:
            return jnp.asarray(new)
        if not jnp.can_cast(given, old.dtype, "same_kind"):
            raise TypeError(f"A step of {self.name!r} gives {given} for what `reset` gave as {old.dtype}.")
        return jnp.asarray(new, old.dtype)
