"""Variance-aware rules with a prior: UCB-V put through the reading of PUCT as policy optimisation (Weichart 2025).

    UCT-V-P   Q + sqrt(2 z P Var ln N(s) / (1 + N)) + 3 c b z P ln N(s) / (1 + N)
    PUCT-V    Q + P sqrt(2 z Var N(s)) / (1 + N)    + 3 c b z P ln N(s) / (1 + N)

Q and Var are those of the edge's returns, scaled to [0, 1] by the node's own range (Var by its square), 0 where
unvisited; b is the width of that range. arXiv 2512.21648; the forms and z = c = b = 1 are those of the author's program
(Max-We/inverse-rpo, action_selection.py). Both need `variance_backup`. For noisy values: an edge whose returns agree
is left sooner than PUCT leaves it.
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import by_siblings, edge_variance, sibling_range
from jaxmcts.rules.pick import best
from jaxmcts.rules.puct import prior_bonus
from jaxmcts.tree import Node


def uct_v_p_scores(node: Node, *, z: Number = 1.0, c: Number = 1.0) -> jax.Array:
    """Score the edges `[A]` by UCT-V-P: the bonus grows like sqrt(ln N)."""
    log_visits = _log_visits(node)
    spread = jnp.sqrt(prior_bonus(node, 2 * z * _scaled_variance(node) * log_visits))
    return by_siblings(node) + spread + prior_bonus(node, 3 * c * z * log_visits)


def uct_v_p(node: Node, *, z: Number = 1.0, c: Number = 1.0) -> jax.Array:
    """Select by UCT-V-P."""
    return best(node, uct_v_p_scores(node, z=z, c=c))


def puct_v_scores(node: Node, *, z: Number = 1.0, c: Number = 1.0) -> jax.Array:
    """Score the edges `[A]` by PUCT-V: the bonus grows like sqrt(N), as PUCT's."""
    spread = prior_bonus(node, jnp.sqrt(2 * z * _scaled_variance(node) * node.total_visits))
    return by_siblings(node) + spread + prior_bonus(node, 3 * c * z * _log_visits(node))


def puct_v(node: Node, *, z: Number = 1.0, c: Number = 1.0) -> jax.Array:
    """Select by PUCT-V."""
    return best(node, puct_v_scores(node, z=z, c=c))


def _log_visits(node: Node) -> jax.Array:
    return jnp.log(node.total_visits.astype(node.q.dtype))


def _scaled_variance(node: Node) -> jax.Array:
    low, high = sibling_range(node)
    return edge_variance(node) / jnp.maximum(high - low, 1e-8) ** 2
