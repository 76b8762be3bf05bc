"""Games of pgx as games of ours, and ours as pgx's: `from_pgx("chess")`, `to_pgx(envs.make("hex"))`.

pgx draws by lot which of its player ids begins, so the two sides number players differently: our player 0 is the one
who moves first. A state of ours keeps only what cannot be had otherwise: pgx's observation is asked for again when it
is wanted, and the legal actions take one bit each. What a step means is that of our games (`envs.base`): an illegal
action loses by 1 whatever pgx's own penalty is, a finished game is frozen and has no legal action.

pgx is needed by those who call these functions alone; it is imported when they do.
"""

import dataclasses
import difflib
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from envs import base, picture

# Their observations begin with the stones of the player to move and the other's, as ours do.
_WITH_STONES = ("connect_four", "go_9x9", "go_19x19", "hex", "othello", "tic_tac_toe")
# Of pgx's state, what ours has of its own or can do without.
_OURS = ("current_player", "observation", "rewards", "terminated", "truncated", "legal_action_mask")


def from_pgx(env: Any) -> "PgxGame":
    """Make a game of pgx one of ours: `env` is an id, such as "chess", or an environment, `pgx.hex.Hex(size=5)`.

    Equal ids give equal games; an environment of your own is equal to itself, so make it once. `init` needs a key
    always, `step` in games of chance (backgammon, 2048, MinAtar). Raises `ValueError` for an id that pgx does not
    have, `TypeError` for what is no environment of pgx, `ImportError` if pgx is not installed.
    """
    pgx = _pgx()
    if isinstance(env, str):
        return PgxGame(_make(env))
    if not isinstance(env, pgx.Env):
        raise TypeError(f"`env` is {env!r}, expected the id of a game of pgx or a `pgx.Env`.")
    return PgxGame(env)


def to_pgx(game: Any) -> Any:
    """Make a game of ours an environment of pgx, a `pgx.Env`, for programs that are written for those.

    As pgx does, it draws by lot which player id begins, ends the game for an illegal action and allows every action in
    a finished game. `state._x` is our state, whose pictures `state.to_svg()` draws. It sees a state as the player to
    move does, whoever asks. Equal games give one environment. Raises `TypeError` for what is no game, `ImportError` if
    pgx is not installed.
    """
    if isinstance(game, type) or not hasattr(game, "legal_action_mask"):
        raise TypeError(f"`game` is {game!r}, expected a game of ours: `envs.make` makes one.")
    return _adapted(game)


def _pgx() -> Any:
    """Import pgx, the one place that does."""
    try:
        import pgx
    except ImportError as error:
        raise ImportError(f"pgx cannot be imported ({error}): install it with `pip install pgx`.") from error
    return pgx


@functools.cache
def _make(name: str) -> Any:
    known = _pgx().available_envs()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=len(known), cutoff=0.0)
        raise ValueError(f"Unknown game {name!r} of pgx: its games are {', '.join(near)} (nearest first).")
    return _pgx().make(name)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PgxState:
    """The state of a game of pgx in our terms."""

    inner: Any  # pgx's state without the fields that `_OURS` lists, which are None
    first: jax.Array  # [] int32: the id that pgx gave our player 0
    legal: jax.Array  # [(A + 7) // 8] uint8: one bit for each action, whether finished or not
    to_play: jax.Array  # [] int32
    terminated: jax.Array  # [] bool
    truncated: jax.Array  # [] bool
    rewards: jax.Array  # [P] float32


@dataclasses.dataclass(frozen=True)
class PgxGame(base.BoardGame):
    """A game of pgx; `from_pgx` makes it."""

    env: Any  # a `pgx.Env`

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"pgx:{self.env.id}"

    @property
    def num_players(self) -> int:
        return int(self.env.num_players)

    @property
    def num_actions(self) -> int:
        return int(_shapes(self.env).legal_action_mask.shape[0])

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return tuple(_shapes(self.env).observation.shape)

    @property
    def has_stones(self) -> bool:  # type: ignore[override]
        return self.env.id in _WITH_STONES

    def __repr__(self) -> str:
        return f"from_pgx({self.env.id!r})"

    def observe(self, state: Any, /) -> jax.Array:
        """See the state as pgx shows it to the player to move, as float32."""
        return self.env.observe(self._theirs(state)).astype(jnp.float32)

    def _start(self, key: jax.Array | None) -> Any:
        state = self.env.init(base.need_key(self, "init", key))
        return self._ours(state, state.current_player)

    def _legal(self, state: Any) -> jax.Array:
        return jnp.unpackbits(state.legal, count=self.num_actions).astype(jnp.bool_)

    def _play(self, state: Any, action: jax.Array, key: jax.Array | None) -> Any:
        try:
            after = self.env.step(self._theirs(state), action, key)
        except AssertionError:
            base.need_key(self, "step", key)  # what pgx demands of games of chance
            raise
        return self._ours(after, state.first)

    def _ours(self, state: Any, first: jax.Array) -> PgxState:
        ours = PgxState(
            inner=state.replace(**dict.fromkeys(_OURS)),
            first=first,
            legal=jnp.packbits(state.legal_action_mask),
            to_play=(state.current_player - first) % self.num_players,
            terminated=state.terminated,
            truncated=state.truncated,
            rewards=jnp.roll(state.rewards, -first),
        )
        return base.strongly_typed(ours)

    def _theirs(self, state: PgxState) -> Any:
        seen = _shapes(self.env).observation
        return state.inner.replace(
            current_player=(state.to_play + state.first) % self.num_players,
            observation=jnp.zeros(seen.shape, seen.dtype),  # nobody reads it, but it must be there to be replaced
            rewards=jnp.roll(state.rewards, state.first),
            terminated=state.terminated,
            truncated=state.truncated,
            legal_action_mask=self._legal(state),
        )


@functools.cache
def _shapes(env: Any) -> Any:
    return jax.eval_shape(env.init, jax.random.key(0))


@functools.cache
def _adapted(game: Any) -> Any:
    return _classes()(game)


@functools.cache
def _classes() -> Any:
    """Define the environment, and its state, that `to_pgx` makes; they derive from pgx's."""
    state_of_pgx: Any = _pgx().State
    env_of_pgx: Any = _pgx().Env

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class PgxStateOfOurs(state_of_pgx):
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

    class PgxEnvOfOurs(env_of_pgx):
        version: ClassVar[str] = "v0"

        def __init__(self, game: Any):
            super().__init__()
            self.game = game

        id = property(lambda self: self.game.name)
        num_players = property(lambda self: self.game.num_players)
        num_actions = property(lambda self: self.game.num_actions)
        observation_shape = property(lambda self: self.game.observation_shape)

        def _init(self, key: jax.Array) -> PgxStateOfOurs:
            lot_key, start_key = jax.random.split(key)
            first = jax.random.randint(lot_key, (), 0, self.num_players, jnp.int32)
            return self._state(self.game.init(start_key), first, jnp.zeros((), jnp.int32))

        def _step(self, state: Any, action: jax.Array, key: jax.Array | None) -> PgxStateOfOurs:
            return self._state(self.game.step(state._x, action, key), state._first, state._step_count)

        def _observe(self, state: Any, player_id: jax.Array) -> jax.Array:
            del player_id
            return self.game.observe(state._x)

        def _state(self, ours: Any, first: jax.Array, count: jax.Array) -> PgxStateOfOurs:
            return PgxStateOfOurs(
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

    return PgxEnvOfOurs


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
