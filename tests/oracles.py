"""A slow search of one tree in plain Python that states each rule as its equation. The compiled search must agree.

Nothing here is taken from the library: no arrays, no cache, no batch. A node keeps every return that was ever
backed up through each of its edges, so that N, W, Q and V are read off as lengths, sums and means,

    Q(s, a) = mean of the returns of the edge          V(s) = mean of v(s) and of all returns below s

where a return is x = r + g x' of the level below, in the view of the player who moves at s.

A world is anything with `num_actions`, `root`, `step(state, action) -> (reward, discount, next_state)` and
`evaluate(state) -> (prior_logits, value, legal)`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

INF = math.inf
CLOSE = 1e-9  # scores nearer than this may be ordered differently by another order of rounding


class World(Protocol):
    num_actions: int
    root: Any

    def step(self, state: Any, action: int) -> tuple[float, float, Any]: ...
    def evaluate(self, state: Any) -> tuple[list[float], float, list[bool]]: ...


@dataclass
class Edge:
    """One edge that was visited, and the node it leads to."""

    reward: float
    discount: float
    child: "Node"
    returns: list[float] = field(default_factory=list)


@dataclass
class Line:
    """What one simulation did from a node on."""

    value: float  # the return, view of the node's mover
    moves: list[tuple[int, int]]  # (1 for the node's mover or -1 for the other, action), the node's own move first


class Node:
    """One node: its state, what was known before any search, and its edges by action."""

    def __init__(self, world: World, state: Any, parent: "Node | None" = None):
        self.world, self.state, self.parent = world, state, parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        logits, self.raw_value, self.legal = world.evaluate(state)
        self.actions = [a for a in range(world.num_actions) if self.legal[a]]
        self.logits = log_softmax({a: logits[a] for a in self.actions})
        self.prior = {a: math.exp(logit) for a, logit in self.logits.items()}
        self.edges: dict[int, Edge] = {}
        self.lines: list[Line] = []  # of every simulation that went on from here
        self.delicate = False  # a choice here hung on a difference that rounding could turn round

    @property
    def finished(self) -> bool:
        return not self.actions

    def visits(self, action: int) -> int:
        return len(self.edges[action].returns) if action in self.edges else 0

    def q(self, action: int) -> float:
        """Q(s, a) = W / N, 0 where unvisited."""
        return mean(self.edges[action].returns) if action in self.edges else 0.0

    @property
    def num_child_visits(self) -> int:
        """S(s)"""
        return sum(len(edge.returns) for edge in self.edges.values())

    @property
    def total_visits(self) -> int:
        """N(s) = 1 + S(s): the node's own evaluation counts."""
        return 1 + self.num_child_visits

    @property
    def value(self) -> float:
        """V(s) = (v + sum W) / (1 + S)"""
        return (self.raw_value + sum(sum(e.returns) for e in self.edges.values())) / self.total_visits

    def expand(self, action: int) -> Edge:
        reward, discount, state = self.world.step(self.state, action)
        edge = Edge(reward, discount, type(self)(self.world, state, self))
        self.edges[action] = edge
        return edge


def log_softmax(logits: dict[int, float]) -> dict[int, float]:
    top = max(logits.values(), default=0.0)
    log_mass = math.log(sum(math.exp(x - top) for x in logits.values())) if logits else 0.0
    return {a: x - top - log_mass for a, x in logits.items()}


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


# First-play urgency: the value of an edge without visits, in raw units.

Fpu = Callable[[Node], float]


def fpu_constant(value: float) -> Fpu:
    return lambda node: value


def fpu_lose(node: Node) -> float:
    return -1.0


def fpu_parent(node: Node) -> float:
    return node.value


def fpu_reduction(k: float) -> Fpu:
    return lambda node: node.value - k * math.sqrt(sum(node.prior[a] for a in node.edges))


# Rules: `scores` and `root_scores` give a number for each legal action.


class Rule(Protocol):
    def scores(self, node: Node) -> dict[int, float]: ...
    def root_scores(self, node: Node) -> dict[int, float]: ...


