"""What a run tells as it goes: text and a status for people on the terminal, lines of JSON for programs.

The numbers of each such line are also scalars for TensorBoard. On a terminal the last two lines of text show where
the run is; in a file or a pipe there is no status.
"""

import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from tensorboardX import SummaryWriter

from train import names, run_folder
from train.config import Config
from train.run_state import Status
from train.score import Score


class Log:
    """Prints as a run goes, and writes its metrics; use it in a `with`. `status` is where the run begins."""

    def __init__(self, folder: Path, config: Config, status: Status, console: Console | None = None):
        self._console = console or Console()
        self._config = config
        self._scalars = _events(folder, status.minutes)
        self._file = (folder / run_folder.METRICS).open("a")
        self._started = status.closed
        self._minutes = [status.minutes]  # at the end of each iteration of this sitting
        self._bar = _Bar(self._console)
        self._task = self._bar.add_task("starting", total=config.iterations, completed=status.closed, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        self._file.close()
        self._scalars.close()

    def restore(self) -> None:
        """Give the terminal back as it was, cursor and all: for a process that leaves without closing this."""
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def phase(self, name: str) -> None:
        """Show what the run is doing now."""
        self._bar.update(self._task, description=name)

    def iteration(self, line: Mapping[str, Any]) -> None:
        """Report one iteration."""
        self._write(line)
        self._minutes.append(line["minutes"])
        play = line["seconds"]["play"]
        games, evaluations = line["games"] / play, line["evaluations"] / line["iteration"] / play
        self.say(
            f"iteration {line['iteration']:>3}/{self._config.iterations}  {sum(line['seconds'].values()):5.1f} s"
            f"  loss {line['loss']:.3f}  policy KL {line['policy_kl']:.3f}"
            f"  value error {line['value_loss']:.3f}"
            f"  {line['games']} games ended, of {line['game_length']:.1f} plies"
        )
        self._bar.facts |= {
            "speed": f"{_short(games)} games/s, {_short(evaluations)} evaluations/s",
            "loss": f"loss {line['loss']:.2f} (policy {line['policy_loss']:.2f}, value {line['value_loss']:.2f})",
        }
        self._bar.update(self._task, completed=line["iteration"], left=self._time_left())

    def match(self, line: Mapping[str, Any]) -> None:
        """Report one match."""
        self._write(line)
        score = Score.of(line)
        self.say(f"  {line['first']} against {line['second']}: {score}")
        if names.is_uct(line["second"]):  # the yardstick: against others the strength is not that of the run
            self._bar.facts["strength"] = f"{score.mean:.0%} against {line['second']}"

    def _write(self, line: Mapping[str, Any]) -> None:
        """Write one line of the metrics; numbers that JSON lacks become null."""
        finite = {name: None if _not_finite(value) else value for name, value in line.items()}
        self._file.write(json.dumps(finite) + "\n")
        self._file.flush()
        _add(self._scalars, finite, time.time())
        self._scalars.flush()

    def _time_left(self) -> str:
        """Estimate the time to the end from the iterations of this sitting, but for the first, which compiles."""
        iterations = len(self._minutes) - 2
        if iterations < 1:
            return ""
        each = (self._minutes[-1] - self._minutes[1]) / iterations
        to_come = self._config.iterations - self._started - iterations - 1
        minutes = min(each * to_come, max(self._config.minutes - self._minutes[-1], 0))
        return f"about {_clock(60 * minutes)} left"


class _Bar(Progress):
    """A bar of the iterations with the phase in front, and under it what is known of the newest one."""

    def __init__(self, console: Console):
        self.facts: dict[str, str] = {}
        super().__init__(
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self.facts:
            yield Text(" · ".join(self.facts.values()), style="dim", overflow="ellipsis", no_wrap=True)


class Stopwatch:
    """Measures laps of wall clock in seconds, one after the other without a gap."""

    def __init__(self) -> None:
        self._lap = time.monotonic()

    @property
    def elapsed(self) -> float:
        """The seconds since the last lap ended; the one in progress goes on."""
        return time.monotonic() - self._lap

    def lap(self) -> float:
        """End the lap in progress, and begin the next: the seconds it took."""
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before


def _events(folder: Path, minutes: float) -> SummaryWriter:
    """Open the events of a run for TensorBoard, written anew from its metrics so far.

    They are written by a thread with a queue, so a run that is killed may lose the last ones, and it may have
    written some that are no part of the run it is resumed as. The metrics are neither short nor long by any.
    """
    path = folder / run_folder.TENSORBOARD
    shutil.rmtree(path, ignore_errors=True)
    events = SummaryWriter(str(path), purge_step=1)  # a TensorBoard that is looking on forgets the old ones
    began = time.time() - 60 * minutes
    for line in run_folder.read_metrics(folder):
        if line is not None:
            _add(events, line, began + 60 * line["minutes"])
    return events


def _add(events: SummaryWriter, line: Mapping[str, Any], now: float) -> None:
    for name, value in _scalars(line):
        events.add_scalar(name, value, line["iteration"], walltime=now)


def _scalars(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Name a line's numbers for TensorBoard, which shows those of one prefix together."""
    if line["kind"] == "match":
        yield f"score/{line['second']}".replace(":", "_"), line["score"]
        return
    rest = {name: value for name, value in line.items() if name not in ("kind", "iteration", "seconds")}
    for prefix, values in (("training", rest), ("seconds", line["seconds"])):
        for name, value in values.items():
            if value is not None:
                yield f"{prefix}/{name}", value


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _short(number: float) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else f"{number:.0f}"


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
