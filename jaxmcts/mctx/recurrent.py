"""A root and a `recurrent_fn` of mctx's form as roots and a model of ours."""

import dataclasses
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp

from jaxmcts import checks
from jaxmcts.batching import vary_alike
from jaxmcts.mctx.base import RecurrentFn, RootFnOutput
from jaxmcts.model import Evaluation, Model, PyTree, Transition

State = tuple[PyTree, jax.Array]  # embedding [B, ...] and, as that may be empty, an array to know the batch from


@dataclasses.dataclass(frozen=True)
class KeyForm:
    """Gives keys the form of the key that the search was called with, typed or old."""

    is_typed: bool

    @classmethod
    def of(cls, key: Any) -> "KeyForm":
        return cls(is_typed=jnp.issubdtype(jnp.asarray(key).dtype, jax.dtypes.prng_key))

    def __call__(self, key: jax.Array) -> jax.Array:
        return key if self.is_typed else jax.random.key_data(key)


def root_of(root: RootFnOutput) -> tuple[Evaluation, State]:
    """Return the roots' evaluation and states."""
    value = jnp.asarray(root.value)
    if value.ndim != 1:
        raise ValueError(f"`root.value` has shape {value.shape}, expected (batch,).")
    batch_size = value.shape[0]
    logits = jnp.asarray(root.prior_logits)
    evaluation = checks.evaluation(_evaluation(logits, value, logits.dtype), batch_size, name="root")
    return evaluation, (checks.arrays(root.embedding, "root.embedding"), jnp.zeros((batch_size, 0)))


def model_of(
    recurrent_fn: RecurrentFn, params: PyTree, key: jax.Array, key_form: KeyForm, root: Evaluation, state: State
) -> tuple[Model, PyTree]:
    """Make a model of `recurrent_fn`, and the parameters of that model: all the arrays that the function uses.

    The function is traced here, once. So `params` need not be arrays; what it takes by closure may vary under a
    caller's `vmap`, and may change between calls, as in a function that is not compiled by itself.
    """
    batch_size, num_actions = root.prior_logits.shape
    embedding, _ = state
    arguments = vary_alike((key_form(key), jnp.zeros(batch_size, jnp.int32), embedding), root, state)
    traced, shapes = jax.make_jaxpr(lambda *rest: recurrent_fn(params, *rest), return_shape=True)(*arguments)
    checks.pair(shapes, "recurrent_fn", "RecurrentFnOutput, embedding")
    step = _Step(traced.jaxpr, jax.tree.structure(shapes), key_form, num_actions, root.extras.dtype)
    # Nothing of these is read. Varied by a caller's `vmap` wherever the rows are, they keep the function's batch at B.
    marks = [jnp.ravel(leaf)[:0] for leaf in jax.tree.leaves((key, root, state))]
    return Model(step=step, evaluate=_judged), (traced.consts, marks)


@dataclasses.dataclass(frozen=True, eq=False)
class _Step:
    """`Model.step`: all that `recurrent_fn` says, of which `evaluate` has nothing left to find out."""

    jaxpr: Any
    structure: Any  # of what `recurrent_fn` returns
    key_form: KeyForm
    num_actions: int
    logits_dtype: Any

    def __call__(
        self, params: PyTree, keys: jax.Array, state: State, action: jax.Array
    ) -> tuple[Transition, tuple[Evaluation, State]]:
        captured, _ = params
        embedding, mark = state
        call = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(self.jaxpr, captured))
        leaves = call(*jax.tree.leaves((self.key_form(keys[0]), action, embedding)))
        output, following = jax.tree.unflatten(self.structure, leaves)
        batch_size = action.shape[0]
        transition = Transition(reward=output.reward, discount=output.discount)
        evaluation = _evaluation(output.prior_logits, output.value, self.logits_dtype)
        return (
            checks.transition(transition, batch_size, name="recurrent_fn"),
            (
                checks.evaluation(evaluation, batch_size, num_actions=self.num_actions, name="recurrent_fn"),
                (_cast(following, embedding), mark),
            ),
        )


def _judged(params: PyTree, keys: jax.Array, judged: tuple[Evaluation, State]) -> tuple[Evaluation, State]:
    """`Model.evaluate`."""
    del params, keys
    return judged


def _evaluation(logits: jax.Array, value: jax.Array, dtype: Any) -> Evaluation:
    """To mctx every action is legal everywhere; invalid ones are for the root's selection function to leave out.

    The model's own logits are the extras, in the dtype of the root's.
    """
    legal = jnp.ones(logits.shape, bool)
    return Evaluation(prior_logits=logits, value=value, legal_action_mask=legal, extras=logits.astype(dtype))


def _cast(embedding: PyTree, like: PyTree) -> PyTree:
    """Give an embedding the root's dtypes, as storing it in mctx's tree does."""
    structure: Any = jax.tree.structure(embedding)
    if structure == jax.tree.structure(like):
        embedding = jax.tree.map(lambda x, old: x if x.dtype == old.dtype else x.astype(old.dtype), embedding, like)
    checks.same_form("embedding", embedding, like)
    return embedding
