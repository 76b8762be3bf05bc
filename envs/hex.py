"""Hex: the first player joins top and bottom, the second left and right; one of them always does.

Action r * size + c puts a stone on the cell in row r, counted from the top, and column c. Its neighbours are six:

    . A B          above (A), above to the right (B) and so on round: on paper every row
     F x C         is half a cell to the right of the one above it
      E D .

`board` is int8 [size * size] (int16 above 11 x 11): 0 for an empty cell, else the label of the stone's group,
positive for the player to move and negative for the other. A group's label is 1 if it touches its owner's near
edge (top, left), else 2 if it touches the far one (bottom, right), else 3 + its lowest cell. So a stone wins when
it touches both a 1 or the near edge and a 2 or the far edge, no path is ever searched for, and positions that are
equal have equal boards, whatever the order of their moves.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import base

_NEAR, _FAR, _INNER = 1, 2, 3

# Once round the cell, (row, column): each touches the next one.
_RING = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))


@dataclasses.dataclass(frozen=True)
class Hex(base.BoardGame):
    """Join your two edges on `size` x `size` cells; no draws.

    With `swap` the second player may answer the first move with action size * size and take it over: the stone
    becomes theirs, mirrored in the long diagonal, so that it lies to their edges as it did to the first player's.
    """

    size: int = 11
    swap: bool = False

    name: ClassVar[str] = "hex"
    num_players: ClassVar[int] = 2
    slanted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or not 2 <= self.size <= 19:
            raise ValueError(f"`size` is {self.size!r}, expected an integer from 2 to 19.")
        if not isinstance(self.swap, bool):
            raise ValueError(f"`swap` is {self.swap!r}, expected True or False.")

    @property
    def num_cells(self) -> int:
        return self.size**2

    @property
    def num_actions(self) -> int:
        return self.num_cells + self.swap

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.size, self.size, 3)

    @property
    def symmetries(self) -> tuple[base.Symmetry, ...]:
        """The identity and the half turn.

        The mirror in the long diagonal is none: it exchanges the players' edges, and so leads to positions that
        the other player has begun, which no game reaches.
        """
        turned = functools.partial(_half_turn_policy, num_cells=self.num_cells)
        return (base.IDENTITY, base.Symmetry(observation=_half_turn, policy=turned))

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [size, size, 3], own stones, the other's, who they are.

        The last plane is 0 if the first player is to move, who joins top and bottom, and 1 if the second. The board
        is not turned for them: cell (r, c) of the planes is always action r * size + c.
        """
        board = state.board.reshape(self.size, self.size)
        second = jnp.broadcast_to(state.to_play == 1, board.shape)
        return jnp.stack([board > 0, board < 0, second], axis=-1).astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(jnp.zeros(self.num_cells, self._dtype))

    def _legal(self, state: base.State) -> jax.Array:
        empty = state.board == 0
        return jnp.append(empty, self._may_swap(state)) if self.swap else empty

    def _allows(self, state: base.State, action: jax.Array) -> jax.Array:
        if not self.swap:
            return state.board[action] == 0
        is_swap = action == self.num_cells
        return jnp.where(is_swap, self._may_swap(state), state.board[jnp.where(is_swap, 0, action)] == 0)

    def _may_swap(self, state: base.State) -> jax.Array:
        # Only on the second ply does the second player face a single stone.
        return (state.to_play == 1) & ((state.board != 0).sum(dtype=jnp.int32) == 1)

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        board, cell = state.board, action
        if self.swap:
            is_swap = action == self.num_cells
            stone = jnp.where(board != 0, np.arange(self.num_cells, dtype=np.int32), 0).sum(dtype=jnp.int32)
            cell = jnp.where(is_swap, stone % self.size * self.size + stone // self.size, action)
            board = jnp.where(is_swap, 0, board)
        board, won = self._place(board, cell, state.to_play)
        return self._moved(board, won, state.to_play)

    def _place(self, board: jax.Array, cell: jax.Array, player: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Put a stone of `player`, whose labels are positive, on an empty cell; and tell whether it wins.
        line = jnp.where(player == 0, cell // self.size, cell % self.size)
        near, far = line == 0, line == self.size - 1
        own = jnp.where(near, _NEAR, jnp.where(far, _FAR, cell + _INNER)).astype(board.dtype)
        # Two cells in a row on the ring touch, so that own stones on both are of one group; labels of the other
        # player's are negative: the larger of the two is that group's label, or not positive for no group.
        around = [board[cell_around] for cell_around in jnp.asarray(self._around)[cell]]
        groups = [jnp.maximum(*around[i : i + 2]) for i in range(0, len(around), 2)]
        near |= functools.reduce(jnp.logical_or, [group == _NEAR for group in groups])
        far |= functools.reduce(jnp.logical_or, [group == _FAR for group in groups])
        groups = [jnp.where(group > 0, group, own) for group in groups]
        label = functools.reduce(jnp.minimum, groups, own)
        joined = functools.reduce(jnp.logical_or, [board == group for group in groups])
        joined |= np.arange(self.num_cells, dtype=np.int32) == cell
        return jnp.where(joined, label, board), near & far

    def _moved(self, board: jax.Array, won: jax.Array, mover: jax.Array) -> base.State:
        # The state after `mover`, whose labels are positive, has played.
        return base.State(
            board=-board,
            to_play=1 - mover,
            terminated=won,
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(mover), 0),
        )

    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        owner = np.select([planes[..., 0], planes[..., 1]], [to_play, 1 - to_play], -1)
        return self._arranged(owner.reshape(-1), jnp.int32(to_play))

    @functools.partial(jax.jit, static_argnums=0)
    def _arranged(self, owner: jax.Array, to_play: jax.Array) -> base.State:
        # `owner` is the player whose stone lies on each cell, -1 for none. Labels do not depend on the order.
        def place(cell: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            board, won = carry
            is_other = owner[cell] != to_play
            side = jnp.where(is_other, board, -board)
            after, wins = self._place(side, cell, owner[cell])
            after = jnp.where(is_other, after, -after)
            taken = owner[cell] >= 0
            return jnp.where(taken, after, board), won | (taken & is_other & wins)

        start = jnp.zeros(self.num_cells, self._dtype), jnp.zeros((), jnp.bool_)
        board, won = jax.lax.fori_loop(0, self.num_cells, place, start)
        return self._moved(board, won, 1 - to_play)

    @property
    def _dtype(self) -> Any:
        return jnp.int8 if self.num_cells + _INNER <= 128 else jnp.int16

    @functools.cached_property
    def _around(self) -> np.ndarray:
        """The six cells round each cell: [size * size, 6] int32. Off the board the cell itself stands in, yet empty."""
        cells = np.arange(self.num_cells)
        rows, columns = (x[:, None] + np.array(step) for x, step in zip(divmod(cells, self.size), zip(*_RING)))
        inside = (rows >= 0) & (rows < self.size) & (columns >= 0) & (columns < self.size)
        return np.where(inside, rows * self.size + columns, cells[:, None]).astype(np.int32)


def _half_turn(observation: Any) -> Any:
    return observation[..., ::-1, ::-1, :]


def _half_turn_policy(policy: Any, *, num_cells: int) -> Any:
    # The swap, where there is one, stays the last.
    xp = np if isinstance(policy, np.ndarray) else jnp
    return xp.concatenate([policy[..., :num_cells][..., ::-1], policy[..., num_cells:]], axis=-1)
