"""The score of a match, and how far it can be trusted."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """A match in numbers, in the view of the first player."""

    wins: int
    draws: int
    losses: int

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> "Score":
        """Read the counts of a line of `metrics.jsonl`, or of any mapping that has them."""
        return cls(wins=counts["wins"], draws=counts["draws"], losses=counts["losses"])

    @classmethod
    def count(cls, points: np.ndarray) -> "Score":
        """Count the points of games: 1 won, 0.5 drawn, 0 lost."""
        wins, draws, losses = (int((points == point).sum()) for point in (1.0, 0.5, 0.0))
        return cls(wins=wins, draws=draws, losses=losses)

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def mean(self) -> float:
        """Points per game, a draw counting one half."""
        return (self.wins + self.draws / 2) / self.games

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Give Wilson's interval of the mean score, 95 % by default.

        It treats games as independent and draws as half wins. Both err on the wide side: a draw varies less,
        and the two games of an opening that favours one seat balance each other.
        """
        n, p = self.games, self.mean
        if p in (0, 1):  # exact, for rounding would leave a trace of what cannot be excluded
            lost = z * z / (n + z * z)
            return (0.0, lost) if p == 0 else (1 - lost, 1.0)
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(centre - half, 0.0), min(centre + half, 1.0)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.mean:.1%} (95 % interval {low:.1%} to {high:.1%}) over {self.games} games: "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost"
        )
