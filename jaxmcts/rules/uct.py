"""Rules without a prior: greedy, and UCT, which is UCB1 at every node (Kocsis and Szepesvari 2006).

    greedy   score(a) = Q(a)
    UCT      score(a) = Q(a) + c sqrt(ln n / N(a)),    unvisited edges first

n is S(s) + `offset`: with 1, the default, the visits of the node, whose own evaluation counts; with 0 the visits of
its edges. Constants belong to a range of values: c = sqrt 2 is for [0, 1], twice that is its match on [-1, 1].
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import Fpu, complete, fpu_infinite
from jaxmcts.rules.pick import best
from jaxmcts.rules.puct import visit_base
from jaxmcts.tree import Node


def greedy(node: Node, *, fpu: Fpu = fpu_infinite) -> jax.Array:
    """Select the highest mean W / N, by default after every edge had one visit: a baseline, for it never looks back.

    With another `fpu` it stays at the first edge that is worth more than that.
    """
    return best(node, complete(node, fpu(node)))


def uct_scores(node: Node, *, c: Number = 2**0.5, offset: Number = 1.0) -> jax.Array:
    """Score the edges `[A]` on raw values; an unvisited edge scores +inf."""
    log_visits = jnp.log(visit_base(node, offset=offset, floor=1))
    bonus = c * jnp.sqrt(log_visits / jnp.maximum(node.visits, 1))
    return complete(node, fpu_infinite(node)) + bonus


def uct(node: Node, *, c: Number = 2**0.5, offset: Number = 1.0) -> jax.Array:
    """Select an unvisited edge, the highest prior first, or else the edge of the highest UCT score."""
    return best(node, uct_scores(node, c=c, offset=offset))


def uct_browne(node: Node, *, cp: Number = 2**-0.5, offset: Number = 1.0) -> jax.Array:
    """Select by UCT in the form of Browne et al. 2012, algorithm 2: Q + Cp sqrt(2 ln n / N), which is c = Cp sqrt 2.

    Their text has another factor 2 before the root: its Cp = 1 / sqrt 2 is Cp = sqrt 2 here.
    """
    return uct(node, c=cp * 2**0.5, offset=offset)
