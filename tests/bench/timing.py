"""Timing that survives a busy machine: contestants take turns, and a ratio compares neighbours in time.

Seconds on the wall are what counts; the processor's are kept beside them, because other programs on the same
machine disturb them far less.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import jax

SLOW_S = 10.0  # a call that takes longer runs once
SHORT_S = 0.05  # a shorter call is repeated within one measurement


class Spent(NamedTuple):
    """Seconds that one call takes."""

    wall: float
    processor: float  # of all threads


Times = dict[str, list[Spent]]  # a list of rounds for each call


def take_turns(calls: Mapping[str, Callable[[], Any]], *, rounds: int = 5) -> Times:
    """Time each call once a round, in turns, after one call each to warm up.

    The warm-up is the only measurement of a call that takes longer than `SLOW_S`.
    """
    first = {name: measure(call) for name, call in calls.items()}
    repeats = {name: max(1, round(SHORT_S / first[name].wall)) for name in calls}
    times: Times = {name: [] if first[name].wall < SLOW_S else [first[name]] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if first[name].wall < SLOW_S:
                times[name].append(measure(call, repeats[name]))
    return times


def measure(call: Callable[[], Any], repeats: int = 1) -> Spent:
    """Return what one of `repeats` calls takes, its result awaited."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        jax.block_until_ready(call())
    return Spent((time.perf_counter() - wall) / repeats, (time.process_time() - processor) / repeats)


def median(times: Times, name: str) -> float:
    """Return the median seconds of one call, on the wall."""
    return statistics.median(spent.wall for spent in times[name])


def ratio(times: Times, slow: str, fast: str, clock: Literal["wall", "processor"] = "wall") -> float:
    """Return how many times longer `slow` takes: the median over rounds, or of medians if one ran only once."""
    above, below = ([getattr(spent, clock) for spent in times[name]] for name in (slow, fast))
    if len(above) != len(below):
        return statistics.median(above) / statistics.median(below)
    return statistics.median(a / b for a, b in zip(above, below))


def verdict(passed: bool) -> str:
    """Return how a requirement is reported."""
    return "pass" if passed else "FAIL"
