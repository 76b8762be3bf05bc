"""Board games in pure JAX: `make("connect_four")` gives a game, `names()` lists them.

Games of others come in by `from_pgx` and `from_gymnax`, your own by `register` or by where they can be imported; `make`
knows them all by one string.
"""

from envs.base import BoardGame, State, auto_reset
from envs.chance import ChanceGame
from envs.check import ContractError, check_env, check_types
from envs.connect_four import ConnectFour
from envs.go import Go
from envs.gymnax import from_gymnax
from envs.hex import Hex
from envs.mnk import MNK
from envs.moves import ActionLayout, legal_moves, move_name, parse_move
from envs.othello import Othello
from envs.pgx import from_pgx, to_pgx
from envs.picture import to_svg
from envs.pig import Pig
from envs.puzzle import SlidingPuzzle
from envs.registry import make, names, register
from envs.render import from_text, to_text
from envs.symmetry import Symmetry
from envs.tic_tac_toe import TicTacToe
from envs.time_limit import TimeLimit
from envs.twenty48 import Twenty48

__all__ = [
    "ActionLayout",
    "BoardGame",
    "ChanceGame",
    "ConnectFour",
    "ContractError",
    "Go",
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
    "check_types",
    "from_gymnax",
    "from_pgx",
    "from_text",
    "legal_moves",
    "make",
    "move_name",
    "names",
    "parse_move",
    "register",
    "to_pgx",
    "to_svg",
    "to_text",
]

for _game in (TicTacToe, ConnectFour, Hex, Go, Othello, MNK, Twenty48, Pig, SlidingPuzzle):
    register(_game.name, _game)
