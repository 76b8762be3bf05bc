"""Signals to a process of its own that looks at `stop` now and then, or never."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from train.signals import ECHO, Stop

PROGRAM = """
import sys, time
from train.signals import stop_on_signals

def say(text):
    print(text, flush=True)

with stop_on_signals(say, lambda: say("restored"), seconds=float(sys.argv[2])) as stop:
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
    assert "Stopping" in said and said.endswith("saved\n") and "restored" not in said
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
    time.sleep(2 * ECHO)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert "restored\nLeft at once (once more)" in said and process.returncode == 130


def test_a_signal_that_comes_twice_at_once_is_one() -> None:
    process = start("deaf", 4 * ECHO)
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None and "Stopping" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert "Left at once (the stage took longer" in said


def test_the_process_leaves_when_the_time_is_over() -> None:
    process = start("deaf", 0.2)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert "restored\nLeft at once (" in said and "the last checkpoint stands" in said
    assert process.returncode == 143


ON_A_TERMINAL = """
import sys, time
from pathlib import Path
from train.presets import debug
from train.progress import Log
from train.run_state import Status
from train.signals import stop_on_signals

with Log(Path(sys.argv[1]), debug(), Status()) as log, stop_on_signals(log.say, log.restore):
    log.phase("deaf")
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
"""


def test_a_process_that_leaves_at_once_shows_the_cursor_again(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", ON_A_TERMINAL, str(tmp_path)], stdout=its, stderr=its)
    os.close(its)
    said = b""
    for awaited in (b"ready", b"Stopping"):
        while awaited not in said:
            said += os.read(ours, 4096)
        time.sleep(2 * ECHO)
        process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # which is how Linux tells that the other side is closed
        while more := os.read(ours, 4096):
            said += more
    os.close(ours)
    assert process.wait(timeout=60) == 130
    assert b"Left at once" in said
    assert said.count(b"\x1b[?25l") > 0 and said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")


@pytest.mark.parametrize("deaf_to", ["Stopping", "Left"])
def test_a_process_leaves_even_if_nobody_reads_what_it_says(deaf_to: str) -> None:
    program = f"""
import time
from train.signals import stop_on_signals

def say(text):
    if text.startswith("{deaf_to}"):
        raise BrokenPipeError

with stop_on_signals(say, lambda: None, seconds=0.1):
    print("ready", flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
