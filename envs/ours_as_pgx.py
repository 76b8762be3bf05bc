"""Games of ours as pgx's: the environments that `envs.to_pgx` makes, and their states.

The classes derive from pgx's, so importing this needs pgx: `to_pgx` does it when it is called, and so does `pickle`
when it reads one of them.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from envs import base, picture
from envs.pgx import import_pgx, to_pgx

pgx: Any = import_pgx()


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StateOfOurs(pgx.State):
    """The state of a game of ours in pgx's terms."""

    _x: Any  # our state
    _first: jax.Array  # [] int32: the id of our player 0
    _game: Any = dataclasses.field(metadata={"static": True})

    @property
    def env_id(self) -> str:
        return self._game.name

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        del color_theme, scale
        return _draw(self._game, self._x)

    def save_svg(self, filename: Any, *, color_theme: str | None = None, scale: float | None = None) -> None:
        del color_theme, scale
        with open(filename, "w", encoding="utf-8") as file:
            file.write(self.to_svg())


class EnvOfOurs(pgx.Env):
    """A game of ours; `envs.to_pgx` makes it."""

    version: ClassVar[str] = "v0"

    def __init__(self, game: Any):
        super().__init__()
        self.game = game

    def __reduce__(self) -> Any:
        return to_pgx, (self.game,)  # a copy is the same environment, as equal games give one

    id = property(lambda self: self.game.name)
    num_players = property(lambda self: self.game.num_players)
    num_actions = property(lambda self: self.game.num_actions)
    observation_shape = property(lambda self: self.game.observation_shape)

    def _init(self, key: jax.Array) -> StateOfOurs:
        lot_key, start_key = jax.random.split(key)
        first = jax.random.randint(lot_key, (), 0, self.num_players, jnp.int32)
        return self._state(self.game.init(start_key), first, jnp.zeros((), jnp.int32))

    def _step(self, state: Any, action: jax.Array, key: jax.Array | None) -> StateOfOurs:
        return self._state(self.game.step(state._x, action, key), state._first, state._step_count)

    def _observe(self, state: Any, player_id: jax.Array) -> jax.Array:
        del player_id
        return self.game.observe(state._x)

    def _state(self, ours: Any, first: jax.Array, count: jax.Array) -> StateOfOurs:
        return StateOfOurs(
            current_player=(ours.to_play + first) % self.num_players,
            observation=self.game.observe(ours),
            rewards=jnp.roll(ours.rewards, first),
            terminated=ours.terminated,
            truncated=ours.truncated,
            legal_action_mask=self.game.legal_action_mask(ours) | base.is_finished(ours),
            _step_count=count,
            _x=ours,
            _first=first,
            _game=self.game,
        )


def _draw(game: Any, states: Any) -> str:
    """Draw a state, or those of a batch below each other, as `<svg>`; of a game without a board, say how it stands."""
    if jnp.ndim(states.to_play):
        rows = [_draw(game, jax.tree.map(lambda x: x[row], states)) for row in range(len(states.to_play))]  # noqa: B023
        placed = [row.replace("<svg ", f'<svg y="{100 * i}" height="100" ', 1) for i, row in enumerate(rows)]
        shape = f'viewBox="0 0 100 {100 * len(rows)}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{"".join(placed)}</svg>'
    try:
        return picture.to_svg(game, states)
    except ValueError:
        told = "over" if base.is_finished(states) else f"player {states.to_play} to play"
        text = f'<text x="4" y="16" font-size="8">{told}</text>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 30">{text}</svg>'
