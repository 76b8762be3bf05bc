"""What is known while tracing is checked at the public boundary, with a sentence that says what to do.

What only the device can know (a finished game in the batch, NaN from a network) never raises: see `tree.Flags`.
"""

import dataclasses
import inspect
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmcts.model import Evaluation, Model, PyTree, Transition

T = TypeVar("T")


def count(name: str, number: Any) -> None:
    """Demand a Python int of at least 0."""
    _static(name, number)
    if number < 0:
        raise ValueError(f"`{name}` is {number}, expected 0 or more.")


def positive(name: str, number: Any, *, most: int | None = None) -> None:
    """Demand a Python int of at least 1, and of at most `most`."""
    _static(name, number)
    if number < 1:
        raise ValueError(f"`{name}` is {number}, expected 1 or more.")
    if most is not None and number > most:
        raise ValueError(f"`{name}` is {number}, expected {most} or fewer.")


def _static(name: str, number: Any) -> None:
    if isinstance(number, jax.core.Tracer):
        raise TypeError(
            f"`{name}` arrived traced, expected a Python int: it sets array sizes, so mark it static in `jax.jit`."
        )
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"`{name}` is {number!r} of type {type(number).__name__}, expected a Python int.")


def fits(num_simulations: int, capacity: int) -> None:
    """Demand that a run on an empty tree has the slots it needs."""
    if num_simulations + 1 > capacity:
        raise ValueError(
            f"`num_simulations` is {num_simulations} but `capacity` is {capacity}: the tree needs at least "
            f"{num_simulations + 1} nodes; raise `capacity` in `init` or lower `num_simulations`."
        )


def arrays(tree: PyTree, name: str) -> PyTree:
    """Make every leaf a jax array, so that Python numbers and NumPy arrays are welcome."""

    def leaf(x: Any) -> jax.Array:
        try:
            return jnp.asarray(x)
        except TypeError as error:
            raise TypeError(f"`{name}` has a leaf {x!r} of type {type(x).__name__}, expected arrays.") from error

    return jax.tree.map(leaf, tree)


def function(name: str, given: Any, *arguments: str) -> None:
    """Demand a function that can be called with so many arguments."""
    call = f"`{name}({', '.join(arguments)})`"
    if not callable(given):
        raise TypeError(f"`{name}` is {given!r}, expected a function that is called as {call}.")
    try:
        signature = inspect.signature(given)
    except ValueError:  # some that are not written in Python do not tell
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise TypeError(
            f"`{name}` is {given!r}, which cannot be called as {call}: {error}. Pass a function that takes just these: "
            "bind constants with `jax.tree_util.Partial`, and call what makes a rule or a backup, as `amaf.grave()`."
        ) from error


def model(given: Any) -> None:
    """Demand a hashable `Model`."""
    if not isinstance(given, Model):
        raise TypeError(f"`model` is a {type(given).__name__}, expected a `jaxmcts.Model`.")
    try:
        hash(given)
    except TypeError as error:
        raise TypeError(
            f"`model` cannot be hashed ({error}): its functions must not hold arrays; pass those through `params`."
        ) from error


def batch_size(state: PyTree) -> int:
    """Return the leading length that all leaves of `state [B, ...]` share."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(state)]
    if not shapes:
        raise ValueError("`state` has no arrays, expected a pytree of arrays with a leading batch axis.")
    if any(len(shape) == 0 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"`state` has leaves of shapes {shapes}, expected one leading batch axis on all of them: for a single "
            "position add an axis of length 1 to every leaf."
        )
    if shapes[0][0] == 0:
        raise ValueError("`state` has batch size 0, expected at least one row.")
    size: int = shapes[0][0]  # or a symbol, where `jax.export` traces for every batch size at once
    return size


def pair(given: Any, name: str, expected: str) -> tuple[Any, Any]:
    """Demand two results of a function of the caller's."""
    if not (isinstance(given, tuple) and len(given) == 2):
        raise TypeError(f"`{name}` returned {type(given).__name__}, expected a pair ({expected}).")
    return given


