"""Ctrl-C and SIGTERM: the run is asked to stop at the next good moment, and does not outstay its time.

Where the stage in progress takes longer than that, the process leaves without saving and the last checkpoint stands.
Python runs its own signal handlers only when the compiled code in progress has come back, which can take longer
than whoever sent the signal will wait. So a thread of its own reads the numbers of the signals from a pipe.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator

SECONDS = 8.0  # from the first signal on, saving included; systems kill what is still there after 10
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ECHO = 0.5  # seconds: what signals a process and then its group, as `timeout` does, means one signal, not two
_DONE = 0  # what is written to the pipe to end the thread; no signal has this number


class Stop:
    """Tells which signal has come, if any."""

    signal: int | None = None

    def note(self, number: int) -> None:
        """Take in a signal; the first one counts."""
        if self.signal is None:
            self.signal = number

    @property
    def exit_status(self) -> int:
        """What a shell would report: 130 for Ctrl-C, 143 for SIGTERM, 0 if no signal came."""
        return 0 if self.signal is None else 128 + self.signal


@contextlib.contextmanager
def stop_on_signals(
    say: Callable[[str], None], restore: Callable[[], None], seconds: float = SECONDS
) -> Iterator[Stop]:
    """Note the first signal, for the block to look at; leave the process at once on a second, or after `seconds`.

    Leaving at once is safe where a kill is; `restore` is called before, for what would outlast the process, such as
    a hidden cursor. Both `say` and `restore` are called in another thread.
    Outside the main thread, which alone gets signals, nothing is done.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    thread = threading.Thread(target=_watch, args=(reading, stop, say, restore, seconds), daemon=True)
    thread.start()
    fd_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda number, _: stop.note(number)) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(fd_before)
        os.write(writing, bytes([_DONE]))
        thread.join()
        os.close(reading)
        os.close(writing)


def _watch(pipe: int, stop: Stop, say: Callable[[str], None], restore: Callable[[], None], seconds: float) -> None:
    number = _read(pipe)
    if number == _DONE:
        return
    stop.note(number)
    with contextlib.suppress(OSError):  # nobody may be reading any more
        say("Stopping: the run is saved as soon as the stage in progress is over. Once more stops at once.")
    began, again = time.monotonic(), False
    while not again and (left := began + seconds - time.monotonic()) > 0 and select.select([pipe], [], [], left)[0]:
        heard = os.read(pipe, 1)[0]
        if heard == _DONE:
            return
        again = heard in SIGNALS and time.monotonic() > began + ECHO
    reason = "once more" if again else f"the stage took longer than {seconds:g} s more"
    try:
        restore()
        say(f"Left at once ({reason}): the last checkpoint stands, what came after it is made again on resuming.")
    finally:
        os._exit(128 + number)


def _read(pipe: int) -> int:
    """Wait for the number of the next signal."""
    while True:
        number = os.read(pipe, 1)[0]
        if number == _DONE or number in SIGNALS:
            return number
