"""Every game by one string: `make("connect_four(rows=5)")`, in Python, on command lines, in configs, in resumed runs.

A name is one of three:

    connect_four                  a game of ours, or one that `register` has named in this process
    pgx:chess                     a game of pgx, by its id there
    my_package.my_module:MyGame   anything that can be imported and makes a game when it is called, or is one

Options follow in brackets, as Python writes them. The third needs no registration, so every process understands it that
can import the module: it is what to train a game of your own by. `register` serves notebooks and short names.
"""

import ast
import difflib
import functools
import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

from envs.pgx import from_pgx

_GAMES: dict[str, Callable[..., Any]] = {}
_NEEDED = ("name", "num_actions", "num_players", "observation_shape", "init", "step", "observe", "legal_action_mask")
_HELP = (
    "A game of your own is named by where it can be imported, 'my_module:MyGame', or first given a name with "
    "`envs.register`."
)


def names() -> tuple[str, ...]:
    """List the games that `make` knows by a name alone."""
    return tuple(_GAMES)


def register(name: str, game: Callable[..., Any], *, replace: bool = False) -> None:
    """Name a game in this process, so that `make(name)` makes it: `game` is its class, or a function that returns one.

    Its parameters are the options that a name may carry in brackets. The name is forgotten with the process: a run that
    is to be resumed, or an agent that is to be loaded elsewhere, names its game by an import path instead.
    Raises `ValueError` for a name that is no identifier or is taken, unless by this very `game` or with `replace`, and
    `TypeError` for a `game` that cannot be called.
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        raise ValueError(f"`name` is {name!r}, expected letters, digits and underscores, such as 'my_game'.")
    if not callable(game):
        raise TypeError(f"`game` is {game!r}, expected a class or function that makes a game: pass it uncalled.")
    if name in _GAMES and _GAMES[name] is not game and not replace:
        raise ValueError(f"`name` {name!r} is taken by {_GAMES[name]!r}: choose another, or pass `replace=True`.")
    _GAMES[name] = game


def make(name: str, **options: Any) -> Any:
    """Make a game by its name; `options` are those of its class, such as `rows` for Connect Four.

    The name may carry options itself, `make("connect_four(rows=5, columns=6)")`, so that one string names any game; the
    first lines of `envs/registry.py` list the kinds of names. Raises `ValueError` for a name, an option or a value the
    games do not have, for an option given twice, and for what cannot be imported or is no game.
    """
    name, written = _parse(name)
    if twice := sorted(written.keys() & options):
        raise ValueError(f"The options {twice} of game {name!r} are given in the name and beside it: give each once.")
    options = written | options
    maker = _find(name)
    if not callable(maker) or (not isinstance(maker, type) and not _lacks(maker)):
        maker = functools.partial(_given, maker)
    _check_options(name, maker, options)
    try:
        game = maker(**options)
    except TypeError as error:
        raise ValueError(f"The game {name!r} cannot be made with the options {options}: {error}.") from error
    if lacks := _lacks(game):
        raise ValueError(
            f"{name!r} makes {game!r}, which is no game, for it lacks {', '.join(lacks)}: see `envs.BoardGame` for "
            "what one has, and try yours with `envs.check_env`."
        )
    return game


def _find(name: str) -> Any:
    """Find what a name stands for: a game, or what makes it when called."""
    if name in _GAMES:
        return _GAMES[name]
    module, _, path = name.partition(":")
    if module == "pgx" and path:
        return _from_pgx(path)
    if re.fullmatch(r"\w+(\.\w+)*:\w+(\.\w+)*", name):
        return _import(name, module, path)
    near = difflib.get_close_matches(name, _GAMES, n=len(_GAMES), cutoff=0.0)
    raise ValueError(f"Unknown game {name!r}: known games are {', '.join(near)} (nearest first). {_HELP}")


def _from_pgx(name: str) -> Any:
    try:
        return from_pgx(name)
    except ImportError as error:
        raise ValueError(str(error)) from error


def _import(name: str, module: str, path: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        is_there = not (isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."))
        advice = (
            "the module is there, but not what it imports"
            if is_there
            else "run from the folder that holds it, or put that folder on PYTHONPATH"
        )
        raise ValueError(f"The game {name!r} cannot be imported ({error}): {advice}.") from error
    for part in path.split("."):
        if not hasattr(found, part):
            public = [other for other in vars(found) if not other.startswith("_")]
            near = difflib.get_close_matches(part, public, n=3, cutoff=0.5)
            offer = f"did you mean {' or '.join(near)}?" if near else "nothing there is called so."
            raise ValueError(f"The game {name!r} is not there: {module!r} has no {part!r}; {offer}")
        found = getattr(found, part)
    return found


def _given(game: Any) -> Any:
    """Return a game that is made already; it has no options."""
    return game


def _lacks(thing: Any) -> list[str]:
    """List what a thing lacks to be a game."""
    missing = [part for part in _NEEDED if not hasattr(thing, part)]
    return ["instances, being a class"] if not missing and isinstance(thing, type) else missing


def _check_options(name: str, maker: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        parameters = inspect.signature(maker).parameters.values()
    except ValueError:  # some classes of Python's own tell nothing of theirs
        return
    known = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters)
    for option in options:
        if option not in known and not open_ended:
            offer = f"its options are {', '.join(known)}" if known else "it has no options"
            raise ValueError(f"Unknown option {option!r} of game {name!r}: {offer}.")
    for one in parameters:
        if one.name in options:
            _check_type(one.name, options[one.name], one.default)
    needed = [one.name for one in parameters if one.name in known and one.default is one.empty]
    if missing := [option for option in needed if option not in options]:
        raise ValueError(f"The game {name!r} needs the options {', '.join(missing)}: write {name}({missing[0]}=...).")


def _check_type(option: str, value: Any, default: Any) -> None:
    """Demand an option of its default's type, so that no game need say that True is no size."""
    is_number = isinstance(default, float) and type(value) is int
    if isinstance(default, bool | int | float | str) and type(value) is not type(default) and not is_number:
        raise ValueError(f"`{option}` is {value!r}, expected {type(default).__name__}, as its default {default!r} is.")


