"""One string names any game: a user's own by where it can be imported or by `register`, and it can be trained."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import envs
from envs import registry
from envs.moves import num_on_board
from tests.test_readme import ROOT, python_blocks
from tests.train.toys import Pairs
from train import config, lineup, page, presets, stages

MODULE = '''
import dataclasses
import envs
from tests.train.toys import Pairs

PAIRS = Pairs(length=7)

def short(length=2, *, limit=9):
    return Pairs(length, limit)

def needy(length):
    return Pairs(length)

class Box:
    """A name apart."""
    Inner = Pairs

class NoGame:
    num_actions = 3

class Unfinished(envs.BoardGame):
    name = "unfinished"
'''


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after a test what it has registered."""
    monkeypatch.setattr(registry, "_GAMES", dict(registry._GAMES))


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user's, `my_games.pairs`, on the path as that of the current folder is."""
    package = tmp_path / "my_games"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "pairs.py").write_text(MODULE)
    (package / "broken.py").write_text("import no_such_package\n")
    (package / "stale.py").write_text("from my_games.pairs import Gone\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_games.pairs"
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_games"]:
        del sys.modules[name]


def test_a_game_is_named_by_where_it_can_be_imported(mine: str) -> None:
    assert envs.make(f"{mine}:Pairs") == Pairs() == envs.make("tests.train.toys:Pairs()")
    assert envs.make(f"{mine}:Pairs(length=3)", limit=8) == Pairs(3, 8)
    assert envs.make(f" {mine}:short( limit=5 ) ") == Pairs(2, 5)
    assert envs.make(f"{mine}:Box.Inner(length=4)") == Pairs(4)
    assert envs.make(f"{mine}:PAIRS") == Pairs(7)  # a game that is made already


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "my_gams.pairs:Pairs",
            r"'my_gams.pairs:Pairs' cannot be imported \(No module named 'my_gams'\): run",
        ),
        ("my_games.pears:Pairs", r"\(No module named 'my_games.pears'\): run from the folder that holds it, or put"),
        ("my_games.broken:Pairs", r"'no_such_package'\): the module is there, but not what it imports"),
        ("my_games.stale:Pairs", r"\(cannot import name 'Gone' .*\): the module is there, but not what it imports"),
        ("my_games.pairs:Pears", "'my_games.pairs' has no 'Pears'; did you mean Pairs"),
        ("my_games.pairs:Qqq", "'my_games.pairs' has no 'Qqq'; nothing there is called so"),
        ("my_games.pairs:NoGame", "which is no game, for it lacks name, num_players, observation_shape, init, step"),
        ("my_games.pairs:dataclasses", "makes <module 'dataclasses'.*, which is no game"),
        ("builtins:int", "makes 0, which is no game"),
        ("my_games.pairs:Unfinished", "cannot be made with the options {}: Can't instantiate abstract class"),
        ("my_games.pairs:needy", r"needs the options length: write my_games.pairs:needy\(length=...\)"),
        (
            "my_games.pairs:Pairs(size=3)",
            "Unknown option 'size' of game 'my_games.pairs:Pairs': its options are",
        ),
        ("my_games.pairs:Pairs(length=2.5)", "`length` is 2.5, expected int, as its default 5 is"),
        ("my_games.pairs:PAIRS(length=3)", "it has no options"),
        ("my_games.pairs:", r"Unknown game .* A game of your own is named by where it can be imported"),
        (":Pairs", "Unknown game ':Pairs'"),
        (".pairs:Pairs", "Unknown game '.pairs:Pairs'"),
        ("my_games.pairs", r"Unknown game 'my_games.pairs': known games are .*'my_module:MyGame'"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(mine: str, name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        envs.make(name)


def test_a_name_can_be_registered() -> None:
    before = envs.names()
    envs.register("pairs", Pairs)
    assert envs.names() == (*before, "pairs")
    assert envs.make("pairs(length=3)") == Pairs(3)
    with pytest.raises(ValueError, match="Unknown game 'paris': known games are pairs, "):
        envs.make("paris")
    envs.register("two", lambda: Pairs(2))
    assert envs.make("two") == Pairs(2)


def test_a_name_is_taken_once() -> None:
    envs.register("pairs", Pairs)
    envs.register("pairs", Pairs)  # a cell that is run again
    with pytest.raises(ValueError, match=r"`name` 'pairs' is taken by .*Pairs.*: choose another, or pass `repl"):
        envs.register("pairs", lambda: Pairs(2))
    envs.register("pairs", lambda: Pairs(2), replace=True)
    assert envs.make("pairs") == Pairs(2)
    with pytest.raises(ValueError, match="`name` 'hex' is taken"):
        envs.register("hex", Pairs)


def test_what_cannot_be_registered_is_refused() -> None:
    for name in ("", "my game", "a:b", "hex(size=3)", None):
        with pytest.raises(ValueError, match=r"`name` is .*, expected letters, digits and underscores"):
            envs.register(name, Pairs)
    with pytest.raises(TypeError, match=r"`game` is Pairs\(length=5, limit=100\), expected a class or function"):
        envs.register("pairs", Pairs())


def test_the_name_is_that_of_a_run(mine: str, tmp_path: Path) -> None:
    """It passes the config and its file, the players of a match and the title of a report."""
    name = f"{mine}:Pairs(length=3)"
    settings = dataclasses.replace(presets.debug(), game=name)
    assert config.from_json(config.to_json(settings)).game == name
    env, _ = lineup.load(["random", "uct:3"], name)
    assert env == Pairs(3)
    assert page._game_name(name) == "Pairs (length=3)"
    assert page._game_name("connect_four(rows=5)") == "Connect Four (rows=5)"
    assert page._game_name("pgx:go_9x9") == "Go 9x9"


@dataclasses.dataclass(frozen=True)
class Bare:
    """A game that is none of `BoardGame`'s: no symmetries, no layout, no picture."""

    pairs: Any = dataclasses.field(default_factory=Pairs)
    name = "bare"
    num_players = 2
    num_actions = 2
    observation_shape = (2,)

    def init(self, key: jax.Array | None = None) -> Any:
        return self.pairs.init(key)

    def step(self, state: Any, action: jax.Array, key: jax.Array | None = None) -> Any:
        return self.pairs.step(state, action, key)

    def observe(self, state: Any) -> jax.Array:
        return self.pairs.observe(state).reshape(2)

    def legal_action_mask(self, state: Any) -> jax.Array:
        return self.pairs.legal_action_mask(state)


class Alone(Bare):
    num_players = 1

    def init(self, key: jax.Array | None = None) -> Any:
        return dataclasses.replace(self.pairs.init(key), rewards=jnp.zeros(1, jnp.float32))

    def step(self, state: Any, action: jax.Array, key: jax.Array | None = None) -> Any:
        return state


class Wrong(Bare):
    def observe(self, state: Any) -> jax.Array:
        return jnp.zeros((3, 3), jnp.float32)


def test_a_game_with_the_least_can_be_trained() -> None:
    settings = dataclasses.replace(presets.debug(), game=f"{__name__}:Bare", network="mlp")
    built = stages.build(settings)
    learner, games, ring = jax.eval_shape(built.start, jax.random.key(0))
    games, trajectory = jax.eval_shape(built.play, learner.playing, games, jax.random.key(1))
    ring = jax.eval_shape(built.store, ring, trajectory)
    _, losses = jax.eval_shape(built.update, learner, ring, jax.random.key(2))
    assert losses["loss"].shape == ()


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        (f"{__name__}:Bare", r"`observation_shape` is \(2,\), expected .*choose `network` \"mlp\""),
        (f"{__name__}:Alone", r"has 1 player, expected 2: an agent learns by playing against itself"),
        ("pgx:2048", "has 1 player, expected 2"),
        ("pgx:sparrow_mahjong", "has 3 players, expected 2"),
        (f"{__name__}:Wrong", r"(?s)cannot be trained: Wrong breaks the contract .*`observe` gives .*`envs.check_env`"),
        ("my_gams:Pairs", "cannot be imported"),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is_written(game: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        stages.build(dataclasses.replace(presets.debug(), game=game))


@pytest.mark.slow
def test_the_game_of_the_readme_is_trained_resumed_and_played(tmp_path: Path) -> None:
    """As a user would: the file of the README in a folder of their own, and commands there."""
    block = next(block for block in python_blocks() if "class Domineering" in block.text)
    (tmp_path / "domineering.py").write_text(block.text)

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    game = "domineering:Domineering(size=4)"
    first = python("train", "debug", "--game", game, "--name", "mine", "--minutes", "0.001")
    assert "Resume" in first or "ended" in first or "minutes are over" in first, first
    assert "Strength" in python("train", "--resume", "runs/mine", "--minutes", "60")
    assert "The agent plays" in python("train.ask", "runs/mine", "b1", "a3")
    assert "won" in python("train.arena", "runs/mine", "random", "--games", "4")
    report = (tmp_path / "runs" / "mine" / "report.html").read_text()
    assert "Domineering (size=4)" in re.sub(r"\s+", " ", report) and "There is no sample game" not in report


def test_the_page_of_games_lists_them_with_their_options_and_sizes() -> None:
    page = (Path(envs.__file__).parent / "README.md").read_text()
    table = page[page.index("| name |") : page.index("What all have in common")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    assert tuple(name.strip("`") for name, *_ in rows) == envs.names()
    for name, players, options, actions, size in rows:
        env = envs.make(name.strip("`"))
        assert str(env.num_players) in players.split(", ")
        assert re.findall(r"`(\w+)`", options) == [field.name for field in dataclasses.fields(env)]
        beside = [envs.move_name(env, action) for action in range(num_on_board(env), env.num_actions)]
        assert re.findall(r"`(\w+)`", actions) == beside or not beside
        state = jax.eval_shape(env.init, jax.random.key(0))
        if name != "`go`":
            assert size == str(sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)))
