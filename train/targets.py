"""What the network is to say at each position: the search's policy, and how the game went on.

A game that the end of an iteration cuts short is not thrown away and not waited for: its value target
rests on the network's own judgement of the position it was left in, as it does where rules cut a game
short. With `td_lambda` 1 and `td_steps` 0 every other target is the plain result of the game.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts.model import Env
from train.selfplay import Trajectory


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """One position and what to learn from it; batched along a leading axis."""

    state: Any
    action_weights: jax.Array  # [A] float32, sums to 1, 0 where illegal
    policy_weight: jax.Array  # [] float32: 1, or 0 if only the value is to be learned
    value: jax.Array  # [] float32, in the view of the player to move


def empty_sample(env: Env, state: Any) -> Sample:
    """Make a sample of one state without anything to learn: what a replay of samples is made for."""
    zero = jnp.zeros(())
    return Sample(state=state, action_weights=jnp.zeros(env.num_actions), policy_weight=zero, value=zero)


def samples(trajectory: Trajectory, *, td_lambda: float, td_steps: int, search_value_share: float) -> Sample:
    """Turn moves `[T, B]` into samples `[T * B]`, moves of the same time together.

    The value is (1 - share) * return + share * the search's value of the position itself.
    """
    later = returns(
        trajectory.reward,
        trajectory.discount,
        trajectory.next_value,
        trajectory.done,
        td_lambda=td_lambda,
        td_steps=td_steps,
    )
    sample = Sample(
        state=trajectory.state,
        action_weights=trajectory.action_weights,
        policy_weight=trajectory.policy_weight,
        value=(1 - search_value_share) * later + search_value_share * trajectory.value,
    )
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), sample)


def returns(
    reward: jax.Array,
    discount: jax.Array,
    next_value: jax.Array,
    done: jax.Array,
    *,
    td_lambda: float,
    td_steps: int,
) -> jax.Array:
    """Compute λ-returns over `td_steps` moves, `[T, B]`, each in the view of the player to move there.

    G(t, n) = reward(t) + discount(t) * ((1 - λ) next_value(t) + λ G(t + 1, n - 1)) with G(t, 0) the value of the
    position at t, and with `next_value(t)` in the place of the bracket at the end of the segment and where the game was
    done. 0 steps mean no limit. The signed discount turns the view, so a player may move twice in a row; it is 0
    where the game was decided (Sutton and Barto 2018, 7.1 and 12.3).
    """

    def extend(_: int, later: jax.Array) -> jax.Array:
        value = now(later)
        return jnp.concatenate([value[1:], next_value[-1:]])

    def now(later: jax.Array) -> jax.Array:
        mixed = (1 - td_lambda) * next_value + td_lambda * later
        return reward + discount * jnp.where(done, next_value, mixed)

    steps = reward.shape[0]
    horizon = min(td_steps, steps) if td_steps else steps
    return now(jax.lax.fori_loop(0, horizon - 1, extend, next_value))
