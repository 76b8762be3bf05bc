import dataclasses
import re
from pathlib import Path

import jax
import pytest

import envs
import train
from tests.train import runs
from train import agent, ask
from train.agent import Agent
from train.network import make_network


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.untrained(tmp_path_factory.mktemp("runs"), iterations=(1,))


@pytest.fixture(scope="module")
def player(folder: Path) -> Agent:
    return train.load_agent(folder)


def test_the_agent_answers_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask.main([str(folder), "b2", "A1"]) == 0
    text = capsys.readouterr().out
    assert "1 O . ." in text and "2 . X ." in text
    assert ask.main([str(folder), "4", "0"]) == 0  # the same moves by their numbers
    assert capsys.readouterr().out == text
    told = re.search(r"The agent plays (\w\d)\. .* for X .*\nThe search weighs the moves: (.*)", text)
    assert told is not None
    named = dict(pair.rsplit(" ", 1) for pair in told[2].split(", "))
    assert told[1] in named and set(named) <= {"b1", "c1", "a2", "c2", "a3", "b3", "c3", "2 others"}
    shares = [int(share.rstrip("%")) for name, share in named.items() if "others" not in name]
    assert shares == sorted(shares, reverse=True) and len(shares) <= 5
    assert sum(int(share.rstrip("%")) for share in named.values()) == pytest.approx(100, abs=4)


def test_a_game_whose_actions_are_a_list_is_answered_in_numbers(player: Agent) -> None:
    class Listed(envs.TicTacToe):
        action_layout = envs.ActionLayout(others=("first", "second"))

    text = agent.answer(dataclasses.replace(player, env=Listed()), ["4", "first"])
    told = re.search(r"The agent plays (\w+)\.", text)
    assert text.startswith("O . .\n. X .\n. . .\n") and told is not None and told[1] in "second 2 3 5 6 7 8".split()


def test_a_finished_game_is_shown_without_a_move(player: Agent) -> None:
    assert agent.answer(player, "a1 a2 b1 b2 c1".split()).endswith("3 . . .\nX won")


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ("b2 b2", "Move 2 is 'b2', which is not legal there: choose one of a1 b1 c1 a2 c2 a3 b3 c3."),
        ("b2 d4", "Move 2 is 'd4', which is no move: choose one of a1 b1 c1 a2 c2 a3 b3 c3."),
        ("a1 a2 b1 b2 c1 c2", "Move 6 is 'c2', but the game is over after 5 moves."),
    ],
)
def test_moves_that_cannot_be_made_are_told_with_those_that_can(
    moves: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask.main([str(folder), *moves.split()]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_game_without_a_board_is_answered_too(player: Agent) -> None:
    class Flat(envs.TicTacToe):
        observation_shape = (18,)
        action_layout = envs.ActionLayout()

        def observe(self, state):
            return super().observe(state).reshape(18)

    config = dataclasses.replace(player.config, network="mlp")
    params = make_network(Flat(), config).init(jax.random.key(0))
    flat = dataclasses.replace(player, env=Flat(), config=config, params=params)
    assert agent.answer(flat, ["4"]).startswith("O to play\n\nThe agent plays ")
    assert agent.answer(flat, "0 3 1 4 2".split()) == "game over"


def test_what_cannot_be_read_is_an_error_and_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask.main(["x" * 300]) == 2 and "error: " in capsys.readouterr().err