def evaluation(
    given: Evaluation, batch_size: int, *, num_actions: int | None = None, name: str = "evaluate"
) -> Evaluation:
    """Demand `prior_logits [B, A]`, `value [B]`, `legal_action_mask [B, A]` of sensible dtypes."""
    if not isinstance(given, Evaluation):
        raise TypeError(f"`{name}` gave a {type(given).__name__}, expected a `jaxmcts.Evaluation`.")
    given = dataclasses.replace(
        given,
        prior_logits=jnp.asarray(given.prior_logits),
        value=jnp.asarray(given.value),
        legal_action_mask=jnp.asarray(given.legal_action_mask),
        extras=arrays(given.extras, "extras"),
    )
    logits, mask = given.prior_logits, given.legal_action_mask
    if logits.ndim != 2 or logits.shape[0] != batch_size or logits.shape[1] == 0:
        raise ValueError(
            f"`{name}` gave `prior_logits` of shape {logits.shape}, expected (batch, actions) with batch {batch_size}."
        )
    if num_actions is not None and logits.shape[1] != num_actions:
        raise ValueError(
            f"`{name}` gave `prior_logits` for {logits.shape[1]} actions, but the root has {num_actions} (by "
            "`root_evaluation`, where one was given): every node needs the same number; mask the actions not there."
        )
    if mask.shape != logits.shape:
        raise ValueError(
            f"`{name}` gave `prior_logits` of shape {logits.shape} but `legal_action_mask` of shape {mask.shape}: "
            "both must be (batch, actions)."
        )
    if mask.dtype != jnp.bool_:
        raise TypeError(
            f"`{name}` gave `legal_action_mask` of dtype {mask.dtype}, expected bool where True means allowed: if this "
            "is mctx's `invalid_actions`, pass its negation."
        )
    _per_row(name, "value", given.value, batch_size)
    _number(name, "prior_logits", logits)
    for leaf in jax.tree.leaves(given.extras):
        if leaf.shape[:1] != (batch_size,):
            raise ValueError(
                f"`{name}` gave `extras` with a leaf of shape {leaf.shape}, expected a leading batch axis of "
                f"{batch_size}."
            )
    return given


def transition(given: Transition, batch_size: int, *, name: str = "step") -> Transition:
    """Demand `reward [B]` and `discount [B]`."""
    if not isinstance(given, Transition):
        raise TypeError(f"`{name}` gave a {type(given).__name__}, expected a `jaxmcts.Transition` and pending.")
    given = Transition(reward=jnp.asarray(given.reward), discount=jnp.asarray(given.discount))
    _per_row(name, "reward", given.reward, batch_size)
    _per_row(name, "discount", given.discount, batch_size)
    return given


def _per_row(name: str, field: str, array: jax.Array, batch_size: int) -> None:
    if array.shape != (batch_size,):
        advice = "squeeze the last axis" if array.shape == (batch_size, 1) else "give one number a row"
        raise ValueError(f"`{name}` gave `{field}` of shape {array.shape}, expected ({batch_size},): {advice}.")
    _number(name, field, array)


def _number(name: str, field: str, array: jax.Array) -> None:
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(f"`{name}` gave `{field}` of dtype {array.dtype}, expected floating point.")


def same_form(name: str, given: PyTree, root: PyTree, *, holder: str = "the tree holds") -> None:
    """Demand that what came back for `name` can be stored: the structure, shapes and dtypes that `holder` has."""
    given_form: Any = jax.tree.structure(given)
    root_form: Any = jax.tree.structure(root)
    if given_form != root_form:
        raise TypeError(
            f"`{name}` came back with structure {given_form}, but {holder} {root_form}: both must be the same."
        )
    for (path, new), old in zip(jax.tree.leaves_with_path(given), jax.tree.leaves(root), strict=True):
        if jnp.shape(new) != old.shape or jnp.result_type(new) != old.dtype:
            raise TypeError(
                f"`{name}`{jax.tree_util.keystr(path)} came back as {jnp.result_type(new)}{list(jnp.shape(new))}, but "
                f"{holder} {old.dtype}{list(old.shape)}: shape and dtype must stay the same; cast it."
            )


def action(given: Any, num_actions: int) -> jax.Array:
    """Demand one action from a rule; one out of range becomes the nearest in range."""
    if given is None:
        raise TypeError("a rule returned None, expected one action, an integer scalar.")
    array = jnp.asarray(given)
    if array.shape != () or not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(
            f"a rule returned {array.dtype}{list(array.shape)}, expected one action, an integer scalar: "
            "a rule sees one node; end it with `jaxmcts.rules.pick`."
        )
    return jnp.clip(array, 0, num_actions - 1).astype(jnp.int32)


