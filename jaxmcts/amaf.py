"""All moves as first: statistics of an action wherever the mover plays it later in a simulation (RAVE and GRAVE).

    Q'(a) = (1 - beta) Q(a) + beta Q~(a)

Q~(a) is the mean return, at s, of the simulations in which the player to move at s played a at s or at any later turn;
n~(a) counts them. beta falls from 1 towards 0 as the edge's own visits grow, so Q~ stands in for Q while that is young.
It only means something where an action is the same move at any depth (a stone on a point), for one player or two whose
gains are each other's losses. The moves of a simulation are those inside the tree: it suits searches that evaluate
leaves by a network; moves of random rollouts are not seen.

    tree = jaxmcts.search(..., select=Partial(amaf.rave), root_select=Partial(amaf.rave),
                          backup=amaf.amaf_backup, rule_state=amaf.no_amaf(B, capacity, A, players=1))
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.backup import Added, Relay, Update, mean_backup
from jaxmcts.choices import Live
from jaxmcts.model import Number, PyTree
from jaxmcts.qvalue import Fpu, complete, fpu_zero
from jaxmcts.rules.pick import best
from jaxmcts.tree import ROOT, Edge, Node, Tree, read, read_node, read_scalars


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Amaf:
    """Statistics of nodes: of the moves of the player to move there, and of the other's. One array, for one write."""

    packed: jax.Array  # [..., P, 2, A] floats: by player, the one to move first; then visits and summed returns

    @property
    def visits(self) -> jax.Array:
        """Simulations through the node in which that player played the action, `[..., P, A]`."""
        return self.packed[..., 0, :]

    @property
    def sums(self) -> jax.Array:
        """Their returns at the node, in that player's view, `[..., P, A]`."""
        return self.packed[..., 1, :]


def no_amaf(batch_size: int, capacity: int, num_actions: int, *, players: int = 2) -> Amaf:
    """Return the `rule_state` of trees without simulations, `[B, capacity, ...]`.

    With `players` 1 only the moves of the player to move at a node count there: enough for `rave`, and half the work.
    """
    if players not in (1, 2):
        raise ValueError(f"`players` is {players!r}, expected 1 or 2.")
    return Amaf(packed=jnp.zeros((batch_size, capacity, players, 2, num_actions), jnp.result_type(float)))


# The return, and 1 where a player played an action to get it, 0 elsewhere: [2, A].
Message = tuple[jax.Array, jax.Array]


def _no_moves(leaf: Node) -> Message:
    return leaf.raw_value, jnp.zeros((2, *leaf.q.shape), leaf.q.dtype)


def _credit(parent: Node, edge: Edge, child: Node, below: Message) -> tuple[Update, Message]:
    value, played = below
    update, returns = mean_backup(parent, edge, child, value)
    played = jnp.where(edge.discount < 0, played[::-1], played)  # the other player's view
    here = jnp.arange(2 * parent.q.shape[0]).reshape(played.shape) == edge.action  # no scatter, which is slower
    played = jnp.where(here, 1, played)
    one = jnp.ones_like(returns)
    gains = jnp.stack([one, returns, one, -returns]).reshape(2, 2, 1)
    players = len(_kept(parent.rule_state).packed)
    more = jax.tree.map(Added, Amaf(packed=(gains * played[:, None])[:players]))
    return dataclasses.replace(update, rule_state=more), (returns, played)


amaf_backup = Relay(fn=_credit, start=_no_moves)
"""Average returns, and credit them to every action played from the parent on, once a simulation."""


def beta_by_hand(node: Node, amaf_visits: jax.Array, *, k: Number = 1000.0) -> jax.Array:
    """Return sqrt(k / (3 N(s) + k)) `[A]`: alike for all edges, 1/2 at N(s) = k (Gelly and Silver 2011)."""
    beta = jnp.sqrt(k / (3 * node.total_visits + k))
    return jnp.where(amaf_visits > 0, beta, 0)


