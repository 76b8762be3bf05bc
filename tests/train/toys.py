"""A game where a player moves twice in a row, and a search that does not search: cheap stand-ins."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from envs.base import BoardGame, State, opening, win_rewards
from train.search import Choice, Explorer


@dataclasses.dataclass(frozen=True)
class Pairs(BoardGame):
    """Movers are 0, 1, 1, 0, 0, 1, 1, ...; `board` counts the moves and who makes the last one wins.

    With `limit` the game is cut, undecided, after that many moves, if it has not ended by then.
    """

    length: int = 5
    limit: int = 100

    name: ClassVar[str] = "pairs"
    num_players: ClassVar[int] = 2
    num_actions: ClassVar[int] = 2
    observation_shape: ClassVar[tuple[int, ...]] = (1, 1, 2)

    def observe(self, state: State, /) -> jax.Array:
        return jnp.stack([state.board, state.to_play]).astype(jnp.float32).reshape(1, 1, 2)

    def _start(self, key: jax.Array | None) -> State:
        return opening(jnp.int32(0))

    def _legal(self, state: State) -> jax.Array:
        return jnp.ones(2, jnp.bool_)

    def _play(self, state: State, action: jax.Array, key: jax.Array | None) -> State:
        made = state.board + 1
        over = made == self.length
        return State(
            board=made,
            to_play=(made + 1) // 2 % 2,
            terminated=over,
            truncated=(made == self.limit) & ~over,
            rewards=jnp.where(over, win_rewards(state.to_play), 0),
        )


def random_explorer(env: BoardGame) -> Explorer:
    """Move at random; weights are uniform over the legal moves, the value is an eighth for each ply so far."""

    def choose(params: Any, key: jax.Array, state: Any, ply: jax.Array) -> Choice:
        del params
        mask = jax.vmap(env.legal_action_mask)(state)
        return Choice(
            action=jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)),
            action_weights=mask / mask.sum(axis=1, keepdims=True),
            value=ply / 8,
            policy_weight=1.0 - ply % 2,
        )

    return choose


def half_evaluator(num_actions: int) -> Any:
    """Value 0.5 for every mover, no opinion on moves."""

    def evaluate(params: Any, keys: jax.Array, state: Any) -> tuple[jax.Array, jax.Array]:
        del params, state
        count = keys.shape[0]
        return jnp.zeros((count, num_actions)), jnp.full(count, 0.5)

    return evaluate
