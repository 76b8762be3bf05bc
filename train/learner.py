"""Learning: draw positions, mirror them at random, take one optimizer step.

One step is one compiled call: inside a loop of the compiler, the weight gradient of a convolution is about
80 times slower on the CPU.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from envs.symmetry import Symmetry
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
    average: Params | None  # running mean of `params`; None, which takes no memory, for a run that keeps none
    opt_state: Any
    updates: jax.Array  # [] int32: steps taken, skipped ones included

    @property
    def playing(self) -> Params:
        """The parameters that self-play, matches and the agent use: the running mean where there is one."""
        return self.params if self.average is None else self.average


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Batch:
    """Positions as the network sees them, and its targets, all in the view of the player to move."""

    observation: jax.Array  # [B, height, width, planes]
    legal_action_mask: jax.Array  # [B, A] bool
    action_weights: jax.Array  # [B, A] float32
    policy_weight: jax.Array  # [B] float32: 1, or 0 where no policy is to be learned
    value: jax.Array  # [B] float32


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """AdamW on clipped gradients, at the rate of `learning_rate`.

    A step whose gradient is not finite is skipped, however many come in a row: `apply_if_finite` lets one
    through after its limit, so the limit is out of reach and the run itself must look at the count.
    """
    adamw = optax.adamw(learning_rate(config), weight_decay=config.weight_decay, mask=_decayed)
    return optax.apply_if_finite(
        optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adamw), max_consecutive_errors=2**31 - 1
    )


def learning_rate(config: Config) -> optax.Schedule:
    """Rise along a line for `warmup_updates`, then fall along a cosine over the rest of the run.

    The line begins one step above 0, for an update at rate 0 would be wasted.
    """
    return optax.warmup_cosine_decay_schedule(
        init_value=config.learning_rate / (config.warmup_updates + 1),
        peak_value=config.learning_rate,
        warmup_steps=config.warmup_updates,
        decay_steps=config.iterations * config.updates,
        end_value=config.learning_rate * config.final_learning_rate,
    )


def _decayed(params: Params) -> Any:
    """Matrices and kernels decay; biases and norms, which have one axis, do not."""
    return jax.tree.map(lambda x: x.ndim > 1, params)


def start(
    key: jax.Array, network: Network, optimizer: optax.GradientTransformation, *, average_decay: float
) -> Learner:
    """Begin with random parameters; a running mean of them is kept if `average_decay` is above 0."""
    params = network.init(key)
    return Learner(
        params=params,
        average=jax.tree.map(jnp.copy, params) if average_decay else None,  # copied: a buffer is donated once
        opt_state=optimizer.init(params),
        updates=jnp.int32(0),
    )


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
    average_decay: float,
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
    count = learner.updates + 1
    average = learner.average
    if average is not None:
        step_size = _average_step(count - opt_state.total_notfinite, average_decay) * opt_state.last_finite
        average = optax.incremental_update(params, average, step_size)
    return Learner(params=params, average=average, opt_state=opt_state, updates=count), metrics


def _average_step(count: jax.Array, decay: float) -> jax.Array:
    """Give the share of the newest weights in the running mean after `count` updates, of which it is the last.

    That is 1 / count until it falls to 1 - decay: first the plain mean of all weights so far, then the exponential
    one. So the random weights of the start have no part in it, and it needs no correction.
    """
    return jnp.maximum(1 - decay, 1 / jnp.maximum(count, 1))


def observe(env: Env, sample: Sample) -> Batch:
    """Unpack stored states `[B]` into what the network sees."""
    return Batch(
        observation=jax.vmap(env.observe)(sample.state),
        legal_action_mask=jax.vmap(env.legal_action_mask)(sample.state),
        action_weights=sample.action_weights,
        policy_weight=sample.policy_weight,
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

    The policy's part is a mean over the rows with a `policy_weight`, 0 if there are none. Illegal moves get the
    lowest finite logit and so no gradient. `policy_kl` is the cross-entropy above its minimum, the entropy of the
    targets: 0 is a network that knows what the search finds.
    """
    logits, value = network(params, batch.observation)
    logits = jnp.where(batch.legal_action_mask, logits, jnp.finfo(logits.dtype).min)

    def mean(by_row: jax.Array) -> jax.Array:
        return jnp.sum(batch.policy_weight * by_row) / jnp.maximum(jnp.sum(batch.policy_weight), 1)

    policy_loss = mean(optax.softmax_cross_entropy(logits, batch.action_weights))
    value_loss = jnp.mean(jnp.square(value - batch.value))
    entropy = mean(jnp.sum(jax.scipy.special.entr(batch.action_weights), axis=-1))
    total = policy_loss + value_weight * value_loss
    return total, {
        "loss": total,
        "policy_loss": policy_loss,
        "policy_kl": policy_loss - entropy,
        "value_loss": value_loss,
    }
