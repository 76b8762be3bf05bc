"""The rules of the field a second time, in plain Python on the oracle's nodes, each written from its equation.

Nothing is taken from the library. A function gives a score for each legal action that may be chosen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.oracles import INF, Fpu, Node, fpu_constant, fpu_parent, fpu_reduction, mean, walk

Scores = dict[int, float]
ScoresOf = Callable[[Node], Scores]


@dataclass(frozen=True)
class By:
    """A rule of the oracle's search made of functions."""

    scores: ScoresOf
    root_scores: ScoresOf


def by(scores: ScoresOf, root_scores: ScoresOf | None = None) -> By:
    return By(scores, root_scores or scores)


def completed(node: Node, fpu: Fpu) -> Scores:
    return {a: node.q(a) if node.visits(a) else fpu(node) for a in node.actions}


def with_bonus(node: Node, q: Scores, scale: float) -> Scores:
    """Q + scale P / (1 + N)"""
    return {a: q[a] + scale * node.prior[a] / (1 + node.visits(a)) for a in node.actions}


def mass(node: Node) -> float:
    return sum(node.prior[a] for a in node.edges)


# Without a prior


def greedy(fpu: Fpu) -> ScoresOf:
    return lambda node: completed(node, fpu)


def uct(c: float, offset: int) -> ScoresOf:
    def scores(node: Node) -> Scores:
        log_visits = math.log(max(node.num_child_visits + offset, 1))
        return {
            a: node.q(a) + c * math.sqrt(log_visits / node.visits(a)) if node.visits(a) else INF for a in node.actions
        }

    return scores


# With a prior


def puct(c: float, *, offset: float = 1.0, floor: float = 0.0, exponent: float = 0.5, fpu: Fpu) -> ScoresOf:
    def scores(node: Node) -> Scores:
        base = max(node.num_child_visits + offset, floor)
        return with_bonus(node, completed(node, fpu), c * base**exponent)

    return scores


def log_shaped(node: Node) -> Scores:
    log_visits = math.log(1 + node.total_visits)
    q = completed(node, fpu_constant(0.0))
    return {a: q[a] + 1.25 * node.prior[a] * math.sqrt(log_visits / (1 + node.visits(a))) for a in node.actions}


def shrunk(node: Node) -> Scores:
    q = {a: sum(node.edges[a].returns) / (node.visits(a) + 1) if node.visits(a) else 0.0 for a in node.actions}
    return with_bonus(node, q, 1.25 * math.sqrt(node.num_child_visits))


def alphazero_scale(node: Node) -> float:
    return (1.25 + math.log((1 + node.total_visits + 19652) / 19652)) * math.sqrt(node.total_visits)


def own_range(node: Node) -> tuple[float, float]:
    seen = [node.value, *(node.q(a) for a in node.edges)]
    return min(seen), max(seen)


def scaled_to_own_range(node: Node) -> Scores:
    low, high = own_range(node)
    return {a: (node.q(a) - low) / max(high - low, 1e-8) if node.visits(a) else 0.0 for a in node.actions}


def muzero(node: Node) -> Scores:
    return with_bonus(node, scaled_to_own_range(node), alphazero_scale(node))


def muzero_tree(node: Node) -> Scores:
    """The bounds are those of every q there ever was: the mean of each edge's first returns, however many."""
    root = node
    while root.parent is not None:
        root = root.parent
    returns = [edge.returns for _, other in walk(root) for edge in other.edges.values()]
    seen = [mean(some[: i + 1]) for some in returns for i in range(len(some))]
    low, high = (min(seen), max(seen)) if seen else (0.0, 0.0)

    def scaled(q: float) -> float:
        return (q - low) / (high - low) if high > low else q

    q = {a: scaled(node.q(a)) if node.visits(a) else 0.0 for a in node.actions}
    return with_bonus(node, q, alphazero_scale(node))


# Engines


def lc0(node: Node) -> Scores:
    c = 1.745 + 3.894 * math.log((node.total_visits + 38739) / 38739)
    return with_bonus(node, completed(node, fpu_reduction(0.33)), c * math.sqrt(max(node.num_child_visits, 1)))


def leela_zero(node: Node) -> Scores:
    """Winrates throughout, also for the first-play urgency."""
    unvisited = (node.value + 1) / 2 - 0.25 * math.sqrt(mass(node))
    q = {a: (node.q(a) + 1) / 2 if node.visits(a) else unvisited for a in node.actions}
    visits = node.num_child_visits
    return with_bonus(node, q, 0.5 * math.sqrt(visits * math.log(0.015 * visits + 1.7)))


