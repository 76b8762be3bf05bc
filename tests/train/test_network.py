import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from train.config import Config
from train.network import Network, make_network

CONVOLUTIONS, MLP = NETWORKS = tuple(
    Network(kind=kind, observation_shape=(6, 7, 2), num_actions=7, channels=8, blocks=3)
    for kind in ("convolutions", "mlp")
)
both = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.kind)
judge = jax.jit(Network.__call__, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def drawn(network: Network, seed: int) -> dict:
    return network.init(jax.random.key(seed))


def boards(count: int) -> jax.Array:
    return jax.random.bernoulli(jax.random.key(1), 0.3, (count, 6, 7, 2)).astype(jnp.float32)


@functools.partial(jax.jit, static_argnums=0)
def stirred(network: Network) -> dict:
    """Parameters with opinions: those of a new network say nothing."""
    leaves, treedef = jax.tree.flatten(network.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [leaf + 0.1 * jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(treedef, moved)


@both
def test_a_new_network_has_no_opinion(network: Network) -> None:
    logits, value = judge(network, drawn(network, 0), boards(65))
    np.testing.assert_array_equal(logits, np.zeros((65, 7)))
    np.testing.assert_array_equal(value, np.zeros(65))


@both
def test_parameters_are_plain_arrays_in_dicts_drawn_from_the_key(network: Network) -> None:
    first, again, other = (drawn(network, seed) for seed in (0, 0, 1))
    assert type(first) is dict
    kernels = [params["layers"][0]["kernel"] for params in (first, again, other)]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    assert (kernels[0] != kernels[2]).any()


def test_width_and_number_of_layers_are_as_asked() -> None:
    assert [layer["kernel"].shape for layer in drawn(CONVOLUTIONS, 0)["layers"].values()] == [(3, 3, 2, 8)] + [
        (3, 3, 8, 8)
    ] * 2
    assert [layer["kernel"].shape for layer in drawn(MLP, 0)["layers"].values()] == [(84, 8), (8, 8), (8, 8)]


@both
def test_a_row_does_not_depend_on_the_others(network: Network) -> None:
    params, x = stirred(network), boards(65)
    together = judge(network, params, x)
    alone = judge(network, params, x[:1])
    for all_rows, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(all_rows[:1], one, rtol=1e-5, atol=1e-6)


@both
def test_values_lie_between_minus_one_and_one_on_both_sides_of_zero(network: Network) -> None:
    _, value = judge(network, stirred(network), boards(1000))
    assert value.shape == (1000,)
    assert (jnp.abs(value) <= 1).all()
    assert np.std(value) > 0.01


@both
def test_each_layer_is_added_to_what_went_in(network: Network) -> None:
    """With its last layer silenced, a network is the one without it."""
    params = stirred(network)
    silent = params | {"layers": dict(params["layers"]), "norms": dict(params["norms"])}
    silent["norms"][2] = jax.tree.map(jnp.zeros_like, params["norms"][2])
    shorter = silent | {part: {n: silent[part][n] for n in (0, 1)} for part in ("layers", "norms")}
    expected = judge(dataclasses.replace(network, blocks=2), shorter, boards(5))
    for one, other in zip(judge(network, silent, boards(5)), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert np.std(one) > 0


def test_equal_networks_share_a_compilation() -> None:
    traces = []

    def trace(network: Network, params: dict, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        traces.append(network)
        return network(params, x)

    compiled = jax.jit(trace, static_argnums=0)
    params = drawn(CONVOLUTIONS, 0)
    for _ in range(2):
        compiled(Network(observation_shape=(6, 7, 2), num_actions=7, channels=8, blocks=3), params, boards(2))
    assert len(traces) == 1


def test_a_game_without_a_board_needs_dense_layers() -> None:
    with pytest.raises(ValueError, match=r"`observation_shape` is \(4,\).*choose `network` \"mlp\""):
        Network(observation_shape=(4,), num_actions=2, channels=8, blocks=1)
    flat = Network(kind="mlp", observation_shape=(4,), num_actions=2, channels=8, blocks=1)
    logits, value = flat(flat.init(jax.random.key(0)), jnp.ones((3, 4)))
    assert logits.shape == (3, 2) and value.shape == (3,)


@pytest.mark.parametrize("kind", ["convolutions", "mlp"])
def test_a_config_sizes_the_network_for_its_game(kind: Any) -> None:
    network = make_network(envs.make("connect_four"), Config(network=kind, channels=8, blocks=3))
    assert network == {"convolutions": CONVOLUTIONS, "mlp": MLP}[kind]
