"""The benchmarks measure what they say: every contestant builds the same trees, and the tables read well."""

import mctx
import numpy as np
import pytest

import jaxmcts.mctx
from tests.bench import contestants, perfect, report, timing
from tests.bench.world import Cell

SHARP = Cell(batch=8, actions=9, simulations=24)
FLAT = Cell(batch=8, actions=9, simulations=24, scale=3.0, fpu=0.0)


@pytest.mark.parametrize("own_transform", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_mctx_builds_the_same_trees_under_its_names_too(own_transform: bool) -> None:
    ours = contestants.jaxmcts_search(FLAT)()
    for names in (mctx, jaxmcts.mctx):
        np.testing.assert_array_equal(ours, contestants.mctx_search(FLAT, names, own_transform)())


@pytest.mark.slow  # needs a C++ compiler, which nothing else in the project does
@pytest.mark.parametrize("cell", [SHARP, FLAT], ids=lambda cell: cell.label)
def test_the_yardstick_builds_the_same_trees(cell: Cell) -> None:
    visits = contestants.jaxmcts_search(cell)()
    np.testing.assert_array_equal(visits, contestants.yardstick_search(cell)())
    np.testing.assert_array_equal(visits, contestants.yardstick_search_by_tree(cell)())


def test_a_ratio_compares_rounds() -> None:
    seconds = {"one": [2.0, 20.0, 4.0], "other": [1.0, 10.0, 1.0], "once": [8.0]}
    times = {name: [timing.Spent(wall=s, processor=s * s) for s in rounds] for name, rounds in seconds.items()}
    assert timing.ratio(times, "one", "other") == 2.0
    assert timing.ratio(times, "once", "one") == 2.0
    assert timing.ratio(times, "one", "other", "processor") == 4.0


def test_table() -> None:
    rows = [{"cell": "a", "visits/s": 12345}, {"cell": "bb", "same": True}]
    assert report.table(rows) == "cell  visits/s  same\na     12,345\nbb              True"


def test_tic_tac_toe_is_solved() -> None:
    positions = perfect.positions()
    assert (len(positions), perfect.value("." * 9)) == (4520, 0)
    assert sum(perfect.value(board) >= 0 for board in positions) == 3888
    assert perfect.value("XX.OO....") == 1 and perfect.value("X...O...X") == 0
