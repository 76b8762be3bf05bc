"""Sequential halving as a table (Karnin et al. 2013), in plain Python: which visit count is due at each simulation.

With m candidates and n simulations there are ceil(log2 m) phases of about equal budget; each phase visits its
candidates equally often, then keeps the better half. Row m of the table lists, for each simulation in turn, how
many visits the edge to be selected must already have; among those edges the best score wins.
"""

import math

import numpy as np


def considered_visits(num_considered: int, num_simulations: int) -> tuple[int, ...]:
    """List the visit count due at each of `num_simulations` for `num_considered` candidates.

    >>> considered_visits(4, 8)
    (0, 0, 0, 0, 1, 1, 2, 2)
    """
    if num_considered <= 1:
        return tuple(range(num_simulations))
    num_phases = math.ceil(math.log2(num_considered))
    due: list[int] = []
    visits, remaining = 0, num_considered
    while len(due) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * remaining))):
            due += [visits] * remaining
            visits += 1
        remaining = max(2, remaining // 2)
    return tuple(due[:num_simulations])


def considered_visits_table(max_num_considered_actions: int, num_simulations: int) -> np.ndarray:
    """Stack the lists for 0 to `max_num_considered_actions` candidates: `[m + 1, n]` int32."""
    rows = [considered_visits(m, num_simulations) for m in range(max_num_considered_actions + 1)]
    return np.array(rows, dtype=np.int32).reshape(max_num_considered_actions + 1, num_simulations)
