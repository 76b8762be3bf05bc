"""The nodes of a whole batch in one line: how a search's loops address them.

The *place* of slot s of row b is b * N + s, the *base* of a row is the place of its root, and `end` = B * N is no place
at all: a write there is dropped.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxmcts.batching import vary_alike
from jaxmcts.tree import Tree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """Trees whose rows' nodes lie in one line. One number a row is `[B]`."""

    tree: Tree  # arrays [B * N, ...] instead of [B, N, ...]
    capacity: int = dataclasses.field(metadata={"static": True})  # N

    @classmethod
    def of(cls, tree: Tree) -> "Line":
        """Lay the nodes of all rows in one line, as if they were one row's."""
        in_line = _reshape_nodes(tree, lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]))
        return cls(tree=in_line, capacity=tree.capacity)

    @property
    def in_rows(self) -> Tree:
        """The tree with a batch axis again."""
        batch_size = self.tree.num_simulations.shape[0]
        return _reshape_nodes(self.tree, lambda x: x.reshape(batch_size, self.capacity, *x.shape[1:]))

    @property
    def rows(self) -> jax.Array:
        count = self.tree.num_simulations
        return vary_alike(jnp.arange(count.shape[0], dtype=jnp.int32), count)

    @property
    def bases(self) -> jax.Array:
        return self.rows * self.capacity

    @property
    def end(self) -> int:
        return self.tree.choice.shape[0]

    @property
    def full(self) -> jax.Array:
        return self.tree.num_simulations + 1 >= self.capacity

    def replace(self, **arrays: Any) -> "Line":
        return dataclasses.replace(self, tree=dataclasses.replace(self.tree, **arrays))


def _reshape_nodes(tree: Tree, reshape: Callable[[jax.Array], jax.Array]) -> Tree:
    by_row = ("keys", "num_simulations", "flags")
    names = [field.name for field in dataclasses.fields(tree) if field.name not in by_row]
    return dataclasses.replace(tree, **{name: jax.tree.map(reshape, getattr(tree, name)) for name in names})
