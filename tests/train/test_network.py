import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.network import Network

NETWORK = Network(observation_shape=(6, 7, 2), num_actions=7, channels=8, blocks=2)
JUDGE = jax.jit(NETWORK)


@jax.jit
def drawn(seed: int) -> dict:
    return NETWORK.init(jax.random.key(seed))


def boards(count: int) -> jax.Array:
    return jax.random.bernoulli(jax.random.key(1), 0.3, (count, 6, 7, 2)).astype(jnp.float32)


@jax.jit
def stirred() -> dict:
    """Parameters with opinions: those of a new network say nothing."""
    leaves, treedef = jax.tree.flatten(NETWORK.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [leaf + 0.1 * jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(treedef, moved)


def test_a_new_network_has_no_opinion() -> None:
    logits, value = JUDGE(drawn(0), boards(65))
    np.testing.assert_array_equal(logits, np.zeros((65, 7)))
    np.testing.assert_array_equal(value, np.zeros(65))


def test_parameters_are_plain_arrays_in_dicts_drawn_from_the_key() -> None:
    first, again, other = (drawn(seed) for seed in (0, 0, 1))
    assert type(first) is dict
    kernels = [params["convolutions"][0]["kernel"] for params in (first, again, other)]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert (kernels[0] != kernels[2]).any()


def test_a_row_does_not_depend_on_the_others() -> None:
    params, x = stirred(), boards(65)
    together = JUDGE(params, x)
    alone = JUDGE(params, x[:1])
    for both, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(both[:1], one, atol=1e-6)


def test_values_lie_between_minus_one_and_one_on_both_sides_of_zero() -> None:
    _, value = JUDGE(stirred(), boards(1000))
    assert value.shape == (1000,)
    assert (jnp.abs(value) <= 1).all()
    assert np.std(value) > 0.01


def test_equal_networks_share_a_compilation() -> None:
    traces = []

    def judge(network: Network, params: dict, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        traces.append(network)
        return network(params, x)

    compiled = jax.jit(judge, static_argnums=0)
    params = drawn(0)
    for _ in range(2):
        compiled(Network(observation_shape=(6, 7, 2), num_actions=7, channels=8, blocks=2), params, boards(2))
    assert len(traces) == 1


def test_a_game_without_a_board_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`observation_shape` is \(4,\)"):
        Network(observation_shape=(4,), num_actions=2, channels=8, blocks=1)
