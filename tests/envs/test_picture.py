"""Pictures: what is on them, read back from the XML, and that nothing lies outside or over each other."""

import itertools
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import envs
from envs.picture import to_svg
from envs.time_limit import TimeLimit
from tests.envs import playing

TTT, C4, HEX = envs.TicTacToe(), envs.ConnectFour(), envs.Hex(5, swap=True)
# A game in the middle and a finished one of each, ending with the move last played.
POSITIONS = [
    (TTT, [4, 0, 8]),
    (TTT, [0, 3, 1, 4, 2]),
    (C4, [3, 3, 2, 2, 1]),
    (C4, [3, 3, 2, 2, 1, 1, 0]),
    (HEX, [12, 7, 3]),
    (HEX, [0, 1, 5, 6, 10, 11, 15, 16, 20]),
    (envs.Hex(2), [1, 0, 2]),
    (envs.Hex(11), [60, 3]),
    (envs.Go(9), [40, 20, 24]),
    (envs.make("connect_four(rows=3, columns=12)"), [11, 0]),
    (TimeLimit(HEX, 3), [12, 7, 3]),
]
every_position = pytest.mark.parametrize(("env", "moves"), POSITIONS, ids=[f"{e!r} {m}" for e, m in POSITIONS])


def draw(env: Any, moves: Sequence[int], **told: Any) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(env, playing.play(env, moves), **told))


def named(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """The elements of one class; a stone is of its player's, too."""
    return [element for element in svg.iter() if name in element.get("class", "").split()]


def middle(element: ElementTree.Element) -> tuple[float, float]:
    box = _box(element)
    return round((box[0] + box[2]) / 2), round((box[1] + box[3]) / 2)


def _box(element: ElementTree.Element) -> tuple[float, float, float, float]:
    """Left, top, right and bottom, for text those of its middle line at the least width digits have."""
    at = {name: float(element.get(name, 0)) for name in ("x", "y", "cx", "cy", "r", "width", "height", "font-size")}
    if element.tag.endswith("circle"):
        return at["cx"] - at["r"], at["cy"] - at["r"], at["cx"] + at["r"], at["cy"] + at["r"]
    if element.tag.endswith("text"):
        half = 0.3 * at["font-size"] * len(element.text or "")
        return at["x"] - half, at["y"] - 0.7 * at["font-size"], at["x"] + half, at["y"]
    if element.tag.endswith("rect"):
        return at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]
    points = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", element.get("d", "")), float)
    return (*points.min(axis=0), *points.max(axis=0))


@every_position
def test_there_is_one_element_for_each_stone(env: Any, moves: list[int]) -> None:
    svg = draw(env, moves)
    assert svg.tag == "{http://www.w3.org/2000/svg}svg" and "width" not in svg.attrib
    assert len(named(svg, "first")) == (len(moves) + 1) // 2
    assert len(named(svg, "second")) == len(moves) // 2
    assert len({middle(stone) for stone in named(svg, "stone")}) == len(moves)


@every_position
def test_the_last_move_is_marked_and_only_if_asked(env: Any, moves: list[int]) -> None:
    *_, last = moves
    assert not named(draw(env, moves), "last")
    svg = draw(env, moves, last=last)
    (mark,) = named(svg, "last")
    before = {middle(stone) for stone in named(draw(env, moves[:-1]), "stone")}
    now = {middle(stone) for stone in named(svg, "stone")}
    assert now - before == {middle(mark)}


@every_position
def test_nothing_is_cut_off_and_no_writing_lies_on_other_writing(env: Any, moves: list[int]) -> None:
    svg = draw(env, moves[:1], shares=np.full(env.num_actions, 1.0), heat=np.ones(env.num_actions), last=moves[0])
    left, top, width, height = map(float, svg.get("viewBox", "").split())
    for element in svg.iter():
        if element.get("class") or element.tag.endswith("rect"):
            box = _box(element)
            slack = float(element.get("stroke-width", 0)) / 2
            assert box[0] - slack >= left and box[2] + slack <= left + width, element.attrib
            assert box[1] - slack >= top and box[3] + slack <= top + height, element.attrib
    texts = [_box(text) for text in (*named(svg, "percent"), *named(svg, "label"))]
    for i, (x0, y0, x1, y1) in enumerate(texts):
        assert not any(x0 < b[2] and b[0] < x1 and y0 < b[3] and b[1] < y1 for b in texts[:i])


