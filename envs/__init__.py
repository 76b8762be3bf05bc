"""Board games in pure JAX: `make("connect_four")` gives a game, `names()` lists them."""

import dataclasses
import difflib
from typing import Any

from envs.base import BoardGame, State, Symmetry, auto_reset
from envs.check import ContractError, check_env
from envs.connect_four import ConnectFour
from envs.render import from_text, to_text
from envs.tic_tac_toe import TicTacToe
from envs.time_limit import TimeLimit

__all__ = [
    "BoardGame",
    "ConnectFour",
    "ContractError",
    "State",
    "Symmetry",
    "TicTacToe",
    "TimeLimit",
    "auto_reset",
    "check_env",
    "from_text",
    "make",
    "names",
    "to_text",
]

_GAMES: dict[str, type[BoardGame]] = {game.name: game for game in (TicTacToe, ConnectFour)}


def names() -> tuple[str, ...]:
    """List the games that `make` knows."""
    return tuple(_GAMES)


def make(name: str, **options: Any) -> BoardGame:
    """Make the game `name`; `options` are the fields of its class, such as `rows` for Connect Four.

    Raises `ValueError` for a name, an option or a value the games do not have.
    """
    if name not in _GAMES:
        near = difflib.get_close_matches(str(name), _GAMES, n=len(_GAMES), cutoff=0.0)
        raise ValueError(f"Unknown game {name!r}: known games are {', '.join(near)} (nearest first).")
    game = _GAMES[name]
    known = [field.name for field in dataclasses.fields(game)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            offer = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ValueError(f"Unknown option {option!r} of game {name!r}: {offer}.")
    return game(**options)
