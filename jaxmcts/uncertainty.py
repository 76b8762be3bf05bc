"""Playouts weighted by how sure the network is of its value: KataGo's uncertainty weights.

The evaluation of a node counts w times, w small where the network expects to be far off. N(a) in a rule and in every
mean is then the sum of the weights of the simulations through the edge, a real number; visits are still counted beside
it, for budgets and for what plays the most visited move.

    w = coeff / (u^exponent + coeff / most)        u the expected error of the value, 0 at a finished node

The error comes from the network: an evaluator returns it after logits and value, a model as `Evaluation.extras`, and
rules see it as `node.extras`.

    weight = Partial(error_weight, coeff=0.25)                       # of a node whose extras are the error
    tree = jaxmcts.search(..., select=Partial(by_weight, rule=engines.katago), root_select=...,
                          backup=weighted_backup(weight), rule_state=no_weights(B, capacity, A))
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks
from jaxmcts.backup import Added, AtEdge, Relay, Update
from jaxmcts.model import Number
from jaxmcts.tree import Edge, Node

Weight = Callable[[Node], jax.Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Weights:
    """The summed weights of the simulations through each edge of nodes, and through all of them."""

    edges: jax.Array  # [..., A]
    total: jax.Array  # [...]


def no_weights(batch_size: int, capacity: int, num_actions: int) -> Weights:
    """Return the `rule_state` of trees without simulations, `[B, capacity, ...]`."""
    dtype = jnp.result_type(float)
    shape = batch_size, capacity
    return Weights(edges=jnp.zeros((*shape, num_actions), dtype), total=jnp.zeros(shape, dtype))


def _extras(node: Node) -> jax.Array:
    if not isinstance(node.extras, jax.Array):
        raise TypeError(
            f"`extras` of a node is {node.extras!r}, expected the error of its value, a number: let the evaluator "
            "return it after logits and value, or say by `error` where it is."
        )
    return node.extras


def error_weight(
    node: Node,
    *,
    error: Callable[[Node], jax.Array] = _extras,
    coeff: Number = 0.25,
    exponent: Number = 1.0,
    most: Number = 8.0,
) -> jax.Array:
    """Return the weight `[]` of a node by its expected `error` >= 0, by KataGo's constants; `most` if finished."""
    is_finished = ~jnp.any(node.legal_action_mask)
    return jnp.where(is_finished, most, coeff / (error(node) ** exponent + coeff / most))


def weighted_backup(weight: Weight = error_weight) -> Relay:
    """Average returns, each by the `weight(node) > 0` of the node whose evaluation it is.

    `rule_state` begins as `no_weights(B, capacity, A)`.
    """
    return Relay(fn=Partial(_average, weight=weight), start=Partial(_weighed, weight=weight))


def _weighed(leaf: Node, *, weight: Weight) -> tuple[jax.Array, jax.Array]:
    return leaf.raw_value, weight(leaf)


def _average(
    parent: Node, edge: Edge, child: Node, message: tuple[jax.Array, jax.Array], *, weight: Weight
) -> tuple[Update, tuple[jax.Array, jax.Array]]:
    value, passed = message
    returns = edge.reward + edge.discount * value
    before = weight(parent) + summed_weights(parent).total
    more = Weights(edges=AtEdge(Added(passed)), total=Added(passed))  # type: ignore[arg-type]  # instead of arrays
    update = Update(
        q=edge.reward + edge.discount * child.value,
        value=parent.value + (returns - parent.value) * passed / (before + passed),
        rule_state=more,
    )
    return update, (returns, passed)


def by_weight(node: Node, *, rule: Callable[[Node], jax.Array]) -> jax.Array:
    """Select by `rule` with summed weights in place of visits; N(s) is 1 and the weights of the edges."""
    weights = summed_weights(node)
    return rule(dataclasses.replace(node, visits=weights.edges, total_visits=1 + weights.total))


def summed_weights(node: Node) -> Weights:
    """Return the summed weights of the simulations through a node's edges; needs `weighted_backup`."""
    return checks.kept(node.rule_state, Weights, backup="weighted_backup(...)", start="no_weights(B, capacity, A)")
