import dataclasses
import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from train.presets import debug
from train.progress import Log
from train.run_state import Status

CONFIG = dataclasses.replace(debug(), iterations=4)
ITERATION = {
    "kind": "iteration",
    "iteration": 1,
    "minutes": 0.5,
    "evaluations": 3000,
    "loss": 1.5,
    "policy_loss": 1.0,
    "policy_kl": 0.25,
    "value_loss": 0.5,
    "games": 0,
    "game_length": float("nan"),
    "seconds": {"play": 1.25, "learn": 0.5},
}
MATCH = {
    "kind": "match",
    "iteration": 1,
    "minutes": 0.6,
    "first": "agent@1",
    "second": "uct:100",
    "wins": 6,
    "draws": 1,
    "losses": 1,
    "score": 0.8125,
    "low": 0.467,
    "high": 0.955,
}


def log_to(folder: Path, *, terminal: bool, config: Any = CONFIG, iterations: int = 1) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with Log(folder, config, Status(), console) as log:
        log.say("[starting] 10 %")
        log.phase("self-play")
        log._bar.refresh()
        for number in range(1, iterations + 1):
            log.iteration(ITERATION | {"iteration": number, "minutes": number / 2, "evaluations": 3000 * number})
        log.match(MATCH)
        for other in ("agent@0", "random"):
            log.match(MATCH | {"second": other})
        log.phase("learning")
        log._bar.refresh()
    return text.getvalue()


def test_lines_are_plain_in_a_pipe_and_metrics_are_json(tmp_path: Path) -> None:
    lines = log_to(tmp_path, terminal=False).splitlines()
    assert lines[0] == "[starting] 10 %"
    assert lines[1].startswith("iteration   1/4") and "1.8 s" in lines[1] and "loss 1.500" in lines[1]
    assert (  # also where `:100:` could be read as a picture
        lines[2].strip().startswith("agent@1 against uct:100: 81.2% (95 % interval 46.7% to 95.5%) over 8 games: 6 won")
    )
    assert len(lines) == 5
    told = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert told[:2] == [ITERATION | {"game_length": None}, MATCH] and len(told) == 4


def test_a_terminal_also_shows_the_phase_and_what_is_known(tmp_path: Path) -> None:
    text = log_to(tmp_path, terminal=True)
    for part in ("self-play", "learning", "1/4", "2.4k evaluations/s", "loss 1.50", "81% against uct:100"):
        assert part in text, part
    assert "81% against random" not in text  # only UCT is a yardstick
    assert "left" not in text  # the first iteration compiles and says nothing of the others


def test_the_time_left_counts_the_iterations_to_come_and_the_limit(tmp_path: Path) -> None:
    assert "about 1:00 left" in log_to(tmp_path, terminal=True, iterations=2)  # two of half a minute
    limited = dataclasses.replace(CONFIG, minutes=1.25)
    assert "about 0:15 left" in log_to(tmp_path, terminal=True, config=limited, iterations=2)


def test_a_second_sitting_adds_to_the_metrics(tmp_path: Path) -> None:
    for _ in range(2):
        log_to(tmp_path, terminal=False)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 8