def beta_by_edge(node: Node, amaf_visits: jax.Array, *, k: Number = 1000.0) -> jax.Array:
    """Return sqrt(k / (3 N(a) + k)) `[A]`, the schedule of several programs: by the visits of the edge."""
    return jnp.where(amaf_visits > 0, jnp.sqrt(k / (3 * node.visits + k)), 0)


def beta_by_bias(node: Node, amaf_visits: jax.Array, *, bias: Number = 0.01) -> jax.Array:
    """Return n~ / (N + n~ + bias N n~) `[A]`.

    The least mean squared error if Q~ is off by b, `bias` = 4 b^2 (Silver 2009); GRAVE uses it with 1e-5.
    """
    total = node.visits + amaf_visits + bias * node.visits * amaf_visits
    return jnp.where(amaf_visits > 0, amaf_visits / jnp.where(amaf_visits > 0, total, 1), 0)


Beta = Callable[[Node, jax.Array], jax.Array]


def mixed_q(node: Node, amaf_visits: jax.Array, amaf_sums: jax.Array, *, beta: Beta, fpu: Fpu) -> jax.Array:
    """Return (1 - beta) Q + beta Q~ `[A]`; where there is no Q~ it is Q, where there is no Q it is `fpu`."""
    weight = beta(node, amaf_visits)
    return (1 - weight) * complete(node, fpu(node)) + weight * amaf_sums / jnp.maximum(amaf_visits, 1)


def rave(node: Node, *, beta: Beta = beta_by_hand, c: Number = 0.0, fpu: Fpu = fpu_zero) -> jax.Array:
    """Select the highest Q' + c sqrt(ln N(s) / N(a)) by the node's own statistics (Gelly and Silver 2007).

    `c` is 0 in the programs that won with it: Q~ explores enough. An unvisited edge gets the bonus of one visit.
    """
    own = _kept(node.rule_state)
    q = mixed_q(node, own.visits[0], own.sums[0], beta=beta, fpu=fpu)
    log_visits = jnp.log(node.total_visits.astype(node.q.dtype))
    return best(node, q + c * jnp.sqrt(log_visits / jnp.maximum(node.visits, 1)))


def grave(*, least_visits: Number = 100, bias: Number = 1e-5, fpu: Fpu = fpu_zero) -> Live:
    """Select the highest Q' by the statistics of the nearest node on the way up with more than `least_visits`.

    The root's if none has (Cazenave 2015); the defaults are Ludii's. `least_visits` 0 is RAVE.
    """
    return Live(Partial(_grave, least_visits=least_visits, bias=bias, fpu=fpu), start=_root_counts)


Reference = tuple[jax.Array, jax.Array]  # the node whose statistics count, and which of its players is to move


def _root_counts(tree: Tree) -> Reference:
    del tree
    return jnp.int32(ROOT), jnp.int32(0)


def _grave(
    key: jax.Array,
    tree: Tree,
    index: jax.Array,
    above: Reference,
    *,
    least_visits: Number,
    bias: Number,
    fpu: Fpu,
) -> tuple[jax.Array, Reference]:
    del key
    scalars = read_scalars(tree, index)
    node = read_node(tree, index, scalars=scalars)
    kept = _kept(tree.rule_state)
    if kept.packed.shape[-3] != 2:
        raise ValueError("`rule_state` counts the moves of one player, expected both: `no_amaf` with `players=2`.")
    counts = (index == ROOT) | (scalars.total_visits > least_visits)
    slot, player = above
    player = jnp.where(scalars.discount < 0, 1 - player, player)
    reference = jnp.where(counts, index, slot), jnp.where(counts, 0, player)
    visits, sums = read(kept.packed, *reference)
    q = mixed_q(node, visits, sums, beta=Partial(beta_by_bias, bias=bias), fpu=fpu)
    return best(node, q), reference


def _kept(rule_state: PyTree) -> Amaf:
    return checks.kept(rule_state, Amaf, backup="amaf_backup", start="no_amaf(B, capacity, A)")
