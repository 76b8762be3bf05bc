"""Which move to play when the search is over: functions of the root's record, as rules are.

    robust    the most visits                        the default everywhere here
    highest_q the highest mean                       Browne et al. 2012, algorithm 2: "max child"
    secure    the highest Q - a / sqrt(N)            Chaslot et al. 2008
    lcb       the highest lower confidence bound     Leela Zero and KataGo

Apply one to all roots with `readout.at_root`. Edges without a visit are left out unless no edge has any.
"""

import jax
import jax.numpy as jnp

from jaxmcts.model import Number
from jaxmcts.qvalue import edge_variance
from jaxmcts.rules.pick import pick
from jaxmcts.tree import Node


def robust(node: Node) -> jax.Array:
    """Return the most visited action, ties by q, then by prior, then by index."""
    most = jnp.max(jnp.where(node.legal_action_mask, node.visits, -1))
    allowed = node.legal_action_mask & (node.visits == most)
    return pick(node.q, node.prior, allowed)


def highest_q(node: Node) -> jax.Array:
    """Return the visited action of the highest mean value. One lucky visit is enough: rather not."""
    return pick(node.q, node.prior, _visited(node, least=0.0))


def secure(node: Node, *, a: Number = 1.0) -> jax.Array:
    """Return the visited action of the highest Q - a / sqrt(N)."""
    scores = node.q - a / jnp.sqrt(jnp.maximum(node.visits, 1).astype(node.q.dtype))
    return pick(scores, node.prior, _visited(node, least=0.0))


def lcb(node: Node, *, z: Number = 5.0, radius: Number = 1.0, least: Number = 0.15) -> jax.Array:
    """Return the action of the highest lower confidence bound among those with `least` of the most visits.

    It plays a move whose value has become clearly better before its visits say so. `z` and `least` are KataGo's. Needs
    `variance_backup`.
    """
    return pick(lower_bounds(node, z=z, radius=radius), node.prior, _visited(node, least=least))


def lower_bounds(node: Node, *, z: Number = 5.0, radius: Number = 1.0) -> jax.Array:
    """Return KataGo's lower confidence bounds of the edges' values `[A]`: Q - z sqrt(Var / n).

    Variance and n come from the returns and one more of weight 1 / N^2 at distance `radius`, half the range of values,
    so that few visits that happen to agree do not look certain. Meaningless where unvisited.
    """
    weight = jnp.maximum(node.visits, 1).astype(node.q.dtype)
    more = 1 / weight**2  # KataGo's 1 / ess^3 per weight; the visits' weights are 1
    mean_square = edge_variance(node) + node.q**2
    mixed = (mean_square * weight + (mean_square + radius**2) * more) / (weight + more)
    variance = jnp.maximum(mixed - node.q**2, 0)
    effective = (weight + more) ** 2 / (weight + more**2)
    return node.q - z * jnp.sqrt(variance / effective)


def _visited(node: Node, least: Number) -> jax.Array:
    """Return the legal edges with visits, and at least that share of the most; all legal ones if none was."""
    most = jnp.max(node.visits)
    enough = (node.visits > 0) & (node.visits >= least * most)
    return node.legal_action_mask & (enough | (most == 0))
