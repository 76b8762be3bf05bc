"""Where the time of a run goes: `python -m train [PRESET] --profile`.

Self-play is one compiled program, so its parts cannot be timed inside it. Instead the work of a part is done alone,
as often and at the same batch: what is left of the time of self-play is the search and the loop around it.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import envs
from jaxmcts.model import Env
from train import loop, run_state, search
from train import stages as training_stages
from train.config import Config
from train.network import Network, Params, make_network
from train.run_state import Arrays
from train.signals import Stop
from train.stages import Stages

REPEATS = 5
# part(arrays) -> (the arrays to go on with, what else to wait for)
Part = Callable[[Arrays], tuple[Arrays, Any]]


def report(config: Config, console: Console | None = None) -> None:
    """Measure a run of this config and print a table."""
    console = console or Console()
    console.print(
        f"Measuring each part {REPEATS} times after compiling it; device: {jax.devices()[0].device_kind}.", style="dim"
    )
    console.print(table(config, measure(training_stages.build(config))))


def measure(stages: Stages, repeats: int = REPEATS) -> dict[str, float]:
    """Time the parts of one iteration and a match, in turns: median seconds of each."""
    arrays = run_state.start(stages)
    parts = _parts(stages)
    for part in parts.values():  # the first call also compiles
        arrays, _ = jax.block_until_ready(part(arrays))
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(repeats):
        for name, part in parts.items():
            before = time.perf_counter()
            arrays, _ = jax.block_until_ready(part(arrays))
            seconds[name].append(time.perf_counter() - before)
    return {name: statistics.median(times) for name, times in seconds.items()}


def table(config: Config, seconds: dict[str, float]) -> Table:
    """Lay out what `measure` found."""
    play, learn = seconds["self-play"], seconds["learning"]
    rest = play - seconds["network"] - seconds["rules"]
    calls = evaluations(config)
    result = Table(title="Where an iteration's time goes", title_justify="left")
    for name in ("part", "work"):
        result.add_column(name, no_wrap=True)
    for name in ("seconds", "iteration", "self-play"):
        result.add_column(name, justify="right", no_wrap=True)

    def add(name: str, work: str, part: float, share: str = "") -> None:
        result.add_row(name, work, f"{part:.3f}", f"{part / (play + learn):.1%}", share)

    add("self-play", f"{config.games} games x {config.steps} moves", play, "100.0%")
    add("  network", f"{calls} x {config.games} positions", seconds["network"], f"{seconds['network'] / play:.1%}")
    add("  rules", f"{calls} x {config.games} moves", seconds["rules"], f"{seconds['rules'] / play:.1%}")
    add("  search and the rest", "", rest, f"{rest / play:.1%}")
    add("learning", f"{config.updates} x {config.batch} positions", learn)
    result.add_section()
    result.add_row("a match, beside it", f"{config.match_games} games", f"{seconds['match']:.3f}", "", "")
    return result


def _parts(stages: Stages) -> dict[str, Part]:
    config, key = stages.config, jax.random.key(stages.config.seed)
    env = envs.make(config.game)
    network = make_network(env, config)
    calls = evaluations(config)
    evaluate = jax.jit(lambda params, state: _evaluate_often(params, jax.vmap(env.observe)(state), network, calls))
    move = jax.jit(lambda state: _move_often(state, key, env, calls))

    return {
        "self-play": lambda arrays: loop.play(stages, arrays, key),
        "network": lambda arrays: (arrays, evaluate(arrays.learner.playing, arrays.games.state)),
        "rules": lambda arrays: (arrays, move(arrays.games.state)),
        "learning": lambda arrays: loop.learn(stages, arrays, key, 0, Stop()),
        "match": lambda arrays: (arrays, list(stages.ladder.measure(arrays.learner.playing, 1, {}, key, final=False))),
    }


def evaluations(config: Config) -> int:
    """Count the evaluations of a batch in one stage of self-play; of two budgets, their mean."""
    full = config.steps * config.full_search_share
    return round(search.count_evaluations(config, full, config.steps - full)) + 1


def _evaluate_often(params: Params, observation: jax.Array, network: Network, calls: int) -> jax.Array:
    """Evaluate a batch again and again; each time something of the answers goes in, so that none can be left out."""

    def evaluate(_: int, observation: jax.Array) -> jax.Array:
        logits, value = network(params, observation)
        answer = jnp.tanh(value + logits.sum(axis=1))
        flat = observation.reshape(len(observation), -1)
        return flat.at[:, 0].set(answer.astype(flat.dtype)).reshape(observation.shape)

    return jax.lax.fori_loop(0, calls, evaluate, observation)


def _move_often(state: Any, key: jax.Array, env: Env, calls: int) -> tuple[Any, jax.Array]:
    """Make a move in each game again and again, and look at the game as the search does.

    It matters not that games end in between: in a batch, a finished game costs what another does.
    """

    count = jax.tree.leaves(state)[0].shape[0]

    def move(number: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, seen = carry
        mask = jax.vmap(env.legal_action_mask)(state)
        action = jnp.argmax(mask, axis=1).astype(jnp.int32)
        state = jax.vmap(env.step)(state, action, jax.random.split(jax.random.fold_in(key, number), count))
        return state, seen + jax.vmap(env.observe)(state).reshape(len(action), -1).sum(axis=1)

    return jax.lax.fori_loop(0, calls, move, (state, jnp.zeros(count)))
