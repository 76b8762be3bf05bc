"""All that a config can choose at once, through every compiled stage but the match."""

import dataclasses
import functools
import operator
from typing import Any

import jax
import numpy as np
import pytest

from train import stages, targets
from train.presets import debug

CONFIG = dataclasses.replace(
    debug(),
    iterations=3,
    search="alphazero",
    network="mlp",
    full_search_share=0.5,
    fast_num_simulations=2,
    temperature_plies=3,
    late_temperature=0.1,
    td_lambda=0.5,
    td_steps=2,
    search_value_share=0.25,
    warmup_updates=2,
    average_decay=0.9,
)


def assert_close(one: Any, other: Any) -> None:
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-6), one, other)


def test_every_choice_reaches_its_stage() -> None:
    built = stages.build(CONFIG)
    learner, games, ring = built.start(jax.random.key(0))
    assert ring.capacity == CONFIG.replay and int(ring.size) == 0
    assert learner.params["layers"][0]["kernel"].shape == (3 * 3 * 2, CONFIG.channels)
    full = []
    for number in range(CONFIG.iterations):
        games, trajectory = built.play(learner.playing, games, jax.random.key(number))
        full.append(np.asarray(trajectory.policy_weight))
        wanted = targets.samples(trajectory, td_lambda=0.5, td_steps=2, search_value_share=0.25)
        slots = (ring.next_slot + np.arange(CONFIG.games * CONFIG.steps)) % ring.capacity
        ring = built.store(ring, trajectory)
        assert_close(jax.tree.map(operator.itemgetter(slots), ring.items), wanted)
        for update in range(CONFIG.updates):
            learner, metrics = built.update(learner, ring, jax.random.key(update))
            assert np.isfinite(metrics["loss"]) and metrics["update_norm"] > 0
    assert 0 < np.mean(full) < 1
    # The mean of six weights in a row is not the last of them.
    difference = jax.tree.map(lambda one, other: float(abs(one - other).max()), learner.params, learner.playing)
    assert max(jax.tree.leaves(difference)) > 1e-4


@pytest.mark.parametrize(("mirror", "symmetries"), [(True, 8), (False, 1)])
def test_an_update_is_as_the_config_says(mirror: bool, symmetries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def update(*arguments: Any, **options: Any) -> tuple[Any, dict]:
        given.update(options)
        return arguments[0], {}

    monkeypatch.setattr(stages.learner, "update", update)
    built = stages.build(dataclasses.replace(CONFIG, mirror=mirror, batch=7, value_weight=0.5))
    built.update(np.zeros(1), np.zeros(1), jax.random.key(0))  # type: ignore[arg-type]
    assert len(given["symmetries"]) == symmetries
    assert (given["batch"], given["value_weight"], given["average_decay"]) == (7, 0.5, 0.9)
