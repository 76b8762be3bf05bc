"""Timing that survives a busy machine: contestants take turns, and only their medians are compared."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

SLOW_S = 10.0  # a call that takes longer runs once
SHORT_S = 0.02  # a shorter call is repeated within one measurement


def medians(calls: Mapping[str, Callable[[], Any]], *, rounds: int = 5) -> dict[str, float]:
    """Return the median seconds of each call, measured in turns after one call each to warm up.

    The warm-up is the measurement of a call that takes longer than `SLOW_S`.
    """
    first = {name: seconds(call) for name, call in calls.items()}
    brief = {name: max(1, round(SHORT_S / first[name])) for name in calls}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if first[name] < SLOW_S:
                times[name].append(seconds(call, brief[name]))
    return {name: statistics.median(times[name] or [first[name]]) for name in calls}


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Return the seconds that one of `repeats` calls takes, its result awaited."""
    start = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / repeats


def verdict(passed: bool) -> str:
    """Return how a requirement is reported."""
    return "pass" if passed else "FAIL"
