"""MuZero's PUCT: AlphaZero's bonus on values scaled to [0, 1] by what was seen (Schrittwieser et al. 2020, appendix B).

    score(a) = (Q(a) - low) / (high - low) + C(s) P(a) sqrt(N(s)) / (1 + N(a)),    an unvisited edge reads 0

For rewards without known bounds. `muzero` takes low and high from the node alone, as mctx does; `muzero_tree` takes
them from every q that was seen in the tree so far, as the paper does.
"""

import jax
import jax.numpy as jnp

from jaxmcts.backup import bounds
from jaxmcts.model import Number
from jaxmcts.qvalue import between, by_siblings
from jaxmcts.rules.pick import best
from jaxmcts.rules.puct import alphazero_bonus
from jaxmcts.tree import ROOT, Node, Tree, read_node


def muzero_scores(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0) -> jax.Array:
    """Score the edges `[A]` on values scaled by the node's own."""
    return by_siblings(node) + alphazero_bonus(node, c_init=c_init, c_base=c_base)


def muzero(node: Node, *, c_init: Number = 1.25, c_base: Number = 19652.0) -> jax.Array:
    """Select by MuZero's rule with the node's own range: the form of `mctx.muzero_policy`."""
    return best(node, muzero_scores(node, c_init=c_init, c_base=c_base))


def muzero_tree_scores(node: Node, bounds: jax.Array, *, c_init: Number = 1.25, c_base: Number = 19652.0) -> jax.Array:
    """Score the edges `[A]` on values scaled by `bounds [2]`, the lowest and the highest q."""
    low, high = bounds[0], bounds[1]
    q = jnp.where(node.visits > 0, between(node.q, low, high), 0)
    return q + alphazero_bonus(node, c_init=c_init, c_base=c_base)


def muzero_tree(
    key: jax.Array, tree: Tree, index: jax.Array, *, c_init: Number = 1.25, c_base: Number = 19652.0
) -> jax.Array:
    """Select by MuZero's rule with the range of the whole tree, kept by `bounds_backup`. Use it as `Live(muzero_tree)`.

    The range moves while the tree grows, so a finished tree does not tell its own choices.
    """
    del key
    node, root = read_node(tree, index), read_node(tree, ROOT)
    return best(node, muzero_tree_scores(node, bounds(root), c_init=c_init, c_base=c_base))