@dataclass(frozen=True)
class AlphaZero:
    """Q' + C(s) P sqrt(N(s)) / (1 + N), C(s) = ln((1 + N(s) + c_base) / c_base) + c_init.

    Q' is Q mapped from [-1, 1] to [0, 1], unvisited edges completed before the map.
    """

    c_init: float = 1.25
    c_base: float = 19652.0
    fpu: Fpu = fpu_lose

    def scores(self, node: Node) -> dict[int, float]:
        total = node.total_visits
        c = math.log((1 + total + self.c_base) / self.c_base) + self.c_init
        unvisited = self.fpu(node)

        def score(a: int) -> float:
            q = node.q(a) if node.visits(a) else unvisited
            return (q + 1) / 2 + c * node.prior[a] * math.sqrt(total) / (1 + node.visits(a))

        return {a: score(a) for a in node.actions}

    root_scores = scores


@dataclass(frozen=True)
class Uct:
    """Q + c sqrt(ln N(s) / N), unvisited edges first."""

    c: float = math.sqrt(2)

    def scores(self, node: Node) -> dict[int, float]:
        log_total = math.log(node.total_visits)

        def score(a: int) -> float:
            return node.q(a) + self.c * math.sqrt(log_total / node.visits(a)) if node.visits(a) else INF

        return {a: score(a) for a in node.actions}

    root_scores = scores


@dataclass(frozen=True)
class Gumbel:
    """Sequential halving with Gumbel at the root, pi'(a) - N(a) / (1 + S) below."""

    gumbel: list[float]
    num_simulations: int
    max_num_considered_actions: int = 16
    c_visit: float = 50.0
    c_scale: float = 0.1
    rescale_q: bool = True

    def sigma(self, node: Node) -> dict[int, float]:
        q = completed_q(node)
        if self.rescale_q:
            # mctx completes illegal edges too, so where there are any the range covers the mixed value.
            range_of = [*q.values()] + [mixed_value(node)] * (len(q) < node.world.num_actions)
            low, high = min(range_of), max(range_of)
            q = {a: (x - low) / max(high - low, 1e-8) for a, x in q.items()}
        scale = (self.c_visit + max(node.visits(a) for a in node.actions)) * self.c_scale
        return {a: scale * x for a, x in q.items()}

    def improved_policy(self, node: Node) -> dict[int, float]:
        sigma = self.sigma(node)
        return {a: math.exp(x) for a, x in log_softmax({a: node.logits[a] + sigma[a] for a in sigma}).items()}

    def scores(self, node: Node) -> dict[int, float]:
        improved = self.improved_policy(node)
        return {a: improved[a] - node.visits(a) / (1 + node.num_child_visits) for a in node.actions}

    def root_scores(self, node: Node) -> dict[int, float]:
        num_considered = min(self.max_num_considered_actions, len(node.actions))
        due = considered_visits(num_considered, self.num_simulations)[node.num_child_visits]
        return self._scores_with(node, due)

    def action(self, node: Node) -> int:
        """The move to play: the best score among the most visited."""
        return choose(node, self._scores_with(node, max(node.visits(a) for a in node.actions)))

    def _scores_with(self, node: Node, visits: int) -> dict[int, float]:
        sigma = self.sigma(node)
        return {
            a: self.gumbel[a] + node.logits[a] + sigma[a] if node.visits(a) == visits else -INF for a in node.actions
        }


def mixed_value(node: Node) -> float:
    """v_mix = (v + S * sum_visited(P Q) / sum_visited(P)) / (1 + S)"""
    visited = list(node.edges)
    if not visited:
        return node.raw_value
    weighted_q = sum(node.prior[a] * node.q(a) for a in visited) / sum(node.prior[a] for a in visited)
    return (node.raw_value + node.num_child_visits * weighted_q) / (1 + node.num_child_visits)


def completed_q(node: Node) -> dict[int, float]:
    unvisited = mixed_value(node)
    return {a: node.q(a) if node.visits(a) else unvisited for a in node.actions}


