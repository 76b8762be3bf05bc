"""MCTS as regularised policy optimisation (Grill et al. 2020): the policy that PUCT's visits only approach.

    pibar = argmax_pi  pi . q - lambda KL(P || pi),    lambda = c sqrt(S) / (A + S)
          = lambda P(a) / (alpha - q(a)),              alpha such that it sums to 1

A is the number of legal actions. Three uses: ACT, play by pibar at the root (`readout.sample`); SEARCH, descend by it
(`sampled_regularised` draws from it, `regularised` visits in proportion to it without drawing); LEARN, train towards it
(`readout.regularised_targets`). For few simulations per action, where visit counts are coarse.
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import Fpu, complete, fpu_parent
from jaxmcts.rules.pick import best, owed
from jaxmcts.tree import Node, Tree, read_node

_NUM_STEPS = 32


def regularised_policy(node: Node, *, c: Number = 1.25, fpu: Fpu = fpu_parent) -> jax.Array:
    """Return pibar `[A]`, 0 where the prior is; the prior where nothing was visited.

    `c` is PUCT's for values as they are: AlphaZero's 1.25, which is for [0, 1], is 2.5 on [-1, 1]. The paper
    leaves the value of unvisited edges to the search; here it is the node's own unless `fpu` says otherwise.
    """
    q = jnp.where(node.legal_action_mask, complete(node, fpu(node)), -jnp.inf)
    gap = jnp.max(q) - q  # below the best; infinite where illegal
    num_visits = node.child_visits.astype(node.q.dtype)
    strength = c * jnp.sqrt(num_visits) / (jnp.sum(node.legal_action_mask) + num_visits)
    policy = _solve(strength * node.prior, gap, strength)
    return jnp.where(strength > 0, policy, node.prior)


def _solve(weights: jax.Array, gap: jax.Array, strength: jax.Array) -> jax.Array:
    """Return weights / (gap + delta) `[A]` for the delta = alpha - max q > 0 that makes it sum to 1.

    delta lies between max(weights - gap), where one term alone is 1, and `strength`, the sum of the weights. Halving
    on a scale of logarithms finds it to full precision also where the best edge has next to no prior, and working
    with distances from the best q loses no digits to its size.
    """
    tiny = jnp.finfo(weights.dtype).tiny
    low = jnp.maximum(jnp.max(weights - gap), tiny)

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = jnp.sqrt(low) * jnp.sqrt(high)
        is_low = jnp.sum(weights / (gap + middle)) > 1
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    low, high = jax.lax.fori_loop(0, _NUM_STEPS, halve, (low, jnp.maximum(strength, low)))
    policy = weights / (gap + jnp.sqrt(low) * jnp.sqrt(high))
    return policy / jnp.maximum(jnp.sum(policy), tiny)


def regularised(node: Node, *, c: Number = 1.25, fpu: Fpu = fpu_parent) -> jax.Array:
    """Select the edge that is furthest behind pibar: the largest pibar(a) - N(a) / (1 + S). SEARCH without a key."""
    return best(node, owed(node, regularised_policy(node, c=c, fpu=fpu)))


def sampled_regularised(
    key: jax.Array, tree: Tree, index: jax.Array, *, c: Number = 1.25, fpu: Fpu = fpu_parent
) -> jax.Array:
    """Draw the edge from pibar, the paper's SEARCH. Use it as `Live(sampled_regularised)`."""
    node = read_node(tree, index)
    policy = regularised_policy(node, c=c, fpu=fpu)
    drawable = node.legal_action_mask & (policy > 0)  # none if constants made it no numbers: then by the prior
    logits = jnp.where(jnp.any(drawable), jnp.where(drawable, jnp.log(policy), -jnp.inf), node.prior_logits)
    return jax.random.categorical(key, logits)
