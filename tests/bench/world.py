"""The benchmark's world: a hash decides everything, so that what is timed is the tree and not a network.

A state is a 32-bit hash, an action mixes itself into it, logits and value are hashes of the state. No two
edges of a node are alike, games never end and the players alternate. The integer arithmetic is that of
yardstick.cpp, bit for bit. With logits on [0, 12] the priors are as sharp as a trained network's and trees
are narrow; on [0, 3] they are flat.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

import jaxmcts

DISCOUNT = -1.0


@dataclasses.dataclass(frozen=True)
class Cell:
    """One benchmark: the sizes of a search and the world it is run in."""

    batch: int
    actions: int
    simulations: int
    scale: float = 12.0  # width of the prior logits
    fpu: float = -1.0  # value of an unvisited edge, in [-1, 1]
    payload: int = 0  # bytes of state that are carried along unread

    @property
    def label(self) -> str:
        return f"{self.batch} x {self.actions} x {self.simulations}, logits x{self.scale:g}, FPU {self.fpu:g}"


def roots(cell: Cell, seed: int = 0) -> np.ndarray:
    """Draw the root states `[B]`; every contestant gets the same."""
    return np.random.default_rng(seed).integers(0, 2**32, cell.batch, dtype=np.uint32)


def states(cell: Cell, hashes: np.ndarray) -> dict[str, jax.Array]:
    """Return the batched states of the JAX contestants, with their payload."""
    return {"hash": jnp.asarray(hashes), "payload": jnp.zeros((cell.batch, cell.payload), jnp.uint8)}


def mix(h: jax.Array) -> jax.Array:
    """Return MurmurHash3's finaliser of 32-bit integers."""
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def unit(h: jax.Array) -> jax.Array:
    """Map hashes to [0, 1), exactly: 24 bits fit a float32."""
    return (h >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)


def advance(state: dict[str, jax.Array], action: jax.Array) -> dict[str, jax.Array]:
    """Apply `action [B]`."""
    step = (action.astype(jnp.uint32) + 1) * jnp.uint32(0x9E3779B1)
    return {**state, "hash": mix(state["hash"] + step)}


def judge(state: dict[str, jax.Array], num_actions: int, scale: jax.Array | float) -> tuple[jax.Array, jax.Array]:
    """Return logits `[B, A]` and value `[B]`."""
    h = state["hash"]
    tags = jnp.arange(1, num_actions + 1, dtype=jnp.uint32) * jnp.uint32(0x85EBCA77)
    logits = unit(mix(h[:, None] ^ tags[None, :])) * jnp.asarray(scale, jnp.float32)
    return logits, unit(mix(h ^ jnp.uint32(0x68BC21EB))) * 2 - 1


@dataclasses.dataclass(frozen=True)
class HashStep:
    """`Model.step` of the world."""

    def __call__(self, params: Any, keys: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Any]:
        del params, keys
        reward = jnp.zeros(action.shape, jnp.float32)
        transition = jaxmcts.Transition(reward=reward, discount=jnp.full_like(reward, DISCOUNT))
        return transition, advance(state, action)


@dataclasses.dataclass(frozen=True)
class HashEvaluate:
    """`Model.evaluate` of the world; `params` is the width of the logits."""

    num_actions: int

    def __call__(self, params: Any, keys: jax.Array, pending: Any) -> tuple[Any, Any]:
        del keys
        logits, value = judge(pending, self.num_actions, params)
        legal = jnp.ones(logits.shape, bool)
        return jaxmcts.Evaluation(prior_logits=logits, value=value, legal_action_mask=legal), pending


def model(cell: Cell) -> jaxmcts.Model:
    """Return the world as our model."""
    return jaxmcts.Model(step=HashStep(), evaluate=HashEvaluate(cell.actions))


def recurrent_fn(cell: Cell, names: Any = mctx) -> Any:
    """Return the world as the `recurrent_fn` of `names`, mctx or ours; `params` is the width of the logits."""

    def step(params: Any, key: jax.Array, action: jax.Array, state: Any) -> tuple[Any, Any]:
        del key
        state = advance(state, action)
        logits, value = judge(state, cell.actions, params)
        reward = jnp.zeros_like(value)
        discount = jnp.full_like(value, DISCOUNT)
        output = names.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value)
        return output, state

    return step


def root_output(cell: Cell, state: Any, names: Any = mctx) -> Any:
    """Return the evaluated roots in the form of `names`."""
    logits, value = judge(state, cell.actions, cell.scale)
    return names.RootFnOutput(prior_logits=logits, value=value, embedding=state)