def fpu_katago(node: Node) -> float:
    weight = min(1.0, mass(node) ** 2)
    return weight * node.value + (1 - weight) * node.raw_value - 0.2 * math.sqrt(mass(node))


def katago(node: Node, factor: float = 1.0) -> Scores:
    visits = node.num_child_visits
    c = 1.0 + 0.45 * math.log((visits + 500) / 500)
    return with_bonus(node, completed(node, fpu_katago), c * math.sqrt(visits + 0.01) * factor)


def katago_by_variance(node: Node) -> Scores:
    seen = [node.raw_value, *(x for edge in node.edges.values() for x in edge.returns)]
    weight, square, mean_square = len(seen), mean(seen) ** 2, mean([x * x for x in seen])
    spread = 0.4
    if weight > 1:
        mixed = ((square + 0.4**2) * 2 + mean_square * weight) / (2 + weight - 1)
        spread = math.sqrt(max(mixed - square, 0))
    return katago(node, 1 + 0.85 * (spread / 0.4 - 1))


# Variance-aware


def scaled_variance(node: Node, action: int) -> float:
    if not node.visits(action):
        return 0.0
    returns, (low, high) = node.edges[action].returns, own_range(node)
    return mean([(x - mean(returns)) ** 2 for x in returns]) / max(high - low, 1e-8) ** 2


def uct_v_p(node: Node) -> Scores:
    q, log_visits = scaled_to_own_range(node), math.log(node.total_visits)

    def bonus(a: int) -> float:
        share = node.prior[a] * log_visits / (1 + node.visits(a))
        return math.sqrt(2 * scaled_variance(node, a) * share) + 3 * share

    return {a: q[a] + bonus(a) for a in node.actions}


def puct_v(node: Node) -> Scores:
    q, total = scaled_to_own_range(node), node.total_visits

    def bonus(a: int) -> float:
        spread = math.sqrt(2 * scaled_variance(node, a) * total)
        return node.prior[a] * (spread + 3 * math.log(total)) / (1 + node.visits(a))

    return {a: q[a] + bonus(a) for a in node.actions}


# Regularised policy


def regularised_policy(node: Node) -> Scores:
    visits = node.num_child_visits
    if not visits:
        return node.prior
    q = completed(node, fpu_parent)
    strength = 1.25 * math.sqrt(visits) / (len(node.actions) + visits)

    def policy(alpha: float) -> Scores:
        return {a: strength * node.prior[a] / (alpha - q[a]) for a in q}

    low, high = max(q[a] + strength * node.prior[a] for a in q), max(q.values()) + strength
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(policy(middle).values()) > 1 else (low, middle)
    return policy(high)


def regularised(node: Node) -> Scores:
    policy = regularised_policy(node)
    return {a: policy[a] - node.visits(a) / (1 + node.num_child_visits) for a in node.actions}


# Gates


def only(scores: ScoresOf, allowed: Callable[[Node, int], bool]) -> ScoresOf:
    def gated(node: Node) -> Scores:
        every = scores(node)
        return {a: x for a, x in every.items() if allowed(node, a)} or every

    return gated


def above(threshold: float) -> Callable[[Node, int], bool]:
    return lambda node, a: node.prior[a] > threshold or node.prior[a] == max(node.prior.values())


def widening(node: Node, action: int) -> bool:
    ranking = sorted(node.actions, key=lambda a: (-node.prior[a], a))
    return ranking.index(action) < math.ceil(math.sqrt(node.total_visits))


def can_catch_up(num_simulations: int) -> Callable[[Node, int], bool]:
    def allowed(node: Node, action: int) -> bool:
        most = max(node.visits(a) for a in node.actions)
        return most - node.visits(action) <= num_simulations - node.num_child_visits

    return allowed


def forced(k: float) -> Callable[[Node, int], bool]:
    return lambda node, a: 0 < node.visits(a) < math.sqrt(k * node.prior[a] * node.num_child_visits)


# Other backups: what V and Q are. Q is r + g V(child) all the way down.


class RecomputedNode(Node):
    def q(self, action: int) -> float:
        if action not in self.edges:
            return 0.0
        edge = self.edges[action]
        return edge.reward + edge.discount * edge.child.value

    @property
    def value(self) -> float:
        if not self.edges:
            return self.raw_value
        return self.mixed([(len(edge.returns), self.q(a)) for a, edge in self.edges.items()])

    def mixed(self, edges: list[tuple[int, float]]) -> float:
        """V(s) of (N, Q) of every visited edge."""
        raise NotImplementedError