def _parse(name: Any) -> tuple[str, dict[str, Any]]:
    """Split `name(option=value, ...)`; values are Python's literals."""
    match = re.fullmatch(r"\s*([\w.:-]+)\s*(?:\((.*)\))?\s*", str(name))
    if match is None:
        return str(name), {}
    source = f"_({match[2] or ''})"
    try:
        call = ast.parse(source, mode="eval").body
        options = {option.arg: option.value for option in call.keywords}  # type: ignore[attr-defined]
        if call.args or None in options:  # type: ignore[attr-defined]
            raise ValueError("an option has no name")
        if len(options) < len(call.keywords):  # type: ignore[attr-defined]
            raise ValueError("an option is given twice")
    except (AttributeError, MemoryError, RecursionError, SyntaxError, ValueError) as error:
        raise ValueError(
            f"The options in {name!r} cannot be read: write each once, as in 'connect_four(rows=5, columns=6)'."
        ) from error
    return match[1], {option: _value(source, option, value) for option, value in options.items()}


def _value(source: str, option: str, value: ast.expr) -> Any:
    """Evaluate a literal that `source` gives for an option."""
    try:
        return ast.literal_eval(value)
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError) as error:
        written = ast.get_source_segment(source, value) or ""
        if written.lower() in ("true", "false", "none"):
            advice = f"write {option}={written.capitalize()}"
        elif isinstance(value, ast.Name):
            advice = f"text stands in quotes, {option}={written!r}"
        else:
            advice = "write a number, True, False, None or text in quotes"
        raise ValueError(f"`{option}` is written as {written} in the name, which is no value: {advice}.") from error
