"""Names of moves: what they are, that they read back, and what is said of those that are none."""

from typing import Any

import pytest

import envs
from envs.check import ContractError
from envs.moves import column_letters
from envs.time_limit import TimeLimit
from tests.envs import playing

TTT, C4, HEX = envs.TicTacToe(), envs.ConnectFour(), envs.Hex(11, swap=True)


class Listed(envs.TicTacToe):
    """A game of somebody who says nothing of a layout but the names of two moves."""

    action_layout = envs.ActionLayout(others=("Rock", "2"))


class Alone:
    """As little of a game as has moves: no shell, no layout."""

    name = "alone"
    num_actions = 3
    observation_shape = (5,)


class Wide(envs.TicTacToe):
    """A layout that needs more actions than there are."""

    observation_shape = (3, 4, 2)


class Boardless(envs.TicTacToe):
    """A layout without a board to lie on."""

    observation_shape = (18,)


@pytest.mark.parametrize(
    ("env", "names"),
    [
        (TTT, {0: "a1", 1: "b1", 5: "c2", 8: "c3"}),
        (C4, {0: "0", 6: "6"}),
        (HEX, {0: "a1", 24: "c3", 120: "k11", 121: "swap"}),
        (TimeLimit(HEX, 5), {24: "c3", 121: "swap"}),
        (Listed(), {0: "Rock", 1: "2", 2: "2", 8: "8"}),
        (Alone(), {0: "0", 2: "2"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_moves_are_called_by_where_they_lie(env: Any, names: dict[int, str]) -> None:
    assert {action: envs.move_name(env, action) for action in names} == names


@pytest.mark.parametrize("env", [TTT, C4, HEX, envs.Hex(3), TimeLimit(C4, 5), Alone()], ids=lambda env: env.name)
def test_names_read_back_and_so_do_numbers(env: Any) -> None:
    for action in range(env.num_actions):
        name = envs.move_name(env, action)
        assert envs.parse_move(env, name) == envs.parse_move(env, f" {name.upper()} ") == action
        assert envs.parse_move(env, str(action)) == action


def test_a_name_goes_before_a_number() -> None:
    assert envs.parse_move(Listed(), "2") == 1
    assert envs.parse_move(Listed(), "rock") == 0
    assert envs.parse_move(Listed(), "3") == 3


def test_an_actions_number_is_a_move_too() -> None:
    assert envs.parse_move(TTT, 3) == envs.parse_move(TTT, "3") == envs.parse_move(TTT, "a2") == 3


@pytest.mark.parametrize("text", ["d1", "a4", "9", "-1", "", "1.0", "a", "a0", "swap", "²"])
def test_what_is_no_move_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match="is no move of 'tic_tac_toe', whose moves are a1 b1 c1 a2 b2 c2 a3 b3 c3"):
        envs.parse_move(TTT, text)


@pytest.mark.parametrize("action", [-1, 9])
def test_an_action_out_of_range_has_no_name(action: int) -> None:
    with pytest.raises(ValueError, match=f"`action` is {action}, expected one from 0 to 8"):
        envs.move_name(TTT, action)


def test_an_action_that_is_no_integer_has_no_name() -> None:
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        envs.move_name(TTT, 1.7)  # type: ignore[arg-type]


def test_a_layout_with_more_places_than_actions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`action_layout` of 'tic_tac_toe' puts .* 12, but `num_actions` is 9"):
        envs.move_name(Wide(), 0)
    with pytest.raises(ValueError, match=r"puts its actions on cells, but the observation has the shape \(18,\)"):
        envs.move_name(Boardless(), 0)


def test_legal_moves_are_named_until_the_game_is_over() -> None:
    assert list(envs.legal_moves(TTT, playing.play(TTT, [4, 0, 8]))) == ["b1", "c1", "a2", "c2", "a3", "b3"]
    assert not list(envs.legal_moves(TTT, playing.play(TTT, [0, 3, 1, 4, 2])))


def test_columns_go_on_after_z() -> None:
    assert [column_letters(column) for column in (0, 25, 26, 51, 52, 701, 702)] == "a z aa az ba zz aaa".split()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (envs.ActionLayout(others=("pass",) * 9), "several actions the name pass"),
        (envs.ActionLayout(others=("2",)), "several actions the name 2"),
        (envs.ActionLayout(others=("Pass", "pass")), "several actions the name pass"),
        (envs.ActionLayout(on="cells", others=("swap",)), "1 names more than there are actions"),
        (None, "`action_layout` of 'tic_tac_toe' is None, expected an `envs.ActionLayout`"),
    ],
    ids=str,
)
def test_a_contract_of_names_that_cannot_be_used_is_broken(layout: Any, message: str) -> None:
    class Named(envs.TicTacToe):
        action_layout = layout

    with pytest.raises(ContractError, match=message):
        envs.check_env(Named(), num_games=1)


@pytest.mark.parametrize(
    "options", [{"others": "pass"}, {"others": (1, 2)}, {"others": (" x",)}, {"others": ("",)}, {"on": "rows"}], ids=str
)
def test_a_layout_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`o(n|thers)` is .*, expected"):
        envs.ActionLayout(**options)
