import io
import json
from pathlib import Path

from rich.console import Console

from train.progress import Log

METRICS = {
    "iteration": 1,
    "loss": 1.5,
    "policy_kl": 0.25,
    "value_loss": 0.5,
    "games": 0,
    "game_length": float("nan"),
}


def log_to(path: Path, terminal: bool) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with Log(path, 3, console) as log:
        log.say("[starting] 10 %")
        log.iteration(METRICS, {"play": 1.25, "learn": 0.5})
    return text.getvalue()


def test_lines_are_plain_in_a_pipe_and_metrics_are_json(tmp_path: Path) -> None:
    text = log_to(tmp_path / "metrics.jsonl", terminal=False)
    lines = text.splitlines()
    assert lines[0] == "[starting] 10 %"
    assert lines[1].startswith("iteration   1/3") and "1.8 s" in lines[1] and "loss 1.500" in lines[1]
    assert len(lines) == 2
    record = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert record == METRICS | {"game_length": None, "seconds": {"play": 1.25, "learn": 0.5}}


def test_a_terminal_also_gets_a_bar(tmp_path: Path) -> None:
    text = log_to(tmp_path / "metrics.jsonl", terminal=True)
    assert "training" in text and "0/3" in text and "loss 1.500" in text
