"""Lines that could not be read, as log events: each named, but not more than a few a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PER_SECOND = 5


class Complaints:
    """A rate-limited log of unreadable lines; what is held back is counted in the next line. Any one thread."""

    def __init__(self, log: Any, clock: Callable[[], float]) -> None:
        """Log warnings to `log`; `clock` gives seconds."""
        self._log = log
        self._clock = clock
        self._window = 0.0
        self._in_window = 0
        self._held_back = 0

    def __call__(self, place: str, reason: str) -> None:
        """Report one line."""
        now = self._clock()
        if now - self._window >= 1.0:
            self._window = now
            self._in_window = 0
        if self._in_window == PER_SECOND:
            self._held_back += 1
            return
        self._in_window += 1
        self._log.warning("line_unreadable", place=place, reason=reason, held_back=self._held_back)
        self._held_back = 0
