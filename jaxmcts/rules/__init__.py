"""Selection rules: each a plain function of one node's record that reads like its equation.

A rule is `select(node) -> action`; its constants are keyword arguments, bound with `jax.tree_util.Partial`.
`pick` is what they share: the best allowed score, ties broken by prior, then by index.
"""

from jaxmcts.rules.pick import pick

__all__ = ["pick"]
