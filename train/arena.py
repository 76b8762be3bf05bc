"""The command that plays a match: `python -m train.arena runs/connect_four uct:100`.

Nothing here imports JAX before a match is played; `match.py` has the playing.
"""

import argparse
import inspect
import sys
from collections.abc import Sequence

from train import elo
from train.config import Config
from train.score import Score

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
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _answer(given: argparse.Namespace) -> str:
    import jax

    from train import lineup, players

    env, (first, second) = lineup.load((given.first, given.second), given.game)
    key = jax.random.key(given.seed)
    score = Score.count(players.meet(first, second, key, env=env, games=given.games, opening_plies=given.opening_plies))
    low, high = (elo.difference(end) for end in score.interval())
    return (
        f"{first.name} against {second.name}: {score}\n"
        f"Elo difference {elo.difference(score.mean):+.0f} (95 % interval {low:+.0f} to {high:+.0f})"
    )


if __name__ == "__main__":
    sys.exit(main())
