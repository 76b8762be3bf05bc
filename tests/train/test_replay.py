import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train import replay
from train.replay import Replay


def ring_of(capacity: int, *numbers: int, at_once: int = 1) -> Replay:
    ring = replay.create({"number": jnp.int32(0)}, capacity)
    items = jnp.array(numbers, jnp.int32)
    for start in range(0, len(numbers), at_once):
        ring = replay.add(ring, {"number": items[start : start + at_once]})
    return ring


def drawn(ring: Replay, count: int = 200) -> set[int]:
    return set(np.asarray(replay.sample(ring, jax.random.key(0), count)["number"]).tolist())


def test_a_ring_that_is_exactly_full_is_not_empty() -> None:
    assert drawn(ring_of(5, 1, 2, 3, 4, 5)) == {1, 2, 3, 4, 5}


def test_the_newest_replace_the_oldest() -> None:
    assert drawn(ring_of(5, 0, 1, 2, 3, 4, 5)) == {1, 2, 3, 4, 5}


def test_a_block_is_written_in_order_around_the_end() -> None:
    ring = ring_of(5, 0, 1, 2, 3, 4, 5, 6, 7, 8, at_once=3)
    np.testing.assert_array_equal(ring.items["number"], [5, 6, 7, 8, 4])
    assert (int(ring.next_slot), int(ring.size)) == (4, 5)


def test_nothing_unwritten_is_drawn() -> None:
    ring = ring_of(100, *range(50, 60))
    assert drawn(ring, 64) <= set(range(50, 60))
    assert drawn(ring, 1000) == set(range(50, 60))


def test_draws_are_uniform() -> None:
    ring = ring_of(24, *range(24), at_once=24)
    numbers = replay.sample(ring, jax.random.key(1), 24_000)["number"]
    counts = np.bincount(numbers, minlength=24)
    assert counts.shape == (24,)
    assert (abs(counts - 1000) < 130).all()


def test_adding_writes_in_place_when_the_ring_is_donated() -> None:
    ring = ring_of(5, 1)
    pointer = ring.items["number"].unsafe_buffer_pointer()
    ring = jax.jit(replay.add, donate_argnums=0)(ring, {"number": jnp.array([2, 3], jnp.int32)})
    assert ring.items["number"].unsafe_buffer_pointer() == pointer


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holds 6 items but the replay has 5 slots"):
        ring_of(5, 0, 1, 2, 3, 4, 5, at_once=6)


def test_a_block_that_fills_the_ring_to_the_end_starts_the_next_at_the_beginning() -> None:
    ring = ring_of(6, 0, 1, 2, 3, 4, 5, at_once=3)
    assert (int(ring.next_slot), int(ring.size)) == (0, 6)
    ring = replay.add(ring, {"number": jnp.arange(6, 10, dtype=jnp.int32)})
    np.testing.assert_array_equal(ring.items["number"], [6, 7, 8, 9, 4, 5])
    assert (int(ring.next_slot), int(ring.size)) == (4, 6)
    ring = replay.add(ring, {"number": jnp.arange(10, 16, dtype=jnp.int32)})  # all of it at once, around the end
    np.testing.assert_array_equal(ring.items["number"], [12, 13, 14, 15, 10, 11])
    assert (int(ring.next_slot), int(ring.size)) == (4, 6)


def test_c068_one_item_keeps_its_axis() -> None:
    ring = replay.create({"board": jnp.zeros((1, 3))}, 1)
    ring = replay.add(ring, {"board": jnp.ones((1, 1, 3))})
    drawn = replay.sample(ring, jax.random.key(0), 1)
    np.testing.assert_array_equal(drawn["board"], np.ones((1, 1, 3)))


def test_c074_items_keep_their_types() -> None:
    item = {
        "mask": jnp.array([True, False]),
        "board": jnp.array([-128, 127], jnp.int8),
        "key": jnp.array([0, 2**32 - 1], jnp.uint32),
        "clock": jnp.float32(0.1),
    }
    ring = replay.add(replay.create(item, 3), jax.tree.map(lambda x: x[None], item))
    drawn = jax.tree.map(lambda x: x[0], replay.sample(ring, jax.random.key(0), 1))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), drawn) == jax.tree.map(lambda x: (x.shape, x.dtype), item)
    jax.tree.map(np.testing.assert_array_equal, drawn, item)
