"""UCT: UCB1 at every node, no prior in the bonus (Kocsis and Szepesvari 2006).

    score(a) = Q(a) + c sqrt(ln N(s) / N(a)),    unvisited edges first

N(s) counts the node's own evaluation. Browne et al. 2012 write the bonus as Cp sqrt(2 ln n / N): c = Cp sqrt(2).
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.rules.pick import pick
from jaxmcts.tree import Node


def uct_scores(node: Node, *, c: Number = 2**0.5) -> jax.Array:
    """Score the edges `[A]` on raw values; an unvisited edge scores +inf."""
    log_visits = jnp.log(node.total_visits.astype(node.q.dtype))
    bonus = c * jnp.sqrt(log_visits / jnp.maximum(node.visits, 1))
    return jnp.where(node.visits > 0, node.q + bonus, jnp.inf)


def uct(node: Node, *, c: Number = 2**0.5) -> jax.Array:
    """Select an unvisited edge, the highest prior first, or else the edge of the highest UCT score."""
    return pick(uct_scores(node, c=c), node.prior, node.legal_action_mask)
