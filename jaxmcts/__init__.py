"""Batched Monte Carlo tree search in JAX whose cost per simulation does not grow with the budget."""

from jaxmcts import amaf, backup, qvalue, readout, root, rules, uncertainty
from jaxmcts.backup import Added, AtEdge, Relay, Update, mean_backup
from jaxmcts.choices import Live
from jaxmcts.evaluators import network_evaluator, rollout_evaluator
from jaxmcts.model import Env, Evaluation, Model, Transition, model_from_env, model_from_recurrent_fn
from jaxmcts.policy import PolicyOutput, alphazero_policy, gumbel_policy, uct_policy
from jaxmcts.qvalue import (
    fpu_blended,
    fpu_constant,
    fpu_infinite,
    fpu_lose,
    fpu_parent,
    fpu_reduction,
    fpu_win,
    fpu_zero,
)
from jaxmcts.readout import Summary, most_visited, principal_variation, summary, visit_shares
from jaxmcts.search import init, run, search
from jaxmcts.tree import Edge, Flags, Node, Tree, memory, read_node
from jaxmcts.validation import validate
from jaxmcts.view import view

__all__ = [
    "Added",
    "AtEdge",
    "Edge",
    "Env",
    "Evaluation",
    "Flags",
    "Live",
    "Model",
    "Node",
    "PolicyOutput",
    "Relay",
    "Summary",
    "Transition",
    "Tree",
    "Update",
    "alphazero_policy",
    "amaf",
    "backup",
    "fpu_blended",
    "fpu_constant",
    "fpu_infinite",
    "fpu_lose",
    "fpu_parent",
    "fpu_reduction",
    "fpu_win",
    "fpu_zero",
    "gumbel_policy",
    "init",
    "mean_backup",
    "memory",
    "model_from_env",
    "model_from_recurrent_fn",
    "most_visited",
    "network_evaluator",
    "principal_variation",
    "qvalue",
    "read_node",
    "readout",
    "rollout_evaluator",
    "root",
    "rules",
    "run",
    "search",
    "summary",
    "uct_policy",
    "uncertainty",
    "validate",
    "view",
    "visit_shares",
]
