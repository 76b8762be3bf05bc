"""Timing that survives a busy machine: contestants take turns, and a ratio compares neighbours in time."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

SLOW_S = 10.0  # a call that takes longer runs once
SHORT_S = 0.02  # a shorter call is repeated within one measurement

Times = dict[str, list[float]]  # seconds, a list of rounds for each call


def take_turns(calls: Mapping[str, Callable[[], Any]], *, rounds: int = 5) -> Times:
    """Time each call once a round, in turns, after one call each to warm up.

    The warm-up is the only measurement of a call that takes longer than `SLOW_S`.
    """
    first = {name: seconds(call) for name, call in calls.items()}
    repeats = {name: max(1, round(SHORT_S / first[name])) for name in calls}
    times: Times = {name: [] if first[name] < SLOW_S else [first[name]] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if first[name] < SLOW_S:
                times[name].append(seconds(call, repeats[name]))
    return times


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Return the seconds that one of `repeats` calls takes, its result awaited."""
    start = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / repeats


def median(times: Times, name: str) -> float:
    """Return the median seconds of one call."""
    return statistics.median(times[name])


def ratio(times: Times, slow: str, fast: str) -> float:
    """Return how many times longer `slow` takes: the median over rounds, or of medians if one ran only once."""
    if len(times[slow]) != len(times[fast]):
        return median(times, slow) / median(times, fast)
    return statistics.median(a / b for a, b in zip(times[slow], times[fast]))


def verdict(passed: bool) -> str:
    """Return how a requirement is reported."""
    return "pass" if passed else "FAIL"
