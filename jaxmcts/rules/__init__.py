"""Selection rules: each a plain function of one node's record that reads like its equation.

A rule is `select(node) -> action`; its constants are keyword arguments, bound with `jax.tree_util.Partial`. A few need
more than the record and are `rule(key, tree, index) -> action`, for `jaxmcts.Live`. What they share is in `pick`: the
best allowed score, ties broken by prior, then by index. README.md here says which rule is for what.
"""

from jaxmcts.rules import (
    engines,
    final,
    gates,
    gumbel,
    muzero,
    pruning,
    puct,
    regularised,
    sampled,
    uct,
    variance,
)
from jaxmcts.rules.pick import best, pick

__all__ = [
    "best",
    "engines",
    "final",
    "gates",
    "gumbel",
    "muzero",
    "pick",
    "pruning",
    "puct",
    "regularised",
    "sampled",
    "uct",
    "variance",
]
