"""The contract of a game, checked by playing it: `check_env(my_game)` lists every breach in one error.

What is checked, in this order. The first two are about declarations and shapes, found by tracing
(`envs.check_by_tracing`; `check_types` does these alone); if they fail nothing is played, since everything after
(`envs.check_by_playing`) would fail with them.

1. `name`, `num_actions`, `num_players`, `observation_shape`; equal and hashable with equal options.
2. `init`, `step`, `observe`, `legal_action_mask` trace with the right shapes and dtypes, none of them weak,
   and `step` returns what it was given, so that loops and `jit` do not retrace; `action_layout` fits the board;
   `symmetries` trace too and keep shapes and dtypes.
3. Random games: they begin unfinished with rewards 0, keep a legal action until they end, end within
   `max_plies`, have no legal action after, give finite rewards that sum to 0 between two players.
4. An illegal action, one out of range included, ends the game as a loss for the mover and leaves the position as it
   was; actions of every integer type are the same.
5. A step after the end changes nothing and gives reward 0.
6. Called twice, under `jit`, or under `vmap`, each function gives the same.
7. `symmetries`, where a game has them: the first one is the identity, moves are permuted, and a game played
   through a symmetry is the same game seen through it (in games without chance, from starts that the
   symmetry keeps: other symmetries can be right without passing through the same start).
8. Games that tell their odds (those with `num_outcomes`, see `envs.chance`): `decide` and `happen` trace and give what
   `init` gives; `odds` are finite, not negative and sum to 1; after an end outcome 0 is certain and no outcome changes
   anything; a step is a decision and one of its possible outcomes.
"""

from typing import Any

import jax

from envs.check_by_playing import breaches_played
from envs.check_by_tracing import breaches_traced


class ContractError(AssertionError):
    """A game does not keep the contract; the message has one sentence a breach."""


def check_env(env: Any, *, num_games: int = 64, max_plies: int = 1000, key: jax.Array | None = None) -> None:
    """Play `num_games` random games of `env` and raise `ContractError` listing every breach found.

    `max_plies` bounds a game's length; `key` draws starts and moves, `jax.random.key(0)` if left out.
    """
    _raise(env, breaches(env, num_games=num_games, max_plies=max_plies, key=key))


def check_types(env: Any, *, key: jax.Array | None = None) -> None:
    """Raise `ContractError` for wrong declarations, shapes and dtypes: what tracing tells, without a game played."""
    _raise(env, breaches_traced(env, jax.random.key(0) if key is None else key))


def breaches(env: Any, *, num_games: int = 64, max_plies: int = 1000, key: jax.Array | None = None) -> list[str]:
    """List every breach of the contract, one sentence each; see `check_env`, which raises them."""
    if isinstance(env, type):
        raise TypeError(f"`env` is the class {env.__name__}, expected a game: call it to make one.")
    if num_games < 1 or max_plies < 1:
        raise ValueError(f"`num_games` is {num_games} and `max_plies` {max_plies}, expected 1 or more of each.")
    key = jax.random.key(0) if key is None else key
    return breaches_traced(env, key) or breaches_played(env, num_games, max_plies, key)


def _raise(env: Any, found: list[str]) -> None:
    if found:
        raise ContractError("\n".join([f"{type(env).__name__} breaks the contract of a game:", *found]))
