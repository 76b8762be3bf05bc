"""Signals to a process of its own that looks at `stop` now and then, or never."""

import signal
import subprocess
import sys

import pytest

from train.signals import Stop

PROGRAM = """
import sys, time
from train.signals import stop_on_signals

with stop_on_signals(lambda text: print(text, flush=True), seconds=float(sys.argv[2])) as stop:
    print("ready", flush=True)
    while sys.argv[1] == "deaf" or stop.signal is None:
        time.sleep(0.01)
print("saved", flush=True)
sys.exit(stop.exit_status)
"""


def start(kind: str, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, kind, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_lets_the_block_end(number: signal.Signals, status: int) -> None:
    process = start("hearing", 600)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert "Stopping" in said and said.endswith("saved\n")
    assert process.returncode == status


def test_the_first_of_two_signals_is_the_reason() -> None:
    stop = Stop()
    assert stop.exit_status == 0
    for number in (signal.SIGINT, signal.SIGTERM):
        stop.note(number)
    assert stop.exit_status == 130


def test_a_second_one_leaves_at_once() -> None:
    process = start("deaf", 600)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None and "Stopping" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert "Left at once (once more)" in said and process.returncode == 130


def test_the_process_leaves_when_the_time_is_over() -> None:
    process = start("deaf", 0.2)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert "Left at once (" in said and "the last checkpoint stands" in said
    assert process.returncode == 143
