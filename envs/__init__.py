"""Board games in pure JAX: `make("connect_four")` gives a game, `names()` lists them."""

import ast
import dataclasses
import difflib
import re
from typing import Any

from envs.base import BoardGame, State, Symmetry, auto_reset
from envs.chance import ChanceGame
from envs.check import ContractError, check_env
from envs.connect_four import ConnectFour
from envs.hex import Hex
from envs.mnk import MNK
from envs.moves import ActionLayout, legal_moves, move_name, parse_move
from envs.othello import Othello
from envs.picture import to_svg
from envs.pig import Pig
from envs.puzzle import SlidingPuzzle
from envs.render import from_text, to_text
from envs.tic_tac_toe import TicTacToe
from envs.time_limit import TimeLimit
from envs.twenty48 import Twenty48

__all__ = [
    "ActionLayout",
    "BoardGame",
    "ChanceGame",
    "ConnectFour",
    "ContractError",
    "Hex",
    "MNK",
    "Othello",
    "Pig",
    "SlidingPuzzle",
    "State",
    "Symmetry",
    "TicTacToe",
    "TimeLimit",
    "Twenty48",
    "auto_reset",
    "check_env",
    "from_text",
    "legal_moves",
    "make",
    "move_name",
    "names",
    "parse_move",
    "to_svg",
    "to_text",
]

_GAMES: dict[str, type[BoardGame]] = {
    game.name: game for game in (TicTacToe, ConnectFour, Hex, Othello, MNK, Twenty48, Pig, SlidingPuzzle)
}


def names() -> tuple[str, ...]:
    """List the games that `make` knows."""
    return tuple(_GAMES)


def make(name: str, **options: Any) -> BoardGame:
    """Make a game; `options` are the fields of its class, such as `rows` for Connect Four.

    The name may carry options itself, `make("connect_four(rows=5, columns=6)")`, so that one string names any game.
    Raises `ValueError` for a name, an option or a value the games do not have, and for an option given twice.
    """
    name, written = _parse(name)
    if name not in _GAMES:
        near = difflib.get_close_matches(name, _GAMES, n=len(_GAMES), cutoff=0.0)
        raise ValueError(f"Unknown game {name!r}: known games are {', '.join(near)} (nearest first).")
    game = _GAMES[name]
    known = [field.name for field in dataclasses.fields(game)]  # type: ignore[arg-type]
    if twice := sorted(written.keys() & options):
        raise ValueError(f"The options {twice} of game {name!r} are given in the name and beside it: give each once.")
    options = written | options
    for option in options:
        if option not in known:
            offer = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ValueError(f"Unknown option {option!r} of game {name!r}: {offer}.")
    return game(**options)


def _parse(name: Any) -> tuple[str, dict[str, Any]]:
    """Split `name(option=value, ...)`; values are Python's literals."""
    match = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", str(name))
    if match is None:
        return str(name), {}
    try:
        call = ast.parse(f"_({match[2] or ''})", mode="eval").body
        options = {option.arg: ast.literal_eval(option.value) for option in call.keywords}  # type: ignore[attr-defined]
        if call.args or None in options:  # type: ignore[attr-defined]
            raise ValueError("an option has no name")
        if len(options) < len(call.keywords):  # type: ignore[attr-defined]
            raise ValueError("an option is given twice")
    except (AttributeError, MemoryError, RecursionError, SyntaxError, ValueError) as error:
        raise ValueError(
            f"The options in {name!r} cannot be read: write each once, as in 'connect_four(rows=5, columns=6)'."
        ) from error
    return match[1], options