def considered_visits(num_considered: int, num_simulations: int) -> list[int]:
    """For each simulation the visit count its root edge must have: ceil(log2 m) phases, the better half goes on."""
    if num_considered <= 1:
        return list(range(num_simulations))
    num_phases = math.ceil(math.log2(num_considered))
    due: list[int] = []
    visits, remaining = 0, num_considered
    while len(due) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * remaining))):
            due += [visits] * remaining
            visits += 1
        remaining = max(2, remaining // 2)
    return due[:num_simulations]


# The search.


def search(
    world: World, rule: Rule, num_simulations: int, max_depth: int | None = None, node_type: type[Node] = Node
) -> Node:
    """Search from the world's root and return the root node; `node_type` says what V and Q are."""
    return run(node_type(world, world.root), rule, num_simulations, max_depth)


def run(root: Node, rule: Rule, num_simulations: int, max_depth: int | None = None) -> Node:
    """Go on searching from `root`, in place."""
    for _ in range(num_simulations):
        visit(root, rule, max_depth)
    return root


def visit(node: Node, rule: Rule, max_depth: int | None) -> Line:
    """Run one simulation at and below `node`; what comes back is the return in the view of its mover, and the moves.

    At a finished node or at the depth limit its raw value is the return again, and nothing changes there.
    """
    if node.finished or node.depth == max_depth:
        return Line(node.raw_value, [])
    action = choose(node, rule.root_scores(node) if node.depth == 0 else rule.scores(node))
    if action in node.edges:
        edge = node.edges[action]
        below = visit(edge.child, rule, max_depth)
    else:
        edge = node.expand(action)
        below = Line(edge.child.raw_value, [])
    edge.returns.append(edge.reward + edge.discount * below.value)
    turn = -1 if edge.discount < 0 else 1
    node.lines.append(Line(edge.returns[-1], [(1, action), *((turn * who, move) for who, move in below.moves)]))
    return node.lines[-1]


def choose(node: Node, scores: dict[int, float]) -> int:
    """The best score; ties go to the higher prior, then to the lower index."""
    best = max(scores, key=lambda a: (scores[a], node.prior[a], -a))
    node.delicate |= any(_is_delicate(node, best, a, scores) for a in scores if a != best)
    return best


def _is_delicate(node: Node, best: int, other: int, scores: dict[int, float]) -> bool:
    """True if rounding could decide between the two.

    Scores that tie are safe only if they are alike in everything they are computed from; priors, which decide
    between them, must then be equal or clearly apart.
    """
    if abs(scores[best] - scores[other]) > CLOSE:
        return False
    apart = abs(node.prior[best] - node.prior[other])
    alike = scores[best] == scores[other] and _history(node, best) == _history(node, other)
    return not (alike and (apart == 0 or apart > CLOSE))


def _history(node: Node, action: int) -> tuple[float, ...]:
    """What decides an edge's statistics in any order of summation; two edges of one history tie exactly."""
    if action not in node.edges:
        return ()
    edge = node.edges[action]
    return (edge.reward, edge.discount, *edge.returns)


# Reading the result.


def walk(node: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Yield every node with the actions that lead to it."""
    yield path, node
    for action, edge in node.edges.items():
        yield from walk(edge.child, (*path, action))


@dataclass
class Record:
    """What is compared of a node; lists over all actions."""

    visits: list[int]
    q: list[float]
    value: float
    total_visits: int


def by_path(root: Node) -> dict[tuple[int, ...], Record]:
    """The whole tree: statistics of every node, keyed by the actions that lead to it."""

    def read(node: Node) -> Record:
        actions = range(node.world.num_actions)
        return Record([node.visits(a) for a in actions], [node.q(a) for a in actions], node.value, node.total_visits)

    return {path: read(node) for path, node in walk(root)}


def is_delicate(root: Node) -> bool:
    """True if any choice in the tree hung on a difference that rounding could turn round."""
    return any(node.delicate for _, node in walk(root))


def minimax(world: World, state: Any) -> float:
    """The value of `state` under best play of a world without cycles, in the view of its mover."""
    _, value, legal = world.evaluate(state)
    actions = [a for a in range(world.num_actions) if legal[a]]
    return max((minimax_q(world, state, a) for a in actions), default=value)


def minimax_q(world: World, state: Any, action: int) -> float:
    """The value of an edge under best play."""
    reward, discount, after = world.step(state, action)
    return reward + (discount * minimax(world, after) if discount else 0.0)
