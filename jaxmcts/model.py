"""What the user supplies: the world as two pure functions over a batch, and the protocol of a game.

`step` moves the world, `evaluate` judges where it arrived. They are apart so that the search can skip
evaluations nobody needs and so that an evaluator can be a network, random rollouts or a table. What
`step` hands to `evaluate` is called `pending`; it is never stored. The state that comes back from
`evaluate` is what the tree keeps at the node.

Everything a model computes is in the view of a mover: `reward` belongs to the player who moved,
`value` to the player to move next, and the signed `discount` joins the two,

    q(s, a) = reward + discount * value(s')

with `discount` = +gamma if the same player moves again, -gamma if the opponent does, 0 when the game is over.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

PyTree = Any
Number = jax.Array | float


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Transition:
    """What one step gives, in the view of the player who moved."""

    reward: jax.Array  # [B] float
    discount: jax.Array  # [B] float: +gamma same mover, -gamma other mover, 0 game over


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is known of a state before any search, in the view of the player to move there.

    A row of `legal_action_mask` that is all False is a finished state: nothing is searched below it.
    """

    prior_logits: jax.Array  # [B, A] float, unnormalised; illegal entries may hold anything
    value: jax.Array  # [B] float; 0 where terminated
    legal_action_mask: jax.Array  # [B, A] bool, True = allowed
    extras: PyTree = ()  # [B, ...], stored with the node


StepFn = Callable[[PyTree, jax.Array, PyTree, jax.Array], tuple[Transition, PyTree]]
EvaluateFn = Callable[[PyTree, jax.Array, PyTree], tuple[Evaluation, PyTree]]
Evaluator = Callable[[PyTree, jax.Array, PyTree], tuple[jax.Array, jax.Array] | tuple[jax.Array, jax.Array, PyTree]]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """The world: `step` and `evaluate`, both over a batch with per-row keys `[B]`.

    `step(params, keys, state, action) -> Transition, pending`
    `evaluate(params, keys, pending) -> Evaluation, state`

    What an outer `jax.vmap` or `jax.grad` varies must come through `params` or `state`, not by closure.
    Models with equal functions compare equal, so build the functions once (module level, or frozen
    callable dataclasses): a model made of fresh lambdas is compiled anew at every call.
    """

    step: StepFn
    evaluate: EvaluateFn


class EnvState(Protocol):
    """The fields of a game's state that the search reads; one game, no batch axis."""

    @property
    def to_play(self) -> jax.Array: ...  # [] int32
    @property
    def terminated(self) -> jax.Array: ...  # [] bool: decided by the rules
    @property
    def truncated(self) -> jax.Array: ...  # [] bool: cut short, value still counts
    @property
    def rewards(self) -> jax.Array: ...  # [P] float32, of the last step only


class Env(Protocol):
    """One game as pure functions over a single state; `jax.vmap` batches them.

    An instance is hashable and equal to another of the same options (a frozen dataclass), so a model
    made from it does not retrace. The mask is all False once the state is terminated or truncated.
    """

    @property
    def name(self) -> str: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def num_players(self) -> int: ...
    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    def init(self, key: jax.Array, /) -> Any: ...
    def step(self, state: Any, action: jax.Array, key: jax.Array | None = None, /) -> Any: ...
    def observe(self, state: Any, /) -> jax.Array: ...
    def legal_action_mask(self, state: Any, /) -> jax.Array: ...


def model_from_env(env: Env, evaluator: Evaluator, *, gamma: float = 1.0) -> Model:
    """Make a model of a game and an evaluator.

    `evaluator(params, keys [B], state) -> (prior_logits [B, A], value [B])` judges batched states in the
    view of the player to move; a third result becomes the `extras` of nodes, such as the expected error of the
    value. The model adds the legal mask, sets the value to 0 where terminated (a
    truncated state keeps its value), takes the mover's share of `rewards`, and signs the discount by
    who moves next. `gamma` is the discount per step, in [0, 1]. Raises `ValueError` for more than two players.
    """
    if env.num_players > 2:
        raise ValueError(
            f"`env` {env.name!r} has {env.num_players} players, expected 1 or 2: "
            "a scalar value in the mover's view cannot describe more."
        )
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"`gamma` is {gamma}, expected a number in [0, 1].")
    return Model(step=_EnvStep(env, float(gamma)), evaluate=_EnvEvaluate(env, evaluator))


@dataclasses.dataclass(frozen=True)
class _EnvStep:
    env: Env
    gamma: float

    def __call__(self, params: PyTree, keys: jax.Array, state: Any, action: jax.Array) -> tuple[Transition, Any]:
        del params
        after = jax.vmap(self.env.step)(state, action, keys)
        mover = state.to_play[:, None]
        reward = jnp.take_along_axis(after.rewards, mover, axis=1)[:, 0]
        sign = jnp.where(after.to_play == state.to_play, self.gamma, -self.gamma)
        return Transition(reward=reward, discount=jnp.where(after.terminated, 0.0, sign)), after


@dataclasses.dataclass(frozen=True)
class _EnvEvaluate:
    env: Env
    evaluator: Evaluator

    def __call__(self, params: PyTree, keys: jax.Array, state: Any) -> tuple[Evaluation, Any]:
        prior_logits, value, *extras = self.evaluator(params, keys, state)
        evaluation = Evaluation(
            prior_logits=prior_logits,
            value=jnp.where(state.terminated, 0, value),
            legal_action_mask=jax.vmap(self.env.legal_action_mask)(state),
            extras=extras[0] if extras else (),
        )
        return evaluation, state


def model_from_recurrent_fn(
    recurrent_fn: Callable[[PyTree, jax.Array, jax.Array, PyTree], tuple[Any, PyTree]],
) -> Model:
    """Make a model of mctx's `recurrent_fn(params, key, action [B], embedding) -> (output, embedding)`.

    `output` has `reward`, `discount`, `prior_logits` and `value`, with mctx's meaning, which is ours too.
    `recurrent_fn` receives the first row's key, so a stochastic one ties the rows of a batch together. It knows no
    root, so every search needs `root_evaluation`; inside the tree an action is legal if its logit lies above the
    dtype's lowest value.
    """
    return Model(step=_RecurrentStep(recurrent_fn), evaluate=_evaluate_recurrent)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _RecurrentPending:
    output: Any
    embedding: PyTree


@dataclasses.dataclass(frozen=True)
class _RecurrentStep:
    recurrent_fn: Callable[..., tuple[Any, PyTree]]

    def __call__(
        self, params: PyTree, keys: jax.Array, state: PyTree, action: jax.Array
    ) -> tuple[Transition, _RecurrentPending]:
        output, embedding = self.recurrent_fn(params, keys[0], action, state)
        transition = Transition(reward=output.reward, discount=output.discount)
        return transition, _RecurrentPending(output=output, embedding=embedding)


def _evaluate_recurrent(params: PyTree, keys: jax.Array, pending: _RecurrentPending) -> tuple[Evaluation, PyTree]:
    del params, keys
    if not isinstance(pending, _RecurrentPending):
        raise ValueError(
            "`root_evaluation` is missing: a model made by `model_from_recurrent_fn` cannot evaluate a "
            "root; pass `root_evaluation=Evaluation(prior_logits=..., value=..., legal_action_mask=...)`."
        )
    logits = pending.output.prior_logits
    evaluation = Evaluation(
        prior_logits=logits,
        value=pending.output.value,
        legal_action_mask=logits > jnp.finfo(logits.dtype).min,
    )
    return evaluation, pending.embedding
