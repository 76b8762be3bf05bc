"""Small worlds given as tables over numbered states: one world, three readers.

The oracle reads a `World` as a Python object; the library reads a stack of worlds as `params` of `MODEL`, where
the state of a row holds (world, node), so that every row has its own world and all stacks of one shape share
one compilation; mctx reads the same stack through `recurrent_fn`.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

import jaxmcts

Tables = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """State 0 is the root. `discount` is signed; an edge is legal where the mask of its state says so."""

    next_state: np.ndarray  # [S, A] int
    reward: np.ndarray  # [S, A] view of the player who moves
    discount: np.ndarray  # [S, A]
    prior_logits: np.ndarray  # [S, A]
    value: np.ndarray  # [S]
    legal_action_mask: np.ndarray  # [S, A] bool; all False = finished

    root: int = field(default=0, init=False)

    @property
    def num_actions(self) -> int:
        return self.next_state.shape[1]

    @functools.cached_property
    def _lists(self) -> Tables:
        return {name: table.tolist() for name, table in tables(self).items()}

    def step(self, state: int, action: int) -> tuple[float, float, int]:
        t = self._lists
        return t["reward"][state][action], t["discount"][state][action], t["next_state"][state][action]

    def evaluate(self, state: int) -> tuple[list[float], float, list[bool]]:
        t = self._lists
        return t["prior_logits"][state], t["value"][state], t["legal_action_mask"][state]


TABLES = ("next_state", "reward", "discount", "prior_logits", "value", "legal_action_mask")


def tables(world: World) -> Tables:
    return {name: getattr(world, name) for name in TABLES}


def stack(worlds: Sequence[World], dtype: Any = np.float32) -> Tables:
    """Stack worlds of one shape into `params`: tables `[W, S, ...]`."""

    def stacked(name: str) -> np.ndarray:
        table = np.stack([getattr(world, name) for world in worlds])
        return table.astype(dtype) if table.dtype.kind == "f" else table

    return {name: stacked(name) for name in TABLES}


def roots(num_worlds: int) -> jax.Array:
    """The state of every world's root: (world, node), `[W, 2]`."""
    world = np.arange(num_worlds, dtype=np.int32)
    return jnp.asarray(np.stack([world, np.zeros_like(world)], axis=1))


# The library's reader.


def look_up(params: Tables, name: str, state: jax.Array) -> jax.Array:
    return params[name][state[:, 0], state[:, 1]]


def _step(params: Tables, keys: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jaxmcts.Transition, jax.Array]:
    del keys
    row = jnp.arange(action.shape[0])
    after = look_up(params, "next_state", state)[row, action]
    transition = jaxmcts.Transition(
        reward=look_up(params, "reward", state)[row, action],
        discount=look_up(params, "discount", state)[row, action],
    )
    return transition, jnp.stack([state[:, 0], after.astype(state.dtype)], axis=1)


def _evaluate(params: Tables, keys: jax.Array, state: jax.Array) -> tuple[jaxmcts.Evaluation, jax.Array]:
    del keys
    return evaluation(params, state), state


def evaluation(params: Tables, state: jax.Array) -> jaxmcts.Evaluation:
    return jaxmcts.Evaluation(
        prior_logits=look_up(params, "prior_logits", state),
        value=look_up(params, "value", state),
        legal_action_mask=look_up(params, "legal_action_mask", state),
    )


MODEL = jaxmcts.Model(step=_step, evaluate=_evaluate)


# mctx's reader. mctx knows no mask below the root: an illegal action has the lowest logit. It knows no finished
# state either and walks on below one, which changes nothing at the root as long as the discount into it is 0.


def mctx_root(params: Tables, state: jax.Array) -> mctx.RootFnOutput:
    return mctx.RootFnOutput(
        prior_logits=look_up(params, "prior_logits", state),
        value=look_up(params, "value", state),
        embedding=state,
    )


def recurrent_fn(
    params: Tables, key: jax.Array, action: jax.Array, state: jax.Array
) -> tuple[mctx.RecurrentFnOutput, jax.Array]:
    del key
    transition, after = _step(params, jnp.zeros(()), state, action)
    legal = look_up(params, "legal_action_mask", after)
    logits = look_up(params, "prior_logits", after)
    output = mctx.RecurrentFnOutput(
        reward=transition.reward,
        discount=transition.discount,
        prior_logits=jnp.where(legal, logits, jnp.finfo(logits.dtype).min),
        value=look_up(params, "value", after),
    )
    return output, after


# Random worlds.


# Options of `random_world` for worlds with everything that can happen in one.
EVERYTHING: dict[str, Any] = {
    "illegal": 0.3,
    "terminated": 0.15,
    "truncated": 0.1,
    "same_mover": 0.3,
    "rewards": 0.5,
    "gamma": 0.9,
}