@pytest.mark.parametrize("env", [TTT, HEX, envs.Hex(11), envs.Go(9)], ids=repr)
def test_a_cell_is_called_by_the_letter_above_and_the_number_on_its_left(env: Any) -> None:
    labels = {label.text: middle(label) for label in named(draw(env, []), "label")}
    height, width, _ = env.observation_shape
    for column in (0, width - 1):
        x, y = middle(named(draw(env, [column]), "stone")[0])
        letter_x, letter_y = labels[envs.move_name(env, column)[0]]
        assert abs(letter_x - x) <= 1 and letter_y < y
    for row in (0, height - 1):
        x, y = middle(named(draw(env, [row * width]), "stone")[0])
        number_x, number_y = labels[envs.move_name(env, row * width)[1:]]
        assert abs(number_y - y) <= 1 and number_x < x


def test_the_title_says_how_it_stands_and_is_escaped() -> None:
    assert draw(C4, [3, 3, 2])[0].text == "connect four, O to play: 2 stones of X, 1 of O"
    assert draw(TTT, [0, 3, 1, 4, 2])[0].text == "tic tac toe, X won: 3 stones of X, 2 of O"

    class Odd(envs.TicTacToe):
        name = "a < b & c"

    assert (draw(Odd(), [])[0].text or "").startswith("a < b & c, ")


def test_cells_are_where_their_moves_are() -> None:
    """Every single stone of Hex and tic-tac-toe lies where the share of its move did."""
    for env in (TTT, envs.Hex(4)):
        dots = named(draw(env, [], shares=np.ones(env.num_actions)), "share")
        stones = [named(draw(env, [action]), "stone")[0] for action in range(env.num_actions)]
        assert list(map(middle, dots)) == list(map(middle, stones))
        # Rows go down, columns to the right, and those of Hex step to the right.
        (x0, y0), (x1, y1), (x2, y2) = middle(stones[0]), middle(stones[1]), middle(stones[int(env.num_actions**0.5)])
        assert x1 > x0 and y1 == y0 and y2 > y0
        assert (x2 > x0) == isinstance(env, envs.Hex)


def test_connect_four_stands_on_its_lowest_row() -> None:
    svg = draw(C4, [3, 3, 2], shares=np.full(7, 0.1))
    (x0, y0), (x2, y2) = map(middle, named(svg, "first"))
    ((x1, y1),) = map(middle, named(svg, "second"))
    assert x1 == max(x0, x2) and y1 < y0 == y2
    assert all(middle(dot)[1] < min(middle(hole)[1] for hole in named(svg, "hole")) for dot in named(svg, "share"))
    assert [label.text for label in named(svg, "label")] == list("0123456")


def test_shares_are_dots_of_that_area_with_their_percentages() -> None:
    shares = np.array([0.5, 0.125, 0.004, 0, np.nan, 0.006, 0.36], np.float32)
    svg = draw(C4, [], shares=shares)
    area = [float(dot.get("r", 0)) ** 2 for dot in named(svg, "share")]
    np.testing.assert_allclose(np.divide(area, area[0]) / 2, [0.5, 0.125, 0.006, 0.36], rtol=2e-2)
    assert [text.text for text in named(svg, "percent")] == ["50", "12", "1", "36"]
    assert not named(draw(C4, []), "share")


