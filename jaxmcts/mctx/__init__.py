"""mctx's names on this library's search: `import jaxmcts.mctx as mctx` runs code that was written for mctx 0.0.71.

    import jaxmcts.mctx as mctx

    output = mctx.gumbel_muzero_policy(params, rng_key, root, recurrent_fn, num_simulations=32)

The names and signatures are mctx's, and so are its meanings: `invalid_actions` are ones and count at the root only, no
node is ever finished, values join by `reward + discount * value`. For the same key the Dirichlet noise, the Gumbel
numbers and the drawn action are the same, and so are action, weights, visits and values, with these exceptions:

* **Ties.** mctx's `muzero_action_selection` breaks them by noise of 1e-7 from the key. Here they go to the higher
  prior, then to the lower index. This shows where scores are equal: among unvisited actions of equal prior (uniform
  logits, a model that gives the same logits everywhere) and in games with few values; real-valued logits have no ties.
* **Other keys.** A stochastic `recurrent_fn`, and an action selection function of your own, receive other keys than
  from mctx, as independent and of the same kind. mctx's last step at `max_depth` evaluates the node there again and
  keeps what came last; here the first evaluation stays, which differs only where `recurrent_fn` is stochastic.
* **Numbers.** Statistics are float32, whatever the dtype of `root.value`. A value, reward or discount that is not
  finite counts as 0 instead of spreading NaN.
* **Python ints.** `num_simulations`, `max_depth` and `max_num_considered_actions` are known while tracing.
* `loop_fn` is accepted and not used: the loop here carries more than a key and a tree.
* `stochastic_muzero_policy` is not there yet and raises `NotImplementedError`.

**What is fast.** mctx's own selection functions and q-transforms, also with constants bound by `functools.partial`, run
as cached rules: the cost of a simulation does not grow with the budget. A q-transform or selection function of your own
may read the whole tree, so it is asked at every level of every descent (`jaxmcts.Live`); it sees one row's tree, and
what it does not read is not computed. `node_visits`, and whatever mctx stores by child (`children_index`,
`children_rewards`, `children_discounts`, `children_values`), are stored otherwise here and cost a pass over the tree
in each simulation; `tree.qvalues(node_index)` costs one row. Call the policies inside `jax.jit`, as with mctx; outside,
each call compiles anew. An outer `jax.vmap` costs nothing, but what it varies must not reach a q-transform or selection
function by closure: use `extra_data`.
"""

from jaxmcts.mctx.action_selection import (
    GumbelMuZeroExtraData,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    muzero_action_selection,
)
from jaxmcts.mctx.base import (
    ChanceRecurrentFnOutput,
    DecisionRecurrentFnOutput,
    InteriorActionSelectionFn,
    LoopFn,
    PolicyOutput,
    RecurrentFn,
    RecurrentFnOutput,
    RecurrentState,
    RootActionSelectionFn,
    RootFnOutput,
)
from jaxmcts.mctx.policies import gumbel_muzero_policy, muzero_policy, stochastic_muzero_policy
from jaxmcts.mctx.qtransforms import (
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from jaxmcts.mctx.search import search
from jaxmcts.mctx.tree import Tree

__version__ = "0.0.71"  # of mctx, whose names these are

__all__ = [
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "GumbelMuZeroExtraData",
    "InteriorActionSelectionFn",
    "LoopFn",
    "PolicyOutput",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootActionSelectionFn",
    "RootFnOutput",
    "Tree",
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_policy",
    "gumbel_muzero_root_action_selection",
    "muzero_action_selection",
    "muzero_policy",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "search",
    "stochastic_muzero_policy",
]
