"""The pictures of a report: a game of the agent against itself and its map of first moves, as `showcase` found them."""

import math
import shlex
from typing import Any

import jax
from markupsafe import Markup

import envs
from envs.render import MARKS
from train import charts, showcase
from train.agent import Agent
from train.charts import Line

_STREAM = 2**32 - 1  # of the randomness here; the run's own streams are numbered by its iterations


def show(agent: Agent, seed: int) -> dict[str, Any]:
    """Let the agent play itself and judge the first moves; both as pictures for the page, the same for one seed.

    Raises `ValueError` for a game that cannot be drawn.
    """
    game_key, opening_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), _STREAM))
    game = showcase.play_itself(agent, game_key)
    chances = showcase.first_moves(agent, opening_key)
    env = agent.env
    ground, boards = _boards(env, game)
    values = [ply.value if ply.player == 0 else -ply.value for ply in game.plies]
    course = charts.chart(
        "course",
        "Value over the sample game, in the view of X",
        [Line(label="value", x=range(1, len(values) + 1), y=values)],
        x_label="move",
        levels=[("even", 0.0)],
        limits=(-1.05, 1.05),
    )
    start = game.plies[0].state
    best = max((chance, action) for action, chance in enumerate(chances.tolist()) if not math.isnan(chance))
    return {
        "game": {
            "ground": ground,
            "boards": boards,
            "course": Markup(course),
            "result": _result(game.end),
            "first_moves": shlex.join(board["move"] for board in boards[:-1][:2]),
            "is_large": env.observation_shape[1] > 8,
        },
        "opening": {
            "board": Markup(envs.to_svg(env, start, heat=chances)),
            "best": envs.move_name(env, best[1]),
            "chance": best[0],
            "iteration": agent.iteration,
        },
    }


def _boards(env: Any, game: showcase.Game) -> tuple[Markup, list[dict[str, Any]]]:
    """Draw each position with the weights its search gave the moves, and the last one as it is."""
    before = [None, *(ply.action for ply in game.plies)]  # the move that led to each position
    pictures = [envs.to_svg(env, ply.state, shares=ply.weights, last=last) for ply, last in zip(game.plies, before)]
    ground, pictures = charts.share_ground([*pictures, envs.to_svg(env, game.end, last=before[-1])], "ground")
    boards: list[dict[str, Any]] = [
        {
            "number": number,
            "player": MARKS[ply.player],
            "move": envs.move_name(env, ply.action),
            "weight": float(ply.weights[ply.action]),
            "value": round(ply.value, 2) + 0.0,  # no minus before a zero
            "svg": Markup(picture),
        }
        for number, (ply, picture) in enumerate(zip(game.plies, pictures), start=1)
    ]
    return Markup(ground), [*boards, {"number": None, "svg": Markup(pictures[-1])}]


def _result(end: Any) -> str:
    if not end.terminated:
        return "cut short, undecided"
    rewards = end.rewards.tolist()
    return f"{MARKS[rewards.index(max(rewards))]} won" if max(rewards) > 0 else "a draw"