def test_heat_goes_two_ways_from_the_middle_and_leaves_nan_blank() -> None:
    heat = [0.0, 0.25, 0.5, 0.75, 1.0, np.nan, 0.5]
    svg = draw(C4, [], heat=heat, shares=np.ones(7))
    tiles = named(svg, "heat")
    colours = [re.findall(r"--(\w+)", tile.get("fill", ""))[0] for tile in tiles]
    strength = [float(tile.get("fill-opacity", 1)) for tile in tiles]
    assert colours[:2] == ["low", "low"] and colours[3:5] == ["high", "high"]
    assert strength[0] == strength[4] > strength[1] == strength[3] > strength[2] == 0
    # Where a move has both, the heat is what is written.
    assert [text.text for text in named(svg, "percent")] == ["0", "25", "50", "75", "100", "100", "50"]


def test_stones_hide_what_is_told_of_their_cells() -> None:
    svg = draw(TTT, [4], shares=np.full(9, 0.1), heat=np.ones(9))
    places = {middle(tile) for tile in named(svg, "heat")}
    assert len(places) == len(named(svg, "share")) == len(named(svg, "percent")) == 8
    assert middle(named(svg, "stone")[0]) not in places


def test_the_swap_has_a_place_while_it_may_be_played() -> None:
    shares = np.append(np.zeros(25), 0.9)
    svg = draw(HEX, [3], shares=shares)
    assert [text.text for text in named(svg, "percent")] == ["90"]
    assert "swap" in {label.text for label in named(svg, "label")}
    for moves in ([], [3, 4], [3, 25]):
        svg = draw(HEX, moves, shares=shares)
        assert not named(svg, "share") and "swap" not in {label.text for label in named(svg, "label")}
    assert not named(draw(HEX, [3, 25, 4], last=25), "last")  # two stones lie there, so neither is told of
    svg = draw(HEX, [3, 25], last=25)
    assert middle(named(svg, "last")[0]) == middle(named(svg, "second")[0])


class Listed(envs.TicTacToe):
    """Three of nine moves have names, and none lies on the board."""

    action_layout = envs.ActionLayout(others=("up", "down", "far away"))


def test_moves_that_are_not_on_the_board_stand_below_it_by_their_names() -> None:
    svg = draw(Listed(), [4], shares=np.full(9, 0.1), last=4)
    names = [label.text for label in named(svg, "label")]
    assert names == ["up", "down", "far away", "3", "5", "6", "7", "8"]  # 4 has been played
    dots = [middle(dot) for dot in named(svg, "share")]
    assert len(set(dots)) == 8
    lowest = max(_box(line)[3] for line in named(svg, "line"))
    for (x, y), label in zip(dots, named(svg, "label"), strict=True):
        assert y > lowest and 0 < _box(label)[0] - x < 30 and abs(middle(label)[1] - y) <= 1
    assert not named(draw(Listed(), [4]), "label")


def test_edges_of_hex_tell_who_joins_what() -> None:
    svg = draw(envs.Hex(4), [])
    x, y = np.transpose([middle(cell) for cell in named(svg, "cell")])
    sides = {}
    for edge in named(svg, "edge"):
        (owner,) = re.findall(r"--(\w+)", edge.get("stroke", ""))
        left, top, right, bottom = _box(edge)
        sides[owner, bottom < y[1] or top > y[-1]] = (bottom - top < y[4] - y[0], right - left > x[3] - x[0])
    # Above and below all cells, flat and as wide as a row: the first player's. The others go down the slant.
    assert sides == {("first", True): (True, True), ("second", False): (False, False)}
    assert len(named(svg, "edge")) == 4
    assert [label.text for label in named(svg, "label")] == [*"abcd", *"1234"]


@pytest.mark.parametrize(
    ("size", "stars"),
    [
        (5, []),
        (8, [(2, 2), (2, 5), (5, 2), (5, 5)]),
        (9, [(2, 2), (2, 6), (4, 4), (6, 2), (6, 6)]),
        pytest.param(19, list(itertools.product((3, 9, 15), repeat=2)), marks=pytest.mark.slow),
    ],
)
def test_stones_of_go_lie_where_lines_cross(size: int, stars: list[tuple[int, int]]) -> None:
    env = envs.Go(size)
    stones = np.zeros((size, size, 2), bool)
    stones[1, 2, 0] = True
    svg = ElementTree.fromstring(to_svg(env, env.arrange(stones, 0)))
    (stone,) = (middle(stone) for stone in named(svg, "stone"))
    boxes = [_box(line) for line in named(svg, "line")]
    rows = sorted(box[1] for box in boxes if box[1] == box[3])
    columns = sorted(box[0] for box in boxes if box[0] == box[2])
    assert (len(rows), len(columns), len(boxes)) == (size, size, 2 * size)
    assert stone == (columns[2], rows[1])
    assert sorted(middle(star) for star in named(svg, "star")) == sorted((columns[c], rows[r]) for r, c in stars)
    assert {box[2] - box[0] for box in boxes} == {0, columns[-1] - columns[0]}


