"""What a run tells: lines for people on the terminal, one line of JSON per iteration for programs.

On a terminal a bar shows where the run is; in a file or a pipe there are only the lines.
"""

import contextlib
import json
import math
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Log:
    """Prints as a run goes, and writes its metrics; use it in a `with`."""

    def __init__(self, metrics: Path, iterations: int, console: Console | None = None):
        self._console = console or Console()
        self._file = metrics.open("w")
        self._iterations = iterations
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=iterations)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._file.close()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def iteration(self, metrics: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
        """Report one iteration; its seconds stand apart, so that all else repeats with the seed."""
        self.write(dict(metrics) | {"seconds": {name: round(value, 3) for name, value in seconds.items()}})
        self.say(
            f"iteration {metrics['iteration']:>3}/{self._iterations}  {sum(seconds.values()):5.1f} s"
            f"  loss {metrics['loss']:.3f}  policy KL {metrics['policy_kl']:.3f}"
            f"  value error {metrics['value_loss']:.3f}"
            f"  {metrics['games']} games ended, of {metrics['game_length']:.1f} plies"
        )
        self._bar.update(self._task, completed=metrics["iteration"])

    def write(self, fields: Mapping[str, Any]) -> None:
        """Append one line of JSON; numbers that JSON lacks become null."""
        finite = {name: None if _not_finite(value) else value for name, value in fields.items()}
        self._file.write(json.dumps(finite) + "\n")
        self._file.flush()


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


class Interrupt:
    """Tells whether Ctrl-C was pressed."""

    pressed = False


@contextlib.contextmanager
def deferred_interrupt(log: Log) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a mark to look at between iterations; a second one interrupts at once."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may handle signals
        return
    before = signal.getsignal(signal.SIGINT)

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupt.pressed = True
        signal.signal(signal.SIGINT, before)
        log.say("Stopping after this iteration, the agent is kept; press Ctrl-C again to stop at once.")

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
