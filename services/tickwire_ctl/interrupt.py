"""Ctrl-C, SIGTERM and SIGHUP as a flag, so that every ending takes the same way out.

Imports next to nothing: it is there before the second that the imports of a command take.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Set by the first of these os_signals; from its creation on the process's handler for them."""

    def __init__(self) -> None:
        """Install the handlers; call from the main thread."""
        self._event = threading.Event()
        self._immediate = False
        self.count = 0
        """How often an end was asked for; from the second time on it should be a quick one."""
        for os_signal in (signal.SIGINT, signal.SIGTERM):
            signal.signal(os_signal, self._handle)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup(1) ignores it
            signal.signal(signal.SIGHUP, self._handle)

    @property
    def requested(self) -> bool:
        """Whether an end was asked for."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for it at most so long; say whether it came."""
        return self._event.wait(timeout_s)

    def hurried(self) -> bool:
        """Say whether an end was asked for more than once."""
        return self.count > 1

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Let a request raise KeyboardInterrupt within, also one that came before."""
        self._immediate = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._immediate = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._event.set()
        if self._immediate:
            raise KeyboardInterrupt
