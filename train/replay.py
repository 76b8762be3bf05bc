"""The positions to learn from: a ring of arrays that stays on the device.

It keeps whatever tree of arrays it is made for, one item a slot; the newest items overwrite the oldest.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay:
    """Slots 0 to `size` - 1 hold items; `next_slot` is written next. A full ring stays full."""

    items: Any  # [capacity, ...]
    next_slot: jax.Array  # [] int32
    size: jax.Array  # [] int32

    @property
    def capacity(self) -> int:
        return jax.tree.leaves(self.items)[0].shape[0]


def create(item: Any, capacity: int) -> Replay:
    """Make an empty ring for items like `item`, given by its arrays or their shapes, without a batch axis."""
    items = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), item)
    return Replay(items=items, next_slot=jnp.int32(0), size=jnp.int32(0))


def add(replay: Replay, items: Any) -> Replay:
    """Write `items` `[n, ...]` in order, over the oldest. Donate the ring, and it is written in place.

    Raises `ValueError` if `n` is above the capacity.
    """
    count, capacity = jax.tree.leaves(items)[0].shape[0], replay.capacity
    if count > capacity:
        raise ValueError(
            f"`items` holds {count} items but the replay has {capacity} slots: "
            "raise its capacity or add fewer at a time."
        )
    slots = (replay.next_slot + jnp.arange(count)) % capacity
    return Replay(
        items=jax.tree.map(lambda old, new: old.at[slots].set(new, unique_indices=True), replay.items, items),
        next_slot=(replay.next_slot + count) % capacity,
        size=jnp.minimum(replay.size + count, capacity),
    )


def sample(replay: Replay, key: jax.Array, count: int) -> Any:
    """Draw `count` of the items `[count, ...]` uniformly, with repetition. An empty ring gives zeros."""
    slots = jax.random.randint(key, (count,), 0, jnp.maximum(replay.size, 1))
    return jax.tree.map(lambda x: x[slots], replay.items)
