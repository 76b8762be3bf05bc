"""What the network is to say at each position: the search's policy, and how the game went on.

A game that the end of an iteration cuts short is not thrown away and not waited for: its value target
rests on the network's own judgement of the position it was left in, as it does where rules cut a game
short. With `td_lambda` 1 every other target is the plain result of the game.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from train.selfplay import Trajectory


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """One position and what to learn from it; batched along a leading axis."""

    state: Any
    action_weights: jax.Array  # [A] float32, sums to 1, 0 where illegal
    value: jax.Array  # [] float32, in the view of the player to move


def samples(trajectory: Trajectory, td_lambda: float) -> Sample:
    """Turn moves `[T, B]` into samples `[T * B]`, moves of the same time together."""
    value = returns(trajectory.reward, trajectory.discount, trajectory.next_value, trajectory.done, td_lambda)
    sample = Sample(state=trajectory.state, action_weights=trajectory.action_weights, value=value)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), sample)


def returns(
    reward: jax.Array, discount: jax.Array, next_value: jax.Array, done: jax.Array, td_lambda: float
) -> jax.Array:
    """Compute λ-returns `[T, B]`, each in the view of the player to move there.

    G(t) = reward(t) + discount(t) * ((1 - λ) next_value(t) + λ G(t + 1)), with `next_value` in the place of
    G(t + 1) at the end of the segment and where the game was done. The signed discount turns the view, so
    a player may move twice in a row; it is 0 where the game was decided (Sutton and Barto 2018, 12.1).
    """

    def backward(later: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        reward, discount, next_value, done = now
        mixed = (1 - td_lambda) * next_value + td_lambda * later
        value = reward + discount * jnp.where(done, next_value, mixed)
        return value, value

    inputs = (reward, discount, next_value, done)
    return jax.lax.scan(backward, next_value[-1], inputs, reverse=True)[1]
