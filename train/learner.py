"""Learning: draw positions, mirror them at random, take one optimizer step.

One step is one compiled call: inside a loop of the compiler, the weight gradient of a convolution is about
80 times slower on the CPU.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from envs.base import Symmetry
from jaxmcts.model import Env
from train import replay as replay_ring
from train.config import Config
from train.network import Network, Params
from train.replay import Replay
from train.targets import Sample


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Learner:
    """What training changes and a checkpoint keeps."""

    params: Params
    opt_state: Any
    updates: jax.Array  # [] int32: steps taken, skipped ones included


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Batch:
    """Positions as the network sees them, and its targets, all in the view of the player to move."""

    observation: jax.Array  # [B, height, width, planes]
    legal_action_mask: jax.Array  # [B, A] bool
    action_weights: jax.Array  # [B, A] float32
    value: jax.Array  # [B] float32


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """AdamW on clipped gradients; the rate falls along a cosine to a tenth over the whole run.

    A step whose gradient is not finite is skipped, however many come in a row: `apply_if_finite` lets one
    through after its limit, so the limit is out of reach and the run itself must look at the count.
    """
    rate = optax.cosine_decay_schedule(config.learning_rate, config.iterations * config.updates, alpha=0.1)
    adamw = optax.adamw(rate, weight_decay=config.weight_decay, mask=_decayed)
    return optax.apply_if_finite(
        optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adamw), max_consecutive_errors=2**31 - 1
    )


def _decayed(params: Params) -> Any:
    """Matrices and kernels decay; biases and norms, which have one axis, do not."""
    return jax.tree.map(lambda x: x.ndim > 1, params)


def start(key: jax.Array, network: Network, optimizer: optax.GradientTransformation) -> Learner:
    """Begin with random parameters."""
    params = network.init(key)
    return Learner(params=params, opt_state=optimizer.init(params), updates=jnp.int32(0))


def update(
    learner: Learner,
    replay: Replay,
    key: jax.Array,
    *,
    env: Env,
    network: Network,
    optimizer: optax.GradientTransformation,
    batch: int,
    symmetries: tuple[Symmetry, ...],
    value_weight: float,
) -> tuple[Learner, dict[str, jax.Array]]:
    """Take one step on `batch` positions drawn from `replay`; returns the new learner and scalars to log."""
    sample_key, mirror_key = jax.random.split(key)
    positions = observe(env, replay_ring.sample(replay, sample_key, batch))
    positions = mirror(mirror_key, positions, symmetries)
    gradient, metrics = jax.grad(loss, has_aux=True)(learner.params, positions, network, value_weight)
    updates, opt_state = optimizer.update(gradient, learner.opt_state, learner.params)
    metrics |= {
        "gradient_norm": optax.tree.norm(gradient),
        "update_norm": optax.tree.norm(updates),
        "skipped_updates": opt_state.total_notfinite,
        "skipped_in_a_row": opt_state.notfinite_count,
    }
    params = optax.apply_updates(learner.params, updates)
    return Learner(params=params, opt_state=opt_state, updates=learner.updates + 1), metrics


def observe(env: Env, sample: Sample) -> Batch:
    """Unpack stored states `[B]` into what the network sees."""
    return Batch(
        observation=jax.vmap(env.observe)(sample.state),
        legal_action_mask=jax.vmap(env.legal_action_mask)(sample.state),
        action_weights=sample.action_weights,
        value=sample.value,
    )


def mirror(key: jax.Array, batch: Batch, symmetries: tuple[Symmetry, ...]) -> Batch:
    """Turn each row by a symmetry of its own: board, mask and policy together."""
    count = batch.value.shape[0]
    choice = jax.random.randint(key, (count,), 0, len(symmetries))

    def choose(images: list[jax.Array]) -> jax.Array:
        return jnp.stack(images)[choice, jnp.arange(count)]

    return dataclasses.replace(
        batch,
        observation=choose([s.observation(batch.observation) for s in symmetries]),
        legal_action_mask=choose([s.policy(batch.legal_action_mask) for s in symmetries]),
        action_weights=choose([s.policy(batch.action_weights) for s in symmetries]),
    )


def loss(params: Params, batch: Batch, network: Network, value_weight: float) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Cross-entropy of the policy over the legal moves plus the weighted squared error of the value.

    Illegal moves get the lowest finite logit and so no gradient. `policy_kl` is the cross-entropy above its
    minimum, the entropy of the targets: 0 is a network that knows what the search finds.
    """
    logits, value = network(params, batch.observation)
    logits = jnp.where(batch.legal_action_mask, logits, jnp.finfo(logits.dtype).min)
    policy_loss = jnp.mean(optax.softmax_cross_entropy(logits, batch.action_weights))
    value_loss = jnp.mean(jnp.square(value - batch.value))
    entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(batch.action_weights), axis=-1))
    total = policy_loss + value_weight * value_loss
    return total, {
        "loss": total,
        "policy_loss": policy_loss,
        "policy_kl": policy_loss - entropy,
        "value_loss": value_loss,
    }
