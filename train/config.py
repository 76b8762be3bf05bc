"""What one training run is made of: every number in one frozen record, checked when it is made.

The record holds no arrays and imports no JAX, so the command line can show it at once. It is written
as it is to `config.json` in the run's folder, and reading that file back gives an equal record.
"""

import contextlib
import dataclasses
import math
import numbers
import typing
from typing import Any, Literal

_LARGEST = 2**31 - 2  # of what is counted: one more still is an integer of the device, which has 32 bits
_SEEDS = 2**32  # that differ: `jax.random.key` looks at no more bits
_SMALLEST = 1e-6  # that a step, a norm or an alpha can be and still do something
_INFINITE = 2.0**128  # from here on in the device's numbers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """One training run. A value of another type or out of its range raises `ValueError`, which says what to do.

    Whole numbers become floats where those are asked for, and NumPy's numbers Python's; no other type is converted.
    Where a run is kept makes no difference: configs that differ in `name` and `runs` alone are equal.
    """

    game: str = "connect_four"  # of two players, for `envs.make`: "hex(size=5)", "pgx:othello", or "my_module:MyGame"
    name: str = dataclasses.field(default="connect_four", compare=False)  # folder under `runs`; numbered if it is taken
    runs: str = dataclasses.field(default="runs", compare=False)  # folder that holds the runs
    seed: int = 0  # >= 0, below 2^32; the same seed on the same machine gives the same agent
    iterations: int = 27  # >= 1: rounds of self-play and updates; more is stronger and takes longer
    minutes: float = math.inf  # > 0, minutes of wall clock: no new iteration begins after that

    games: int = 256  # >= 1: games played side by side; more uses a wide device better
    steps: int = 32  # >= 1, moves: length of one iteration of self-play; a game goes on in the next one
    opening_plies: int = 11  # >= 0: each game starts with 0 to this many random plies, for variety

    search: Literal["gumbel", "alphazero"] = "gumbel"  # of self-play and of the agent; Gumbel's needs fewer simulations
    num_simulations: int = 16  # >= 1: search per move of self-play; more gives better targets, fewer positions
    max_num_considered_actions: int = 16  # >= 1: moves the Gumbel search tries at the root; fewer look deeper
    dirichlet_fraction: float = 0.25  # 0 to 1: share of noise in the priors at the root of the AlphaZero search
    dirichlet_alpha: float = 0.3  # >= 1e-6: evenness of that noise; the usual advice is 10 / legal moves
    full_search_share: float = 1.0  # > 0 to 1: share of moves searched in full; from the others no policy is learned
    fast_num_simulations: int = 8  # >= 1: search per move of those others; fewer end more games, played less well
    temperature: float = 1.0  # >= 0: AlphaZero plays visits^(1 / it), Gumbel scales its noise by it; 0 is the best move
    temperature_plies: int = 1000  # >= 0, plies of a game played with it; the later ones with `late_temperature`
    late_temperature: float = 0.0  # >= 0: as `temperature`; lower plays the end of a game better, with less variety

    td_lambda: float = 1.0  # 0 to 1: 1 learns from the game's result, less also from later values of the search
    td_steps: int = 0  # moves, >= 0: learn from the value found so many moves later; 0 waits for the result
    search_value_share: float = 0.0  # 0 to 1: share of the search's own value of the position in the value target

    network: Literal["convolutions", "mlp"] = "convolutions"  # over the board, or dense for a game without one
    channels: int = 32  # >= 1: width of its layers; more is stronger in the end and slower
    blocks: int = 5  # >= 1, layers: its 3 x 3 convolutions, or its hidden layers; as `channels`

    replay: int = 30 * 8192  # positions, >= games * steps: how long a position is learned from
    mirror: bool = True  # learn from a random symmetry of the board each time a position is drawn
    updates: int = 160  # >= 1: optimizer steps per iteration; more learns faster, then overfits
    batch: int = 128  # >= 1: positions per update
    learning_rate: float = 2e-3  # >= 1e-6: AdamW's step at its highest
    warmup_updates: int = 0  # >= 0, below iterations * updates: it rises to that over so many; steadies the start
    final_learning_rate: float = 0.1  # 0 to 1: share of it that is left at the end of the cosine along which it falls
    weight_decay: float = 1e-4  # >= 0, per unit of learning rate; not on biases and norms
    max_grad_norm: float = 1.0  # >= 1e-6: longer gradients are scaled down to this
    value_weight: float = 1.0  # >= 0: weight of the value's squared error against the policy's cross-entropy
    average_decay: float = 0.0  # 0 to below 1: play with a mean over about 1 / (1 - it) updates; 0 with the newest

    checkpoint_every: int = 4  # iterations, >= 1: how much is lost when the machine dies
    evaluate_every: int = 9  # iterations, >= 0: matches in between; 0 is only at the end
    match_games: int = 128  # even, >= 2: games of one match, played side by side
    final_matches: int = 4  # >= 1: matches at the end, each of `match_games` games
    arena_opening_plies: int = 4  # >= 0: each pair of games starts with 0 to this many random plies
    agent_num_simulations: int = 64  # >= 1: search per move of the trained agent, in matches and when loaded
    opponent_num_simulations: int = 100  # >= 1: search per move of its opponent, UCT with one rollout a leaf

    def __post_init__(self) -> None:
        for field, type_ in typing.get_type_hints(Config).items():
            object.__setattr__(self, field, typed(field, getattr(self, field), type_))
        for names, is_in, expected, advice in _RANGES:
            for field in names.split():
                if not is_in(getattr(self, field)):
                    raise ValueError(f"`{field}` is {getattr(self, field)!r}, expected {expected}: {advice}.")
        if self.replay < self.games * self.steps:
            raise ValueError(
                f"`replay` is {self.replay}, expected at least `games` * `steps`"
                f" = {self.games * self.steps}: raise it, or play fewer games or steps, so that an iteration fits."
            )
        if self.warmup_updates >= self.iterations * self.updates:
            raise ValueError(
                f"`warmup_updates` is {self.warmup_updates}, expected fewer than `iterations` * `updates`"
                f" = {self.iterations * self.updates}: lower it, or the rate never gets to `learning_rate`."
            )


def typed(field: str, value: Any, type_: Any) -> Any:
    """Give the value of a field as its own type; raise `ValueError` if it is of another."""
    options = typing.get_args(type_)  # of a `Literal`
    accepted = str if options else _NUMBERS.get(type_, type_)
    is_bool = isinstance(value, bool)  # which Python counts among the numbers
    if isinstance(value, accepted) and is_bool == (type_ is bool) and (not options or value in options):
        with contextlib.suppress(OverflowError):  # of an int that is larger than all floats
            return type_(value) if type_ in _NUMBERS else value
    expected = " or ".join(map(repr, options)) or type_.__name__
    raise ValueError(f"`{field}` is {value!r} ({type(value).__name__}), expected {expected}: give one.")


_NUMBERS = {int: numbers.Integral, float: numbers.Real}  # NumPy's are among these

_RANGES = (
    (
        "iterations games steps num_simulations max_num_considered_actions channels blocks replay updates batch"
        " final_matches agent_num_simulations opponent_num_simulations fast_num_simulations checkpoint_every",
        lambda value: 1 <= value <= _LARGEST,
        f"at least 1 and at most {_LARGEST}",
        "it counts something that a run cannot do without, in 32 bits",
    ),
    (
        "opening_plies evaluate_every arena_opening_plies temperature_plies td_steps warmup_updates",
        lambda value: 0 <= value <= _LARGEST,
        f"0 or more and at most {_LARGEST}",
        "start from the preset's value",
    ),
    (
        "seed",
        lambda value: 0 <= value < _SEEDS,
        f"0 or more and below {_SEEDS}",
        "larger ones would repeat these",
    ),
    (
        "minutes",
        lambda value: value > 0,
        "a number of minutes above 0",
        "leave it out for no limit",
    ),
    (
        "learning_rate max_grad_norm dirichlet_alpha",
        lambda value: _SMALLEST <= value < _INFINITE,
        f"a number of at least {_SMALLEST:g}, finite in 32 bits",
        "start from the preset's value",
    ),
    (
        "weight_decay value_weight temperature late_temperature",
        lambda value: 0 <= value < _INFINITE,
        "a number of 0 or more, finite in 32 bits",
        "use 0 to turn it off",
    ),
    (
        "td_lambda",
        lambda value: 0 <= value <= 1,
        "a number from 0 to 1",
        "use 1 to learn from results alone",
    ),
    (
        "dirichlet_fraction search_value_share final_learning_rate",
        lambda value: 0 <= value <= 1,
        "a number from 0 to 1",
        "it is a share",
    ),
    (
        "full_search_share",
        lambda value: 0 < value <= 1,
        "a number above 0, 1 at most",
        "use 1 to search every move in full",
    ),
    (
        "average_decay",
        lambda value: 0 <= value < 1,
        "a number from 0 to below 1",
        "use 0 to play with the newest weights",
    ),
    (
        "match_games",
        lambda value: 2 <= value <= _LARGEST and value % 2 == 0,
        f"an even number of at least 2 and at most {_LARGEST}",
        "every opening is played twice, once from each side",
    ),
    (
        "game name runs",
        lambda value: bool(value.strip()) and value.isprintable() and not value.startswith("-"),
        "a name that is not empty, of characters that can be printed, with no - in front",
        "leave it out for the preset's name",
    ),
    (
        "name",
        lambda value: not set(value) & set("/\\") and value not in (".", ".."),
        "the name of one folder",
        "say where the folder lies with `runs`",
    ),
    (
        "name",
        lambda value: not set(value) & set("@:"),
        "a name without `@` and `:` in it",
        "in the name of a player they stand before the iteration and the simulations",
    ),
)


def to_json(config: Config) -> dict[str, Any]:
    """Turn a config into JSON's types; no limit of time becomes null, for JSON knows no infinity."""
    fields = dataclasses.asdict(config)
    return fields | {"minutes": None if math.isinf(config.minutes) else config.minutes}


def from_json(fields: Any) -> Config:
    """Make the config that `to_json` wrote. Raises `ValueError` for anything else."""
    if not isinstance(fields, dict):
        raise ValueError(f"The config is {type(fields).__name__} in JSON, expected an object of its fields.")
    known = {field.name for field in dataclasses.fields(Config)}
    if unknown := sorted(set(fields) - known):
        raise ValueError(
            f"The config has the unknown fields {unknown}: it was written by another version; "
            "load it with that version, or remove them if they do not matter."
        )
    if missing := sorted(known - set(fields)):
        raise ValueError(
            f"The config lacks the fields {missing}: it was written by another version; "
            "load it with that version, or add them as they were there."
        )
    return Config(**fields | {"minutes": math.inf if fields["minutes"] is None else fields["minutes"]})
