"""The network: convolutions over the board or dense layers, then one head for moves and one for the value.

Flax's nnx defines it, but nothing outside this file sees a module: parameters are a plain nested dict of
arrays, and a `Network` is a hashable description that is called as `network(params, observation)`. That is
cheap to call under `jax.jit`, needs no Flax to read a checkpoint, and makes equal models compare equal.
"""

import dataclasses
import functools
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from jaxmcts.model import Env
from train.config import Config

Params = Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network:
    """Residual layers with layer norm: 3 x 3 convolutions that keep the board's size, or dense ones.

    Each row of a batch is judged on its own, and alike in training and in play.
    """

    kind: Literal["convolutions", "mlp"] = "convolutions"
    observation_shape: tuple[int, ...]  # (height, width, planes) for convolutions, anything for dense layers
    num_actions: int
    channels: int
    blocks: int

    def __post_init__(self) -> None:
        if self.kind == "convolutions" and len(self.observation_shape) != 3:
            raise ValueError(
                f"`observation_shape` is {self.observation_shape}, expected (height, width, planes): "
                'convolutions look at boards; choose `network` "mlp" for a game without one.'
            )

    def init(self, key: jax.Array) -> Params:
        """Draw parameters: a nested dict of float32 arrays."""
        return nnx.to_pure_dict(nnx.state(_Layers(self, nnx.Rngs(key)), nnx.Param))

    def __call__(self, params: Params, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Judge positions `[B, *observation_shape]`: `prior_logits [B, A]`, `value [B]` in (-1, 1).

        The value is in the view of the player to move, as the observation is. Illegal moves have logits too.
        """
        return nnx.merge(_definition(self), params)(observation)


def make_network(env: Env, config: Config) -> Network:
    """Size the network of a config for a game. Raises `ValueError` if it cannot look at the game."""
    return Network(
        kind=config.network,
        observation_shape=env.observation_shape,
        num_actions=env.num_actions,
        channels=config.channels,
        blocks=config.blocks,
    )


@functools.lru_cache
def _definition(network: Network) -> Any:
    """The module's structure without its arrays; nothing is computed."""
    abstract = nnx.eval_shape(lambda: _Layers(network, nnx.Rngs(0)))
    return nnx.split(abstract, nnx.Param)[0]


class _Layers(nnx.Module):
    def __init__(self, shape: Network, rngs: nnx.Rngs):
        layer: Any = nnx.Linear
        self.input_shape: tuple[int, ...] = (math.prod(shape.observation_shape),)
        if shape.kind == "convolutions":
            layer = functools.partial(nnx.Conv, kernel_size=(3, 3))
            self.input_shape = shape.observation_shape
        *board, inputs = self.input_shape
        cells = math.prod(board)
        counts = [inputs] + [shape.channels] * (shape.blocks - 1)
        self.layers = nnx.List(layer(count, shape.channels, use_bias=False, rngs=rngs) for count in counts)
        self.norms = nnx.List(nnx.LayerNorm(shape.channels, rngs=rngs) for _ in counts)
        self.value_hidden = nnx.Linear(cells * shape.channels, 2 * shape.channels, rngs=rngs)
        # Zeros, so that an untrained network has no opinion: any other would be believed by the first searches.
        output = functools.partial(nnx.Linear, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)
        self.policy = output(cells * shape.channels, shape.num_actions)
        self.value = output(2 * shape.channels, 1)

    def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = observation.astype(jnp.float32).reshape(-1, *self.input_shape)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            y = jax.nn.relu(norm(layer(x)))
            x = x + y if x.shape == y.shape else y
        x = x.reshape(x.shape[0], -1)
        hidden = jax.nn.relu(self.value_hidden(x))
        return self.policy(x), jnp.tanh(self.value(hidden))[:, 0]
