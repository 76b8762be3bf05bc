"""Ready-made evaluators of game states: a network on observations, random rollouts.

An evaluator is `evaluator(params, keys [B], state) -> (prior_logits [B, A], value [B])`, in the view of the player
to move. They are frozen dataclasses, so that models built from equal parts are equal and do not retrace.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.model import Env, Evaluator, PyTree


def network_evaluator(env: Env, apply_fn: Callable[[PyTree, jax.Array], tuple[Any, ...]]) -> Evaluator:
    """Evaluate by a network: `apply_fn(params, observation [B, ...]) -> (prior_logits [B, A], value [B])`.

    What it returns beyond that, `extras [B, ...]`, rules see as `node.extras`.
    """
    return _Network(env, apply_fn)


def rollout_evaluator(env: Env, num_rollouts: int, max_steps: int | None = None) -> Evaluator:
    """Evaluate by the mean return of `num_rollouts` games played at random from the state.

    Logits are 0 (uniform). Returns are undiscounted and in the view of the player to move; a game cut off after
    `max_steps` steps (default: never) counts what it earned so far. Parameters are ignored.
    """
    checks.positive("num_rollouts", num_rollouts)
    if max_steps is not None:
        checks.count("max_steps", max_steps)
    return _Rollout(env, num_rollouts, max_steps)


@dataclasses.dataclass(frozen=True)
class _Network:
    env: Env
    apply_fn: Callable[[PyTree, jax.Array], tuple[Any, ...]]

    def __call__(self, params: PyTree, keys: jax.Array, state: Any) -> Any:
        del keys
        return self.apply_fn(params, jax.vmap(self.env.observe)(state))


@dataclasses.dataclass(frozen=True)
class _Rollout:
    env: Env
    num_rollouts: int
    max_steps: int | None

    def __call__(self, params: PyTree, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
        del params
        rollout_keys = jax.vmap(lambda key: jax.random.split(key, self.num_rollouts))(keys)  # [B, R]
        starts = jax.tree.map(lambda x: jnp.repeat(x, self.num_rollouts, axis=0), state)
        returns = self._play(rollout_keys.reshape(-1), starts).reshape(rollout_keys.shape)
        return jnp.zeros((keys.shape[0], self.env.num_actions)), jnp.mean(returns, axis=1)

    def _play(self, keys: jax.Array, start: Any) -> jax.Array:
        """Play every game at once to its end; returns the starting movers' summed rewards `[B * R]`."""
        observer = start.to_play[:, None]
        limit = jnp.iinfo(jnp.int32).max if self.max_steps is None else self.max_steps

        def running(carry: tuple[jax.Array, Any, jax.Array]) -> jax.Array:
            ply, state, _ = carry
            return (ply < limit) & ~jnp.all(state.terminated | state.truncated)

        def step(carry: tuple[jax.Array, Any, jax.Array]) -> tuple[jax.Array, Any, jax.Array]:
            ply, state, returns = carry
            step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, ply)
            action_keys, env_keys = jnp.moveaxis(jax.vmap(jax.random.split)(step_keys), 1, 0)
            action = jax.vmap(_random_action)(action_keys, jax.vmap(self.env.legal_action_mask)(state))
            state = jax.vmap(self.env.step)(state, action, env_keys)
            return ply + 1, state, returns + jnp.take_along_axis(state.rewards, observer, axis=1)[:, 0]

        zero = start.rewards[:, 0] * 0
        return jax.lax.while_loop(running, step, (jnp.int32(0), start, zero))[2]


def _random_action(key: jax.Array, legal_action_mask: jax.Array) -> jax.Array:
    """Draw a legal action uniformly: the k-th legal one for a random k. One random number a move."""
    rank = jnp.cumsum(legal_action_mask)
    chosen = jax.random.randint(key, (), 0, jnp.maximum(rank[-1], 1)) + 1
    return jnp.argmax(rank == chosen).astype(jnp.int32)