class WeightedNode(RecomputedNode):
    """The node's own evaluation counts as three visits."""

    def mixed(self, edges: list[tuple[int, float]]) -> float:
        return (3 * self.raw_value + sum(n * q for n, q in edges)) / (3 + sum(n for n, _ in edges))


class MaxNode(RecomputedNode):
    def mixed(self, edges: list[tuple[int, float]]) -> float:
        return max(q for _, q in edges)


class MaxMeanNode(RecomputedNode):
    def mixed(self, edges: list[tuple[int, float]]) -> float:
        average = sum(n * q for n, q in edges) / sum(n for n, _ in edges)
        return 0.7 * average + 0.3 * max(q for _, q in edges)


class PowerMeanNode(RecomputedNode):
    """Power 3 on values mapped from [-3, 3] to [0, 1]."""

    def mixed(self, edges: list[tuple[int, float]]) -> float:
        total = sum(n for n, _ in edges)
        return 6 * sum(n / total * ((q + 3) / 6) ** 3 for n, q in edges) ** (1 / 3) - 3


# Uncertain evaluations: each counts by the weight of its node, here of an error as large as the value.


def weight(node: Node) -> float:
    return 8.0 if node.finished else 0.25 / (abs(node.raw_value) + 0.25 / 8)


class UncertainNode(RecomputedNode):
    def summed(self, action: int) -> float:
        """The weights of the simulations through an edge; at a node without edges each ends there."""
        if action not in self.edges:
            return 0.0
        edge = self.edges[action]
        below = sum(edge.child.summed(a) for a in edge.child.edges)  # type: ignore[attr-defined]
        return weight(edge.child) * (1 if edge.child.edges else len(edge.returns)) + below

    @property
    def value(self) -> float:
        weights = {a: self.summed(a) for a in self.edges}
        total = weight(self) * self.raw_value + sum(w * self.q(a) for a, w in weights.items())
        return total / (weight(self) + sum(weights.values()))


def katago_by_weight(node: Node) -> Scores:
    assert isinstance(node, UncertainNode)
    weights = {a: node.summed(a) for a in node.actions}
    total = sum(weights.values())
    scale = (1.0 + 0.45 * math.log((total + 500) / 500)) * math.sqrt(total + 0.01)
    q = completed(node, fpu_katago)
    return {a: q[a] + scale * node.prior[a] / (1 + weights[a]) for a in node.actions}


# All moves as first


def amaf(node: Node, player: int, action: int) -> tuple[int, float]:
    """n~ and Q~ of an action of the node's mover (1) or of the other player (-1), each in that player's view."""
    values = [player * line.value for line in node.lines if (player, action) in line.moves]
    return len(values), mean(values) if values else 0.0


def rave(beta: Callable[[Node, int, int], float], c: float = 0.0) -> ScoresOf:
    def scores(node: Node) -> Scores:
        def score(a: int) -> float:
            count, q = amaf(node, 1, a)
            weight = beta(node, a, count) if count else 0.0
            bonus = c * math.sqrt(math.log(node.total_visits) / max(node.visits(a), 1))
            return (1 - weight) * node.q(a) + weight * q + bonus

        return {a: score(a) for a in node.actions}

    return scores


def beta_by_hand(node: Node, action: int, count: int) -> float:
    return math.sqrt(20 / (3 * node.total_visits + 20))


def beta_by_edge(node: Node, action: int, count: int) -> float:
    return math.sqrt(20 / (3 * node.visits(action) + 20))


def beta_by_bias(bias: float) -> Callable[[Node, int, int], float]:
    return lambda node, a, count: count / (node.visits(a) + count + bias * node.visits(a) * count)


def grave(least_visits: int, bias: float) -> ScoresOf:
    def scores(node: Node) -> Scores:
        reference, player = node, 1
        while reference.parent is not None and reference.total_visits <= least_visits:
            (into,) = (edge for edge in reference.parent.edges.values() if edge.child is reference)
            player = -player if into.discount < 0 else player
            reference = reference.parent

        def score(a: int) -> float:
            count, q = amaf(reference, player, a)
            weight = beta_by_bias(bias)(node, a, count) if count else 0.0
            return (1 - weight) * node.q(a) + weight * q

        return {a: score(a) for a in node.actions}

    return scores