def test_a_page_can_restyle_every_colour() -> None:
    svg = to_svg(C4, playing.play(C4, [3, 3]), shares=np.ones(7), heat=np.ones(7), last=3)
    colours = re.findall(r'(?:fill|stroke)="([^"]*)"', svg)
    assert {"--board", "--line", "--first", "--second", "--ink"} <= set(re.findall(r"--\w+", " ".join(colours)))
    assert all(re.fullmatch(r"none|var\(--\w+, #\w{6}\)", colour) for colour in colours)


@pytest.mark.parametrize("name", ["shares", "heat"])
@pytest.mark.parametrize(("numbers", "message"), [(np.ones(8), r"shape \(8,\)"), ([2.0] * 9, "outside 0 to 1")])
def test_wrong_numbers_are_refused(name: str, numbers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}` has .*{message}"):
        draw(TTT, [], **{name: numbers})


@pytest.mark.parametrize(("env", "last"), [(TTT, 5), (C4, 0), (HEX, 2), (TTT, 9), (TTT, -1)])
def test_a_last_move_that_left_no_stone_is_refused(env: Any, last: int) -> None:
    with pytest.raises(ValueError, match=f"`last` is {last}, "):
        draw(env, [4, 3], last=last)


def test_a_batch_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`state` is a batch of shape \(3,\)"):
        to_svg(TTT, jax.vmap(TTT.init)(jax.random.split(jax.random.key(0), 3)))


# --- Numbered tiles

TILES = "2 4 8 16\n32 64 128 256\n512 1024 2048 4096\n8192 16384 . ."


@pytest.mark.parametrize(
    ("env", "text"), [(envs.make("2048"), TILES), (envs.SlidingPuzzle(), "1 2 3\n4 5 6\n. 7 8")], ids=["2048", "puzzle"]
)
def test_tiles_lie_on_their_cells_with_their_numbers(env: Any, text: str) -> None:
    svg = ElementTree.fromstring(to_svg(env, envs.from_text(env, text)))
    numbers, tiles = named(svg, "number"), named(svg, "tile")
    cells = [word for line in text.splitlines() for word in line.split()]
    assert [number.text for number in numbers] == [word for word in cells if word != "."]
    # A tile is a pale square and a coloured one over it; its number lies inside.
    shades = [float(tile.get("fill-opacity", "")) for tile in tiles]
    assert shades[::2] == [1.0] * len(numbers) and shades[1::2] == sorted(shades[1::2]) and len(set(shades)) > 7
    places = [middle(tile) for tile in tiles[::2]]
    assert places == [(40 * (i % env.columns), 40 * (i // env.columns)) for i, word in enumerate(cells) if word != "."]
    for tile, number in zip(tiles[::2], numbers, strict=True):
        outer, inner = _box(tile), _box(number)
        assert outer[0] < inner[0] and inner[2] < outer[2] and outer[1] < inner[1] and inner[3] < outer[3]
    assert not named(svg, "stone")


def test_moves_of_tiles_stand_below_the_board_with_their_shares() -> None:
    env = envs.make("2048")
    svg = ElementTree.fromstring(to_svg(env, envs.from_text(env, TILES), shares=[0.1, 0.2, 0.3, 0.4], last=0))
    assert [label.text for label in named(svg, "label")] == ["right", "down"]
    assert [text.text for text in named(svg, "percent")] == ["30", "40"]
    assert (svg[0].text or "").startswith("2048, to play: numbered tiles")
