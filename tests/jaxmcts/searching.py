"""How the tests call the library: compiled, on stacks of table worlds."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

import jaxmcts
from tests import worlds

# Tests of outcomes do not need optimised code, which takes twice as long to compile.
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}


@functools.cache
def compiled(policy: Callable[..., Any], model: jaxmcts.Model = worlds.MODEL, **arguments: Any) -> Callable[..., Any]:
    """Compile `policy(params, key, state, ...)` for hashable arguments, once per set of them."""
    return jax.jit(
        lambda params, key, state: policy(params, key, state, model, **arguments),
        compiler_options=QUICK_TO_COMPILE,
    )


def params_of(*drawn: worlds.World, dtype: Any = np.float32) -> worlds.Tables:
    return jax.tree.map(jnp.asarray, worlds.stack(drawn, dtype))


def search_worlds(
    policy: Callable[..., Any], drawn: Sequence[worlds.World], *, seed: int = 0, **arguments: Any
) -> jaxmcts.PolicyOutput:
    """Search the roots of some worlds, a row each."""
    key = jax.random.key(seed)
    return compiled(policy, **arguments)(params_of(*drawn), key, worlds.roots(len(drawn)))


def plain_alphazero(*args: Any, **arguments: Any) -> jaxmcts.PolicyOutput:
    """AlphaZero without noise that plays the most visited action."""
    return jaxmcts.alphazero_policy(*args, dirichlet_fraction=0.0, temperature=0.0, **arguments)


def same_rule(select: Callable[..., jax.Array], backup: Any = jaxmcts.mean_backup) -> dict[str, Any]:
    """One rule at the root and below, as `run` and `search` take it."""
    return {"select": select, "root_select": select, "backup": backup}


def raw_puct(node: Any, *, c: float, fpu: Callable[[Any], jax.Array]) -> jax.Array:
    """A user's own rule made of the library's parts: Q + c P sqrt(N(s)) / (1 + N) on values as they are."""
    q = jaxmcts.qvalue.complete(node, fpu(node))
    scores = q + jaxmcts.rules.puct.exploration_bonus(node, c)
    return jaxmcts.rules.pick(scores, node.prior, node.legal_action_mask)


RAW_PUCT = Partial(raw_puct, c=1.25, fpu=jaxmcts.fpu_zero)
