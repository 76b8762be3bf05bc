"""What a program hands to mctx and gets from it. Values are in the view of the player to move."""

import dataclasses
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax

from jaxmcts.mctx.record import Record
from jaxmcts.mctx.tree import Tree
from jaxmcts.model import PyTree

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class RootFnOutput(Record):
    """What is known of the roots before the search."""

    prior_logits: jax.Array  # [B, A]
    value: jax.Array  # [B]
    embedding: PyTree  # [B, ...] what `recurrent_fn` starts from


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentFnOutput(Record):
    """What one step of the model gives: the step's own numbers, and the judgement of where it arrived."""

    reward: jax.Array  # [B] view of the player who moved
    discount: jax.Array  # [B] signed: negative if the opponent moves next, 0 if the game is over
    prior_logits: jax.Array  # [B, A] of the new state
    value: jax.Array  # [B] of the new state


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DecisionRecurrentFnOutput(Record):
    """What an action gives in Stochastic MuZero: the state after it, before chance."""

    chance_logits: jax.Array  # [B, C]
    afterstate_value: jax.Array  # [B]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class ChanceRecurrentFnOutput(Record):
    """What chance gives in Stochastic MuZero: the next state."""

    action_logits: jax.Array  # [B, A]
    value: jax.Array  # [B]
    reward: jax.Array  # [B]
    discount: jax.Array  # [B]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyOutput(Record, Generic[T]):
    """What a policy returns."""

    action: jax.Array  # [B] int32, the action to play
    action_weights: jax.Array  # [B, A] the policy target, rows sum to 1
    search_tree: Tree[T]


RecurrentState = PyTree
RecurrentFn = Callable[[PyTree, jax.Array, jax.Array, RecurrentState], tuple[RecurrentFnOutput, RecurrentState]]
RootActionSelectionFn = Callable[[jax.Array, Tree, jax.Array], jax.Array]
InteriorActionSelectionFn = Callable[[jax.Array, Tree, jax.Array, jax.Array], jax.Array]
QTransform = Callable[[Tree, Any], jax.Array]
LoopFn = Callable[[int, int, Callable[[Any, Any], Any], Any], Any]
