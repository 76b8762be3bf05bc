"""Who plays a match: the players that a command line names, made ready."""

import re
from collections.abc import Sequence
from pathlib import Path

import envs
from jaxmcts.model import Env
from train import names
from train.agent import Agent, load_agent
from train.checkpoint import CheckpointError
from train.players import Entrant, Random, Trained, Uct


def load(texts: Sequence[str], game: str | None = None) -> tuple[Env, list[Entrant]]:
    """Make the players that texts name, as listed in `arena.PLAYERS`, and the game that all of them play.

    `game` is needed where none of them is an agent. Raises `ValueError` for a text that names no player, for runs
    and agents that are not there, and for players of different games.
    """
    agents = {text: _load_agent(text) for text in texts if not _is_untrained(text)}
    games = {text: loaded.env for text, loaded in agents.items()} | (
        {} if game is None else {"`game`": envs.make(game)}
    )
    if not games:
        raise ValueError("None of the players is an agent, so the game is not known: name it, `--game connect_four`.")
    (one, env), *others = games.items()
    for other, another in others:
        if another != env:
            raise ValueError(f"{one} plays {env} but {other} plays {another}: choose players of the same game.")
    return env, [_enter(text, env, agents.get(text)) for text in texts]


def _is_untrained(text: str) -> bool:
    return text == names.RANDOM or names.is_uct(text)


def _enter(text: str, env: Env, loaded: Agent | None) -> Entrant:
    if loaded is not None:
        name = f"{text} (iteration {loaded.iteration}, {loaded.config.agent_num_simulations} simulations a move)"
        return Entrant(name=name, player=Trained(env, loaded.config), params=loaded.params)
    if text == names.RANDOM:
        return Entrant(name=text, player=Random(env))
    rollouts = names.rollouts(text)
    if not rollouts.isdecimal() or int(rollouts) < 1:
        raise ValueError(f"The player {text!r} has no number of rollouts: write `uct:100`.")
    return Entrant(name=text, player=Uct(env, int(rollouts)))


def _load_agent(text: str) -> Agent:
    match = re.fullmatch(r"(?P<run>.+?)(@(?P<iteration>\d+))?(:(?P<simulations>\d+))?", text)
    if match is None or not Path(match["run"]).is_dir():
        raise ValueError(
            f"The player {text!r} is not known: write `random`, `uct:100`, or the folder of a run that is there, "
            "such as `runs/connect_four`, with `@12` for an iteration and `:200` for simulations a move."
        )
    iteration, simulations = (None if part is None else int(part) for part in match.group("iteration", "simulations"))
    try:
        return load_agent(match["run"], iteration=iteration, num_simulations=simulations)
    except CheckpointError as error:
        raise ValueError(f"The player {text!r} cannot be loaded: {error}") from error
