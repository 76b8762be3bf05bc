"""Names of moves: `3` for a column, `c3` for a cell, `swap`. Boards, pictures, reports and commands all use these.

A game says by its `action_layout` where its actions lie on its board; of one that does not, moves are called by
their numbers.
"""

import dataclasses
import operator
import string
from collections.abc import Iterator
from typing import Any, Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActionLayout:
    """Where the actions of a game lie on its board of R rows and C columns, as its observation has them.

    The first actions are the board's: on "cells" action r * C + c is the cell in row r and column c, on "columns"
    action c is column c, and on None the board has none. The others follow.
    """

    on: Literal["cells", "columns"] | None = None
    others: tuple[str, ...] = ()  # names of those that follow, in order; where these end, numbers go on

    def __post_init__(self) -> None:
        if self.on not in ("cells", "columns", None):
            raise ValueError(f"`on` is {self.on!r}, expected 'cells', 'columns' or None.")
        named = isinstance(self.others, tuple) and all(isinstance(name, str) for name in self.others)
        if not named or any(name.strip() != name or not name for name in self.others):
            raise ValueError(f"`others` is {self.others!r}, expected a tuple of names, each without spaces around it.")


def layout_of(env: Any) -> ActionLayout:
    """Give the layout that a game declares, else that of a plain list of actions."""
    layout = getattr(env, "action_layout", ActionLayout())
    if not isinstance(layout, ActionLayout):
        raise ValueError(f"`action_layout` of {env.name!r} is {layout!r}, expected an `envs.ActionLayout`.")
    return layout


def check_names(env: Any) -> None:
    """Raise `ValueError` unless each action's name is its alone, and none is left over."""
    names = [move_name(env, action).lower() for action in range(env.num_actions)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"`action_layout` of {env.name!r} gives several actions the name {', '.join(twice)}.")
    left = len(layout_of(env).others) + num_on_board(env) - env.num_actions
    if left > 0:
        raise ValueError(f"`action_layout` of {env.name!r} has {left} names more than there are actions.")


def num_on_board(env: Any) -> int:
    """Count the actions that lie on the board. Raises `ValueError` for a layout that the game has no board for."""
    on, shape = layout_of(env).on, env.observation_shape
    if on is None:
        return 0
    if len(shape) < 2:
        raise ValueError(
            f"`action_layout` of {env.name!r} puts its actions on {on}, but the observation has the shape {shape}, "
            "expected (rows, columns, ...): leave `on` out if there is no board."
        )
    count = shape[0] * shape[1] if on == "cells" else shape[1]
    if count > env.num_actions:
        raise ValueError(
            f"`action_layout` of {env.name!r} puts its actions on {on}, of which the observation has {count}, but "
            f"`num_actions` is {env.num_actions}: there must be an action for each."
        )
    return int(count)


def move_name(env: Any, action: int) -> str:
    """Name an action as it is written beside the board: `3` for a column, `c3` for column c and row 3, or `swap`.

    Columns of cells are lettered from a (after z come aa, ab and so on), rows numbered from 1 as the observation has
    them: from the top, or from below if the game is `bottom_up`. Raises `ValueError` for an action out of range,
    `TypeError` for what is no integer.
    """
    action, count, layout = operator.index(action), num_on_board(env), layout_of(env)
    if not 0 <= action < env.num_actions:
        raise ValueError(f"`action` is {action}, expected one from 0 to {env.num_actions - 1}.")
    if action < count and layout.on == "cells":
        row, column = divmod(action, env.observation_shape[1])
        return f"{column_letters(column)}{row + 1}"
    if count <= action < count + len(layout.others):
        return layout.others[action - count]
    return str(action)


def parse_move(env: Any, text: str | int) -> int:
    """Find the action of a name; capitals and spaces around it do not matter, and an action's number will do as well.

    Where a name is a number too, it is taken as the name. Raises `ValueError` for what is neither.
    """
    wanted = str(text).strip().lower()
    names = [move_name(env, action) for action in range(env.num_actions)]
    for action, name in enumerate(names):
        if name.lower() == wanted:
            return action
    if wanted.isdecimal() and int(wanted) < env.num_actions:
        return int(wanted)
    raise ValueError(f"{text!r} is no move of {env.name!r}, whose moves are {' '.join(names)}.")


def legal_moves(env: Any, state: Any) -> Iterator[str]:
    """Name the moves that are legal in one state, in the order of their actions; none if the game is over."""
    return (move_name(env, action) for action, legal in enumerate(env.legal_action_mask(state).tolist()) if legal)


def column_letters(column: int) -> str:
    """Letter a column as spreadsheets do: 0 is a, 25 z, 26 aa."""
    rest, last = divmod(column, 26)
    return (column_letters(rest - 1) if rest else "") + string.ascii_lowercase[last]
