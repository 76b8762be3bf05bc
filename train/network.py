"""The network: convolutions over the board, then one head for moves and one for the value.

Flax's nnx defines it, but nothing outside this file sees a module: parameters are a plain nested dict of
arrays, and a `Network` is a hashable description that is called as `network(params, observation)`. That is
cheap to call under `jax.jit`, needs no Flax to read a checkpoint, and makes equal models compare equal.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

Params = Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network:
    """A residual tower of 3 x 3 convolutions with layer norm; each row of a batch is judged on its own."""

    observation_shape: tuple[int, ...]  # (height, width, planes)
    num_actions: int
    channels: int
    blocks: int

    def __post_init__(self) -> None:
        if len(self.observation_shape) != 3:
            raise ValueError(
                f"`observation_shape` is {self.observation_shape}, expected (height, width, planes): "
                "this network looks at boards; train other games with a network of your own."
            )

    def init(self, key: jax.Array) -> Params:
        """Draw parameters: a nested dict of float32 arrays."""
        return nnx.to_pure_dict(nnx.state(_Tower(self, nnx.Rngs(key)), nnx.Param))

    def __call__(self, params: Params, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Judge positions `[B, height, width, planes]`: `prior_logits [B, A]`, `value [B]` in (-1, 1).

        The value is in the view of the player to move, as the observation is. Illegal moves have logits too.
        """
        return nnx.merge(_definition(self), params)(observation)


@functools.lru_cache
def _definition(network: Network) -> Any:
    """The module's structure without its arrays; nothing is computed."""
    abstract = nnx.eval_shape(lambda: _Tower(network, nnx.Rngs(0)))
    return nnx.split(abstract, nnx.Param)[0]


class _Tower(nnx.Module):
    def __init__(self, shape: Network, rngs: nnx.Rngs):
        height, width, planes = shape.observation_shape
        inputs = [planes] + [shape.channels] * (shape.blocks - 1)
        cells = height * width
        self.convolutions = nnx.List(
            nnx.Conv(count, shape.channels, (3, 3), use_bias=False, rngs=rngs) for count in inputs
        )
        self.norms = nnx.List(nnx.LayerNorm(shape.channels, rngs=rngs) for _ in inputs)
        self.value_hidden = nnx.Linear(cells * shape.channels, 2 * shape.channels, rngs=rngs)
        # Zeros, so that an untrained network has no opinion: any other would be believed by the first searches.
        output = functools.partial(nnx.Linear, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)
        self.policy = output(cells * shape.channels, shape.num_actions)
        self.value = output(2 * shape.channels, 1)

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = observation.astype(jnp.float32)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            y = jax.nn.relu(norm(convolution(x)))
            x = x + y if x.shape == y.shape else y
        x = x.reshape(x.shape[0], -1)
        hidden = jax.nn.relu(self.value_hidden(x))
        return self.policy(x), jnp.tanh(self.value(hidden))[:, 0]
