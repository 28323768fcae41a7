"""Ctrl-C and SIGTERM as a flag, so that every ending takes the same way out."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Interrupt:
    """Set by the first SIGINT or SIGTERM; the process's handlers for both."""

    def __init__(self) -> None:
        """Install the handlers; call from the main thread."""
        self._event = threading.Event()
        for os_signal in (signal.SIGINT, signal.SIGTERM):
            signal.signal(os_signal, self._handle)

    @property
    def requested(self) -> bool:
        """Whether an end was asked for."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for it at most so long; say whether it came."""
        return self._event.wait(timeout_s)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._event.set()
