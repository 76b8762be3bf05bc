"""Symmetries of boards: what one does to stones, another map does to moves."""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np


class Symmetry(NamedTuple):
    """A symmetry of the board: two maps, one doing to stones what the other does to moves.

    Both act on the last axes and leave any leading ones alone; they take NumPy or JAX arrays.
    """

    observation: Callable[[Any], Any]  # [..., *observation_shape] -> the same
    policy: Callable[[Any], Any]  # [..., A] -> the same; also for masks and one-hot moves


def _unchanged(array: Any) -> Any:
    return array


IDENTITY = Symmetry(observation=_unchanged, policy=_unchanged)


def symmetries_of(env: Any) -> tuple[Symmetry, ...]:
    """Give the symmetries that a game declares, else the identity alone."""
    return getattr(env, "symmetries", (IDENTITY,))


def square_symmetries(size: int, extra: int = 0) -> tuple[Symmetry, ...]:
    """Make the eight turns and flips of a square board; see `board_symmetries`."""
    return board_symmetries(size, size, extra)


def board_symmetries(rows: int, columns: int, extra: int = 0) -> tuple[Symmetry, ...]:
    """Make the turns and flips of a board whose actions are its cells, row by row: eight if it is square, else four.

    Observations are [..., rows, columns, planes]; policies [..., rows * columns + extra]: actions that are not on
    the board follow the cells, and stay.
    """
    return tuple(
        Symmetry(
            observation=functools.partial(turn, flips=flips),
            policy=functools.partial(_turn_policy, rows=rows, columns=columns, extra=extra, flips=flips),
        )
        for flips in itertools.product((False, True)[: 1 + (rows == columns)], (False, True), (False, True))
    )


def turn(board: Any, *, flips: tuple[bool, bool, bool]) -> Any:
    """Swap rows and columns of [..., R, C, planes] or not, then reverse either: the eight elements of the group."""
    swap, rows, columns = flips
    board = board.swapaxes(-3, -2) if swap else board
    return board[..., :: -1 if rows else 1, :: -1 if columns else 1, :]


def _turn_policy(policy: Any, *, rows: int, columns: int, extra: int, flips: tuple[bool, bool, bool]) -> Any:
    cells = policy[..., : policy.shape[-1] - extra]
    board = cells.reshape(*cells.shape[:-1], rows, columns, 1)
    turned = turn(board, flips=flips).reshape(cells.shape)
    if not extra:
        return turned
    xp = np if isinstance(policy, np.ndarray) else jnp
    return xp.concatenate([turned, policy[..., -extra:]], axis=-1)
