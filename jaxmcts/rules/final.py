"""Which move to play when the search is over: functions of the root's record, as rules are.

    robust       the most visits                        the default everywhere here
    highest_q    the highest mean                       Browne et al. 2012, algorithm 2: "max child"
    secure       the highest Q - a / sqrt(N)            Chaslot et al. 2008
    lcb          the highest lower confidence bound     KataGo's bound
    lcb_student  the same                               Leela Zero's bound

Apply one to all roots with `readout.at_root`. Edges without a visit are left out unless no edge has any.
"""

import jax
import jax.numpy as jnp

from jaxmcts.backup import spread
from jaxmcts.model import Number
from jaxmcts.qvalue import edge_variance
from jaxmcts.rules.pick import has_most_visits, pick
from jaxmcts.tree import Node


def robust(node: Node) -> jax.Array:
    """Return the most visited action, ties by q, then by prior, then by index."""
    return pick(node.q, node.prior, has_most_visits(node))


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


def lcb_student(node: Node, *, alpha: Number = 1e-5, least: Number = 0.1) -> jax.Array:
    """Return the action of the highest lower confidence bound, by Student's t, among those with `least` of the visits.

    As Leela Zero does: an edge needs two visits and more than `least` of the most visits. Needs `variance_backup`.
    """
    enough = node.legal_action_mask & (node.visits > 1) & (node.visits > least * jnp.max(node.visits))
    allowed = jnp.where(jnp.any(enough), enough, _visited(node, least=1.0))
    return pick(student_lower_bounds(node, alpha=alpha), node.prior, allowed)


def student_lower_bounds(node: Node, *, alpha: Number = 1e-5) -> jax.Array:
    """Return Q - t sqrt(Var / N) `[A]`, below which a true mean lies with probability `alpha` if returns are normal.

    t is Student's of N - 1 degrees of freedom, Var the sample variance. Meaningless below two visits.
    """
    freedom = jnp.maximum(node.visits - 1, 1).astype(node.q.dtype)
    variance = spread(node).edges / freedom
    return node.q - student_quantile(alpha, freedom) * jnp.sqrt(variance / (freedom + 1))


def student_quantile(alpha: Number, freedom: jax.Array) -> jax.Array:
    """Return the t that Student's distribution of so many degrees of freedom `[A]` exceeds with probability `alpha`.

    From P(T > t) = I(f / (f + t^2); f / 2, 1 / 2) / 2, by halving on a scale of logarithms; `alpha` from 1e-6 to 0.4.
    """

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = jnp.sqrt(low * high)
        tail = jax.scipy.special.betainc(freedom / 2, jnp.full_like(freedom, 0.5), freedom / (freedom + middle**2)) / 2
        return jnp.where(tail > alpha, middle, low), jnp.where(tail > alpha, high, middle)

    ends = jnp.full_like(freedom, 0.1), jnp.full_like(freedom, 1e6)
    low, high = jax.lax.fori_loop(0, 40, halve, ends)
    return jnp.sqrt(low * high)


def _visited(node: Node, least: Number) -> jax.Array:
    """Return the legal edges with visits, and at least that share of the most; all legal ones if none was."""
    most = jnp.max(node.visits)
    enough = (node.visits > 0) & (node.visits >= least * most)
    return node.legal_action_mask & (enough | (most == 0))