def rule_state(given: PyTree, batch_size: int, capacity: int) -> None:
    """Demand leaves `[B, capacity, ...]`."""
    for leaf in jax.tree.leaves(given):
        if leaf.shape[:2] != (batch_size, capacity):
            raise ValueError(
                f"`rule_state` has a leaf of shape {leaf.shape}, expected it to begin with (batch, capacity) = "
                f"({batch_size}, {capacity})."
            )


def kept(given: Any, kind: type[T], *, backup: str, start: str) -> T:
    """Demand the `rule_state` that a backup keeps and a rule reads."""
    if not isinstance(given, kind):
        raise TypeError(
            f"`rule_state` is a {type(given).__name__}, expected `{kind.__name__}`: this rule reads what `{backup}` "
            f"keeps, so search with `backup={backup}` and `rule_state={start}`."
        )
    return given


def kept_array(given: Any, shape: tuple[int, ...], *, backup: str, start: str) -> jax.Array:
    """Demand the same where it is one array."""
    if getattr(given, "shape", None) != shape:
        raise TypeError(
            f"`rule_state` is {jax.tree.map(jnp.shape, given)}, expected an array of shape {shape}: this rule reads "
            f"what `{backup}` keeps, so search with `backup={backup}` and `rule_state={start}`."
        )
    return given


def constants(rules: PyTree, batch_size: int) -> None:
    """Demand that a rule's constants are scalars or have a leading batch axis."""
    for leaf in jax.tree.leaves(rules):
        if leaf.ndim > 0 and leaf.shape[0] != batch_size:
            raise ValueError(
                f"a constant of `select`, `root_select` or `backup` has shape {leaf.shape}, expected a scalar or a "
                f"leading batch axis of {batch_size}."
            )


def per_action(name: str, given: Any, logits: jax.Array) -> jax.Array:
    """Demand an array `[B, A]`."""
    array = jnp.asarray(given, logits.dtype)
    if array.shape != logits.shape:
        raise ValueError(f"`{name}` has shape {array.shape}, expected (batch, actions) = {logits.shape}.")
    return array


def per_row_number(name: str, given: Any, batch_size: int, *, low: float = -np.inf, high: float = np.inf) -> jax.Array:
    """Demand a number or one a row, from `low` to `high` as far as that is known while tracing; return `[B]`."""
    try:
        array = jnp.asarray(given, jnp.result_type(float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` is {given!r}, expected a number or one a row, ({batch_size},).") from error
    if not isinstance(array, jax.core.Tracer) and not np.all((low <= np.asarray(array)) & (np.asarray(array) <= high)):
        raise ValueError(f"`{name}` is {given}, expected numbers from {low:g} to {high:g}.")
    if array.shape not in ((), (batch_size,)):
        raise ValueError(f"`{name}` has shape {array.shape}, expected a number or one a row, ({batch_size},).")
    return jnp.broadcast_to(array, (batch_size,))


def finite(**constants: Any) -> None:
    """Demand numbers, one or several, that are finite as far as that is known while tracing."""
    for name, given in constants.items():
        try:
            array = jnp.asarray(given, jnp.result_type(float))
        except (TypeError, ValueError) as error:
            raise TypeError(f"`{name}` is {given!r}, expected a number or an array of them.") from error
        if not isinstance(array, jax.core.Tracer) and not np.all(np.isfinite(array)):
            raise ValueError(f"`{name}` is {given}, expected a finite number.")


def key(given: Any) -> jax.Array:
    """Demand random keys; return typed ones."""
    if given is None:
        raise TypeError("`key` is None, expected a random key: pass `jax.random.key(seed)`.")
    array = jnp.asarray(given)
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return array
    if array.dtype != jnp.uint32 or array.shape[-1:] != jax.eval_shape(jax.random.PRNGKey, 0).shape:
        raise TypeError(
            f"`key` is {array.dtype}{list(array.shape)}, expected a random key: pass `jax.random.key(seed)`."
        )
    return jax.random.wrap_key_data(array)
