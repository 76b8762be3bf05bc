"""Files of a run that were damaged, or never were of a run."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from train import config, record, run_folder
from train.presets import debug
from train.progress import Log
from train.run_state import Status

ITERATION: dict[str, Any] = {"kind": "iteration", "iteration": 1, "minutes": 0.5, "loss": 2, "seconds": {"play": 1.5}}
MATCH: dict[str, Any] = {
    "kind": "match", "iteration": 1, "minutes": 0.6, "first": "agent@1", "second": "uct:4", "wins": 5, "draws": 1,
    "losses": 2, "score": 0.6875, "low": 0.3, "high": 0.9, "final": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"config": {"game": "con', "Unterminated string"),
        (b"\xff\xfe\x00", "decode"),
        (b"[" * 100_000, "recursion"),
        (b"[]", "not made of objects"),
        (b"null", "not made of objects"),
        (b'{"layers": 12}', "not made of objects"),
        (b'{"model": {}}', "The config is NoneType"),
        (b'{"config": []}', "not made of objects"),
        (b'{"config": {}, "device": []}', "not made of objects"),
        (b'{"config": {"layers": 12}}', r"unknown fields \['layers'\]"),
        (b'{"config": {"game": "hex"}}', "lacks the fields"),
        (json.dumps({"config": config.to_json(debug()) | {"batch": 2.5}}).encode(), "`batch` is 2.5"),
    ],
)
def test_a_damaged_or_foreign_config_is_named(contents: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / run_folder.CONFIG
    path.write_bytes(contents)
    for read in (run_folder.read_config, run_folder.read, run_folder.changes, record.read):
        with pytest.raises(
            ValueError, match=rf"{path}' cannot be used. (.|\n)*{reason}(.|\n)*bring it back from a copy"
        ):
            read(tmp_path)


@pytest.mark.parametrize("line", [ITERATION, ITERATION | {"loss": None}, MATCH, {"kind": "profile", "by": []}])
def test_what_a_run_writes_is_read(line: dict[str, Any]) -> None:
    assert run_folder.read_line(json.dumps(line)) == line


def without(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in line.items() if other != name}


DAMAGED = [
    *("", "\0", "null", "[]", "3", "{", "[" * 100_000, '{"kind": "match"}', '{"kind": []}'),
    *(json.dumps(without(ITERATION, name)) for name in ("iteration", "minutes", "seconds")),
    *(json.dumps(ITERATION | {name: "1"}) for name in ("iteration", "minutes", "loss", "seconds")),
    json.dumps(ITERATION | {"seconds": {"play": "long"}}),
    *(json.dumps(without(MATCH, name)) for name in MATCH if name != "kind"),
    *(json.dumps(MATCH | {name: []}) for name in MATCH),
    *(json.dumps(ITERATION | {"minutes": value}) for value in (math.inf, math.nan, 1e308, -1.0, 10**400)),
    json.dumps(ITERATION | {"loss": -1e308}),
    *(json.dumps(MATCH | counts) for counts in ({"wins": 0, "draws": 0, "losses": 0}, {"wins": -3, "draws": 5})),
    json.dumps(MATCH | {"first": "\ud800"}),
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_of_the_metrics_is_left_out_by_all_that_read_them(line: str, tmp_path: Path) -> None:
    folder = run_folder.create(dataclasses.replace(debug(), runs=str(tmp_path)))
    path = folder / run_folder.METRICS
    sound = "".join(json.dumps(fields) + "\n" for fields in (ITERATION, MATCH))
    path.write_bytes(line.encode() + b"\n\xff\n" + sound.encode())
    read = record.read(folder)
    assert (read.iterations, read.matches, read.unread) == ([ITERATION], [MATCH], 2)
    assert (read.iteration, read.minutes, read.verdict) == (1, 0.6, MATCH)
    run_folder.cut_back(folder, 1)
    assert path.read_text() == sound
    with Log(folder, read.config, Status()):  # writes the events of TensorBoard anew
        pass
