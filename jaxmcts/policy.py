"""Ready-made searches in one call. Each is a composition of parts that are all public; a variation is another
composition, not another keyword.

All take `params, key, state [B, ...], model` and return a `PolicyOutput`. `key` is one key or `[B]` keys. Gradients are
0: no derivative passes through a search.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxmcts import checks, readout
from jaxmcts import root as root_
from jaxmcts.backup import mean_backup
from jaxmcts.batching import fold_in
from jaxmcts.model import Evaluation, Model, Number, PyTree
from jaxmcts.qvalue import Fpu, fpu_lose
from jaxmcts.rules import gumbel, puct, uct
from jaxmcts.search import advance, init
from jaxmcts.tree import ROOT, Tree

_NOISE, _ACTION = 2**31 + 1, 2**31 + 2  # folded into the row keys; the search folds in smaller numbers


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyOutput:
    """What a policy returns, by row. A finished row has action 0, weights 0 and the evaluation's value."""

    action: jax.Array  # [B] int32, the action to play
    action_weights: jax.Array  # [B, A] the policy target: visit shares, for Gumbel the improved policy
    value: jax.Array  # [B] search value of the root, view of the player to move
    flags: jax.Array  # [B] int32 bits of `jaxmcts.Flags`
    tree: Tree  # the whole search


def alphazero_policy(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    *,
    num_simulations: int,
    root_evaluation: Evaluation | None = None,
    max_depth: int | None = None,
    temperature: Number = 1.0,
    dirichlet_fraction: Number = 0.25,
    dirichlet_alpha: Number = 0.3,
    c_init: Number = 1.25,
    c_base: Number = 19652.0,
    fpu: Fpu = fpu_lose,
) -> PolicyOutput:
    """Search with AlphaZero's PUCT (Silver et al. 2018) and play in proportion to visits^(1 / temperature).

    The constants are the published ones, for values in [-1, 1] that are mapped to [0, 1]. Dirichlet noise is mixed
    into the root's prior over its legal actions. `temperature` 0 plays the most visited action; it never changes
    `action_weights`, the visit shares. Numbers may be arrays `[]` or `[B]`. With 0 simulations the weights are the
    prior and the value is the evaluation's.
    """
    checks.finite(c_init=c_init, c_base=c_base)
    checks.function("fpu", fpu, "node")
    tree = _start(params, key, state, model, num_simulations, root_evaluation)
    temperature = checks.per_row_number("temperature", temperature, tree.batch_size, low=0)
    noisy = root_.noisy_prior_logits(
        fold_in(tree.keys, _NOISE),
        readout.root(tree).prior_logits,
        dirichlet_fraction=dirichlet_fraction,
        dirichlet_alpha=dirichlet_alpha,
    )
    select = Partial(puct.alphazero, c_init=c_init, c_base=c_base, fpu=fpu)
    root_select = Partial(root_.with_prior, rule=select, prior_logits=noisy)
    tree = advance(
        params, tree, model, select=select, root_select=root_select, backup=mean_backup,
        num_simulations=num_simulations, max_depth=max_depth,
    )  # fmt: skip
    weights = readout.visit_shares(tree)
    sampled = readout.sample(fold_in(tree.keys, _ACTION), weights, jnp.where(temperature > 0, temperature, 1))
    return _output(tree, jnp.where(temperature > 0, sampled, readout.most_visited(tree)), weights)


def gumbel_policy(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    *,
    num_simulations: int,
    root_evaluation: Evaluation | None = None,
    max_depth: int | None = None,
    max_num_considered_actions: int = 16,
    gumbel_scale: Number = 1.0,
    root_gumbel: jax.Array | None = None,
    c_visit: Number = 50.0,
    c_scale: Number = 0.1,
    rescale_q: bool = True,
) -> PolicyOutput:
    """Search with Gumbel AlphaZero (Danihelka et al. 2022): a policy improvement at any number of simulations.

    The root draws one Gumbel number per action (`root_gumbel [B, A]`, unscaled, replaces the draw) and runs
    sequential halving over the best `max_num_considered_actions`; `action_weights` is the improved policy, the
    training target. `gumbel_scale` 0 plays deterministically. With 0 simulations the weights are the prior. With noisy
    values (random rollouts), `rescale_q=False` is safer: rescaling stretches any difference, noise too, to the whole
    range, so that a reply that looks a little better than the rest takes all visits.
    """
    checks.positive("max_num_considered_actions", max_num_considered_actions)
    checks.finite(c_visit=c_visit, c_scale=c_scale, rescale_q=rescale_q)
    tree = _start(params, key, state, model, num_simulations, root_evaluation)
    roots = readout.root(tree)
    draw = root_gumbel
    if draw is None:
        draw = root_.draw_gumbel(fold_in(tree.keys, _NOISE), tree.num_actions, roots.prior_logits.dtype)
    draw = checks.per_action("root_gumbel", draw, roots.prior_logits)
    noise = checks.per_row_number("gumbel_scale", gumbel_scale, tree.batch_size)[:, None] * draw
    constants = {"c_visit": c_visit, "c_scale": c_scale, "rescale_q": rescale_q}
    root_select = Partial(
        gumbel.gumbel_root,
        gumbel=noise,
        considered_visits=root_.considered_visits(
            roots.legal_action_mask,
            max_num_considered_actions=max_num_considered_actions,
            num_simulations=max(num_simulations, 1),
        ),
        **constants,
    )
    select = Partial(gumbel.gumbel_interior, **constants)
    tree = advance(
        params, tree, model, select=select, root_select=root_select, backup=mean_backup,
        num_simulations=num_simulations, max_depth=max_depth,
    )  # fmt: skip
    action = readout.at_root(tree, Partial(gumbel.gumbel_action, gumbel=noise, **constants))
    improved = readout.at_root(tree, Partial(gumbel.improved_policy, **constants))
    return _output(tree, action, improved if num_simulations > 0 else roots.prior)


def uct_policy(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    *,
    num_simulations: int,
    root_evaluation: Evaluation | None = None,
    max_depth: int | None = None,
    c: Number = 2**0.5,
) -> PolicyOutput:
    """Search with UCT (Kocsis and Szepesvari 2006): raw values, unvisited first; play the most visited action.

    With `rollout_evaluator` this is the classic search by random games; the first child of each kind is tried in
    the order of the prior.
    """
    checks.finite(c=c)
    tree = _start(params, key, state, model, num_simulations, root_evaluation)
    select = Partial(uct.uct, c=c)
    tree = advance(
        params, tree, model, select=select, root_select=select, backup=mean_backup,
        num_simulations=num_simulations, max_depth=max_depth,
    )  # fmt: skip
    return _output(tree, readout.most_visited(tree), readout.visit_shares(tree))


def _start(
    params: PyTree,
    key: jax.Array,
    state: PyTree,
    model: Model,
    num_simulations: int,
    root_evaluation: Evaluation | None,
) -> Tree:
    checks.count("num_simulations", num_simulations)
    return init(params, key, state, model, capacity=num_simulations + 1, root_evaluation=root_evaluation)


def _output(tree: Tree, action: jax.Array, weights: jax.Array) -> PolicyOutput:
    return PolicyOutput(action=action, action_weights=weights, value=tree.value[:, ROOT], flags=tree.flags, tree=tree)
