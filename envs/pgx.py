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
from typing import Any

import jax
import jax.numpy as jnp

from envs import arguments, base

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
    pgx = import_pgx()
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


def import_pgx() -> Any:
    """Import pgx, the one place that does."""
    try:
        import pgx
    except ImportError as error:
        raise ImportError(f"pgx cannot be imported ({error}): install it with `pip install pgx`.") from error
    return pgx


@functools.cache
def _make(name: str) -> Any:
    known = import_pgx().available_envs()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=len(known), cutoff=0.0)
        raise ValueError(f"Unknown game {name!r} of pgx: its games are {', '.join(near)} (nearest first).")
    return import_pgx().make(name)


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
        state = self.env.init(arguments.need_key(self, "init", key))
        return self._ours(state, state.current_player)

    def _legal(self, state: Any) -> jax.Array:
        return jnp.unpackbits(state.legal, count=self.num_actions).astype(jnp.bool_)

    def _play(self, state: Any, action: jax.Array, key: jax.Array | None) -> Any:
        try:
            after = self.env.step(self._theirs(state), action, key)
        except AssertionError:
            arguments.need_key(self, "step", key)  # what pgx demands of games of chance
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
    from envs.ours_as_pgx import EnvOfOurs  # it needs pgx

    return EnvOfOurs(game)
