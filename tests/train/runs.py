"""Folders as runs leave them, without the running."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax

import envs
from train import checkpoint, presets, run_folder
from train.network import make_network


def untrained(parent: Path, iterations: Iterable[int], **fields: Any) -> Path:
    """Make a run of the debug preset that keeps an agent, of its own random parameters, for each iteration."""
    config = dataclasses.replace(presets.debug(), runs=str(parent), **fields)
    folder = run_folder.create(config)
    network = make_network(envs.make(config.game), config)
    for iteration in iterations:
        params = _opinionated(network.init(jax.random.key(iteration)), jax.random.key(iteration))
        checkpoint.save(folder / run_folder.AGENTS, iteration, params)
    return folder


def _opinionated(params: Any, key: jax.Array) -> Any:
    """Give an untrained network, whose last layers are zeros, opinions: then agents differ."""
    return jax.tree.map(lambda x: x + 0.1 * jax.random.normal(key, x.shape), params)