def random_world(
    rng: np.random.Generator,
    *,
    num_states: int = 40,
    num_actions: int = 5,
    illegal: float = 0.0,
    terminated: float = 0.0,
    truncated: float = 0.0,
    same_mover: float = 0.0,
    rewards: float = 0.0,
    gamma: float = 1.0,
    levels: Sequence[float] | None = None,
    logit_scale: float = 1.0,
) -> World:
    """Draw a world on a random graph (cycles too). The numbers are shares of what they name.

    `illegal` of the edges; `terminated` and `truncated` of the states but the root: no edge is legal there,
    and the discount into a terminated one is 0. `same_mover` of the edges keep the turn; `rewards` is the
    largest size of a reward. With `levels`, values, rewards and logits come from those few numbers (ties);
    without, they are random reals.
    """
    shape = (num_states, num_actions)

    def draw(size: Any, scale: float) -> np.ndarray:
        return scale * (rng.uniform(-1, 1, size) if levels is None else rng.choice(levels, size))

    fate = rng.uniform(size=num_states)
    over = (fate < terminated) & (np.arange(num_states) > 0)
    cut = (fate >= terminated) & (fate < terminated + truncated) & (np.arange(num_states) > 0)
    legal = rng.uniform(size=shape) >= illegal
    legal[np.arange(num_states), rng.integers(num_actions, size=num_states)] = True
    next_state = rng.integers(num_states, size=shape)
    sign = np.where(rng.uniform(size=shape) < same_mover, 1.0, -1.0)
    return World(
        next_state=next_state,
        reward=draw(shape, rewards),
        discount=np.where(over[next_state], 0.0, gamma * sign),
        prior_logits=draw(shape, logit_scale) if levels is not None else logit_scale * rng.normal(size=shape),
        value=np.where(over, 0.0, draw(num_states, 1.0)),
        legal_action_mask=legal & ~(over | cut)[:, None],
    )


def random_tree(rng: np.random.Generator, *, depth: int, branching: int, noise: float = 0.3) -> World:
    """Draw a full game tree: movers alternate, the last move ends the game with a reward of -1, 0 or 1.

    Raw values are random of size `noise`, priors random too: a misleading evaluator that enough search must overrule.
    """
    inner = sum(branching**d for d in range(depth))
    num_states = inner + branching**depth
    first_child = 1 + branching * np.arange(num_states)
    is_inner = np.arange(num_states) < inner
    next_state = np.where(is_inner[:, None], first_child[:, None] + np.arange(branching), 0)
    last = next_state >= inner
    return World(
        next_state=next_state,
        reward=np.where(last, rng.integers(-1, 2, size=next_state.shape), 0.0),
        discount=np.where(last, 0.0, -1.0),
        prior_logits=0.5 * rng.normal(size=next_state.shape),
        value=np.where(is_inner, noise * rng.uniform(-1, 1, size=num_states), 0.0),
        legal_action_mask=np.repeat(is_inner[:, None], branching, axis=1),
    )


# The same world under other names and in other units.


def relabelled(world: World, order: np.ndarray) -> World:
    """The same world with action `order[a]` called `a`."""
    by_action = ("next_state", "reward", "discount", "prior_logits", "legal_action_mask")
    return replace(world, **{name: getattr(world, name)[:, order] for name in by_action})


def rescaled(world: World, scale: float, shift: float) -> World:
    """The same world with every value x given as scale x + shift, in every player's view: Q = r + g V then does too.

    From [-1, 1] to [0, 1] both are 1/2: a win is 1, a loss is 0, and the opponent's view of x is 1 - x.
    """
    return replace(
        world,
        reward=scale * world.reward + shift * (1 - world.discount),
        value=scale * world.value + shift,
    )


# Worlds by hand: positions and the moves between them.


@dataclass(frozen=True, kw_only=True)
class Position:
    """What is said of one state; an action without a move is illegal, a position without moves is finished."""

    moves: Mapping[int, "Move"] = field(default_factory=dict)
    value: float = 0.0
    prior: Sequence[float] | None = None  # probabilities over the actions, uniform if None
    logits: Sequence[float] | None = None  # or logits instead

    def prior_logits(self, num_actions: int) -> np.ndarray:
        logits = np.zeros(num_actions)
        if self.logits is not None:
            logits[: len(self.logits)] = self.logits
        elif self.prior is not None:
            logits[: len(self.prior)] = np.log(self.prior)
        return logits


@dataclass(frozen=True, kw_only=True)
class Move:
    """One edge. Without `to` the game is over; the discount is then 0, else it passes the turn (-1)."""

    reward: float = 0.0
    to: Position | None = None
    discount: float | None = None


def world_of(root: Position, *, num_actions: int, num_states: int) -> World:
    """Number the positions below `root` and fill tables of the given size (the rest stays unreachable)."""
    positions = [root]
    world = World(
        next_state=np.zeros((num_states, num_actions), dtype=int),
        reward=np.zeros((num_states, num_actions)),
        discount=np.zeros((num_states, num_actions)),
        prior_logits=np.zeros((num_states, num_actions)),
        value=np.zeros(num_states),
        legal_action_mask=np.zeros((num_states, num_actions), dtype=bool),
    )
    for i, position in enumerate(positions):  # the list grows while it is read
        if i >= num_states:
            raise ValueError(f"`num_states` is {num_states}, which the positions do not fit.")
        world.value[i] = position.value
        world.prior_logits[i] = position.prior_logits(num_actions)
        for action, move in position.moves.items():
            world.next_state[i, action] = len(positions)
            world.reward[i, action] = move.reward
            world.discount[i, action] = _discount(move)
            world.legal_action_mask[i, action] = True
            positions.append(move.to or Position())
    return world


def _discount(move: Move) -> float:
    if move.discount is not None:
        return move.discount
    return 0.0 if move.to is None else -1.0


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def tic_tac_toe(board: str, *, gamma: float = 1.0) -> Position:
    """The game tree below `board`, nine of `X`, `O`, `.` row by row; X began. Priors uniform, values 0."""
    mover = "XO"[board.count("X") - board.count("O")]

    def play(cell: int) -> Move:
        after = board[:cell] + mover + board[cell + 1 :]
        if any(all(after[c] == mover for c in line) for line in LINES):
            return Move(reward=1.0)
        if "." not in after:
            return Move()
        return Move(to=tic_tac_toe(after, gamma=gamma), discount=-gamma)

    return Position(moves={cell: play(cell) for cell in range(9) if board[cell] == "."})
