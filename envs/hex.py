"""Hex: the first player joins top and bottom, the second left and right; one of them always does.

Action r * size + c puts a stone on the cell in row r, counted from the top, and column c. Its neighbours are six:

    . A B          above (A), above to the right (B) and so on round: on paper every row
     F x C         is half a cell to the right of the one above it
      E D .

`board` is int8 [size * size], or int16 above 11 x 11: 0 for an empty cell, else the label of the stone's group,
positive for the player to move and negative for the other. The edges count as stones of their owners: a group's
label is 1 with the near edge (top, left) in it, else 2 with the far one (bottom, right), else 3 + its lowest cell.
So a stone wins when it joins a 1 or the near edge to a 2 or the far edge, no path is ever searched for, and
positions that are equal have equal boards, whatever the order of their moves.

With the swap rule one more number follows, as if the swap were a cell: 0 when it may be played, else not 0.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from envs import arguments, base, symmetry
from envs.moves import ActionLayout

_NEAR, _FAR, _INNER = 1, 2, 3

# What stands in the place of the swap when it may not be played: it fits int8, and is no label, for that is no cell.
_SWAP_GONE, _SWAP_TO_COME = 126, 127

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
        arguments.check_integer("size", self.size, 2, 19)
        arguments.check_flag("swap", self.swap)

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
    def action_layout(self) -> ActionLayout:
        """Cells row by row, then the swap where there is one."""
        return ActionLayout(on="cells", others=("swap",) * self.swap)

    @property
    def symmetries(self) -> tuple[symmetry.Symmetry, ...]:
        """The identity and the half turn.

        The mirror in the long diagonal is none: it exchanges the players' edges, and so leads to positions that
        the other player has begun, which no game reaches.
        """
        turned = functools.partial(_half_turn_policy, num_cells=self.num_cells)
        return (symmetry.IDENTITY, symmetry.Symmetry(observation=_half_turn, policy=turned))

    def observe(self, state: base.State, /) -> jax.Array:
        """See the board as the player to move: float32 [size, size, 3], own stones, the other's, who they are.

        The last plane is 0 if the first player is to move, who joins top and bottom, and 1 if the second. The board
        is not turned for them: cell (r, c) of the planes is always action r * size + c.
        """
        board = state.board[: self.num_cells].reshape(self.size, self.size)
        second = jnp.broadcast_to(state.to_play == 1, board.shape)
        return jnp.stack([board > 0, board < 0, second], axis=-1).astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(self._board(jnp.zeros(self.num_cells, self._dtype), _SWAP_TO_COME))

    def _board(self, stones: jax.Array, swap: jax.Array | int) -> jax.Array:
        # `stones` are the labels of the cells, `swap` is what follows them if the game has the rule.
        return jnp.append(stones, jnp.asarray(swap, stones.dtype)) if self.swap else stones

    def _legal(self, state: base.State) -> jax.Array:
        return state.board == 0

    def _play(self, state: base.State, action: jax.Array, key: jax.Array | None) -> base.State:
        if not self.swap:
            return self._moved(*self._place(state.board, action, state.to_play), state.to_play)
        stones, swap = state.board[:-1], state.board[-1]
        is_swap = action == self.num_cells
        placed, won = self._place(stones, jnp.where(is_swap, 0, action), state.to_play)
        mirrored = stones.reshape(self.size, self.size).T.reshape(-1)
        taken_over = jnp.where(mirrored != 0, self._alone[1], 0)
        stones = jnp.where(is_swap, taken_over, placed)
        board = self._board(stones, jnp.where(swap == _SWAP_TO_COME, 0, _SWAP_GONE))
        return self._moved(board, won & ~is_swap, state.to_play)

    def _place(self, board: jax.Array, cell: jax.Array, player: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Put a stone of `player`, whose labels are positive, on an empty cell; and tell whether it wins.
        alone = jnp.asarray(self._alone)[player, cell]
        # Two cells in a row on the ring touch, so own stones on both are of one group, and the other player's
        # labels are negative: the larger label is that group's, or if not positive there is no group.
        around = [board[neighbour] for neighbour in jnp.asarray(self._around)[cell]]
        pairs = [jnp.maximum(*around[i : i + 2]) for i in range(0, len(around), 2)]
        labels = [alone, *(jnp.where(label > 0, label, alone) for label in pairs)]
        won = _is_any(labels, _NEAR) & _is_any(labels, _FAR)
        # On a CPU the pass over the board would do all of the above again for every cell.
        *labels, label = jax.lax.optimization_barrier((*labels, functools.reduce(jnp.minimum, labels)))
        joined = [np.arange(self.num_cells, dtype=np.int32) == cell, *(board == other for other in labels)]
        return jnp.where(functools.reduce(jnp.logical_or, joined), label, board), won

    def _moved(self, board: jax.Array, won: jax.Array, mover: jax.Array) -> base.State:
        # The state after `mover`, whose labels are positive, has played.
        return base.State(
            board=-board,
            to_play=1 - mover,
            terminated=won,
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(mover), 0),
        )

    @functools.partial(jax.jit, static_argnums=0)
    def arrange(self, planes: np.ndarray, to_play: int) -> base.State:
        # Stones come in the order of their cells: any order gives the same labels.
        owners = jnp.select([planes[..., 0], planes[..., 1]], [to_play, 1 - to_play], -1).reshape(-1)
        mover = jnp.asarray(1 - to_play, jnp.int32)

        def place(cell: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            stones, won = carry
            owner = owners[cell]
            sign = jnp.where(owner == mover, 1, -1).astype(stones.dtype)
            placed, wins = self._place(sign * stones, cell, owner)
            return jnp.where(owner >= 0, sign * placed, stones), won | (wins & (owner == mover))

        start = jnp.zeros(self.num_cells, self._dtype), jnp.zeros((), jnp.bool_)
        stones, won = jax.lax.fori_loop(0, self.num_cells, place, start)
        # Stones put on the far edge after a win do not know that the edges are one group by now.
        stones = jnp.where(won & (stones == _FAR), _NEAR, stones)
        plies = (owners >= 0).sum(dtype=jnp.int32)
        may_swap = (plies == 1) & (to_play == 1)
        swap = jnp.where(may_swap, 0, jnp.where(plies == 0, -_SWAP_TO_COME, _SWAP_GONE))
        return self._moved(self._board(stones, swap), won, mover)

    @property
    def _dtype(self) -> Any:
        return jnp.int8 if self.num_cells + _INNER <= 128 else jnp.int16

    @functools.cached_property
    def _alone(self) -> np.ndarray:
        """The label of a single stone of either player on each cell: [2, size * size]."""
        cells = np.arange(self.num_cells)
        lines = np.stack(divmod(cells, self.size))
        labels = np.select([lines == 0, lines == self.size - 1], [_NEAR, _FAR], cells + _INNER)
        return labels.astype(self._dtype)

    @functools.cached_property
    def _around(self) -> np.ndarray:
        """The six cells round each cell: [size * size, 6] int32. Off the board the cell itself stands in, yet empty."""
        cells = np.arange(self.num_cells)
        rows, columns = (x[:, None] + np.array(step) for x, step in zip(divmod(cells, self.size), zip(*_RING)))
        inside = (rows >= 0) & (rows < self.size) & (columns >= 0) & (columns < self.size)
        return np.where(inside, rows * self.size + columns, cells[:, None]).astype(np.int32)


def _is_any(labels: list[jax.Array], label: int) -> jax.Array:
    return functools.reduce(jnp.logical_or, [other == label for other in labels])


def _half_turn(observation: Any) -> Any:
    return observation[..., ::-1, ::-1, :]


def _half_turn_policy(policy: Any, *, num_cells: int) -> Any:
    # The swap, where there is one, stays the last.
    xp = np if isinstance(policy, np.ndarray) else jnp
    return xp.concatenate([policy[..., :num_cells][..., ::-1], policy[..., num_cells:]], axis=-1)
