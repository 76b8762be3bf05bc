"""The arena: what the score of a match says, and the command that plays one.

`python -m train.arena runs/connect_four uct:100` plays an agent against UCT; `match.py` has the playing.
Nothing here imports JAX before a match is played.
"""

import argparse
import dataclasses
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from train import elo
from train.config import Config


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


def count(scores: Any) -> Score:
    """Count the scores of `match.play`."""
    wins, draws, losses = (int((scores == points).sum()) for points in (1.0, 0.5, 0.0))
    return Score(wins=wins, draws=draws, losses=losses)


PLAYERS = """players:
  runs/connect_four         the newest agent of a run
  runs/connect_four@12      its agent of iteration 12
  runs/connect_four@12:200  that one with 200 simulations a move (or runs/connect_four:200)
  uct:100                   UCT with 100 rollouts a move
  random                    a random legal move"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play a match between two players, every random opening from both sides, and tell the first one's score."""
    parser = argparse.ArgumentParser(
        prog="python -m train.arena",
        description=inspect.getdoc(main),
        epilog=PLAYERS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", help="a player, see below; the score is in its view")
    parser.add_argument("second", help="the other player")
    parser.add_argument("--games", type=int, default=128, help="even, at least 2 (128)")
    parser.add_argument("--seed", type=int, default=0, help="of the openings and the players (0)")
    parser.add_argument("--game", help="needed where neither player is an agent, such as connect_four")
    parser.add_argument(
        "--opening-plies",
        type=int,
        default=Config.arena_opening_plies,
        help=f"each opening has 0 to this many random moves ({Config.arena_opening_plies})",
    )
    given = parser.parse_args(arguments)
    try:
        Config(match_games=given.games, seed=given.seed, arena_opening_plies=given.opening_plies)  # checks them
        print(_answer(given))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _answer(given: argparse.Namespace) -> str:
    import jax

    from train import match, players

    env, entrants = players.load((given.first, given.second), given.game)
    scores = match.play(
        (entrants[0].player, entrants[1].player),
        (entrants[0].params, entrants[1].params),
        jax.random.key(given.seed),
        env=env,
        games=given.games,
        opening_plies=given.opening_plies,
    )
    score = count(jax.device_get(scores))
    low, high = (elo.difference(end) for end in score.interval())
    return (
        f"{entrants[0].name} against {entrants[1].name}: {score}\n"
        f"Elo difference {elo.difference(score.mean):+.0f} (95 % interval {low:+.0f} to {high:+.0f})"
    )


if __name__ == "__main__":
    sys.exit(main())
