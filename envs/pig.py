"""Pig, the dice race: roll as often as you dare, and hold before the 1 comes.

The player to move rolls a die: a 1 loses all of the turn and the move, any other number joins the turn's total.
Action 0 rolls again, action 1 holds: the total is added to the score and the other moves. Who holds with `target` or
more wins. As in OpenSpiel one may hold with nothing, and must hold where that wins. (Scarne 1945; solved by Neller and
Presser, "Optimal Play of the Dice Game Pig", 2004: the first player wins 53.06 % of games to 100.)

`board` is int32 [4]: the scores of player 0 and player 1, the turn's total, and 1 while the die is in the air.
Outcome f is the face f + 1; after a hold nothing is left to chance.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from envs import arguments, base
from envs.chance import ChanceGame
from envs.moves import ActionLayout

_ROLL, _HOLD = range(2)


@dataclasses.dataclass(frozen=True)
class Pig(ChanceGame):
    """Pig to `target` points with a die of `faces` faces, for two."""

    target: int = 100
    faces: int = 6

    name: ClassVar[str] = "pig"
    num_players: ClassVar[int] = 2
    has_stones: ClassVar[bool] = False
    num_actions: ClassVar[int] = 2
    observation_shape: ClassVar[tuple[int, ...]] = (3,)
    action_layout: ClassVar[ActionLayout] = ActionLayout(others=("roll", "hold"))

    def __post_init__(self) -> None:
        for option, least in (("target", 1), ("faces", 2)):
            arguments.check_integer(option, getattr(self, option), least, 10_000)

    @property
    def num_outcomes(self) -> int:
        return self.faces

    def observe(self, state: base.State, /) -> jax.Array:
        """See own score, the other's and the turn's total as shares of the target: float32 [3]."""
        mine, theirs = _scores(state)
        return jnp.stack([mine, theirs, state.board[2]]).astype(jnp.float32) / self.target

    def caption(self, state: Any) -> str:
        """Say the score in one line."""
        first, second, total = state.board[:3].tolist()
        return f"X {first}, O {second}, turn {total}"

    def _start(self, key: jax.Array | None) -> base.State:
        return base.opening(jnp.zeros(4, jnp.int32))

    def _legal(self, state: base.State) -> jax.Array:
        wins = _scores(state)[0] + state.board[2] >= self.target
        return jnp.stack([~wins, jnp.ones((), jnp.bool_)])

    def _decide(self, state: base.State, action: jax.Array) -> base.State:
        rolls = action == _ROLL
        mine, theirs = _scores(state)
        held = mine + state.board[2]
        won = ~rolls & (held >= self.target)
        mine, total = jnp.where(rolls, mine, held), jnp.where(rolls, state.board[2], 0)
        return base.State(
            board=_board(state.to_play, mine, theirs, total, rolls),
            to_play=jnp.where(rolls, state.to_play, 1 - state.to_play),
            terminated=won,
            truncated=jnp.zeros((), jnp.bool_),
            rewards=jnp.where(won, base.win_rewards(state.to_play), 0),
        )

    def _odds(self, afterstate: base.State) -> jax.Array:
        return jnp.where(afterstate.board[3] == 1, jnp.float32(1 / self.faces), self._certain)

    def _happen(self, afterstate: base.State, outcome: jax.Array) -> base.State:
        rolled = afterstate.board[3] == 1
        lost = rolled & (outcome == 0)
        total = jnp.where(lost, 0, afterstate.board[2] + jnp.where(rolled, outcome + 1, 0))
        mover = afterstate.to_play
        mine, theirs = _scores(afterstate)
        return dataclasses.replace(
            afterstate,
            board=_board(mover, mine, theirs, total, jnp.zeros((), jnp.bool_)),
            to_play=jnp.where(lost, 1 - mover, mover),
        )


def _scores(state: base.State) -> tuple[jax.Array, jax.Array]:
    """Give the score of the player to move and the other's."""
    first, second = state.board[0], state.board[1]
    return jnp.where(state.to_play == 0, first, second), jnp.where(state.to_play == 0, second, first)


def _board(mover: jax.Array, mine: jax.Array, theirs: jax.Array, total: jax.Array, rolling: jax.Array) -> jax.Array:
    first, second = jnp.where(mover == 0, mine, theirs), jnp.where(mover == 0, theirs, mine)
    return jnp.stack([first, second, total, rolling.astype(jnp.int32)])
