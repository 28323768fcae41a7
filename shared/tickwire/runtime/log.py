"""Structured logs that never block the process: lines go through a bounded queue to a thread that writes them.

I1  Logging a line costs a queue insertion, however slow the sink is.
I2  A line that finds the queue full is dropped and counted; the count is written as soon as the sink takes lines again.
I3  Ending the process waits for the sink at most `FLUSH_TIMEOUT_S`.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
import structlog

QUEUE_LINES = 4096
FLUSH_TIMEOUT_S = 1.0

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class LogWriter:
    """Writes lines to a file descriptor from a thread of its own."""

    def __init__(self, fd: int, capacity: int = QUEUE_LINES) -> None:
        """Start the thread."""
        self._fd = fd
        self._lines: queue.Queue[str] = queue.Queue(capacity)
        self.dropped = 0
        self._reported = 0
        self._thread = threading.Thread(target=self._drain, name="log-writer", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Take a line, or drop and count it; never blocks (I1, I2)."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Wait at most `timeout_s` until everything is written; say whether it is (I3)."""
        with self._lines.all_tasks_done:
            return self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, timeout_s)

    def _drain(self) -> None:
        while True:
            line = self._lines.get()
            self._put(line + "\n")
            if self.dropped != self._reported:
                dropped, self._reported = self.dropped - self._reported, self.dropped
                self._put(render_json({"event": "log_dropped", "level": "warning", "dropped_lines": dropped}) + "\n")
            self._lines.task_done()

    def _put(self, text: str) -> None:
        rest = memoryview(text.encode(errors="backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                return  # the reader is gone: there is nobody to tell


class _Logger:
    # What structlog calls with the rendered line; one method a level.
    def __init__(self, write: Callable[[str], None]) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = self.exception = self.msg = write


def render_json(values: dict[str, Any]) -> str:
    """Return one line of JSON; what msgspec cannot encode is written as its text. Never raises."""
    try:
        return msgspec.json.encode(values, enc_hook=_plain).decode()
    except Exception:  # noqa: BLE001 - a line about a strange value must not be what ends a service
        return msgspec.json.encode({_text(key): _text(value) for key, value in values.items()}).decode()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _text(value: Any) -> str:
    # Lone surrogates (file names that are not UTF-8), cycles, a broken __str__.
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except Exception as error:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}: {type(error).__name__}>"


def configure(
    log_format: Literal["json", "console"], level: str, *, fd: int = 1, colours: bool | None = None
) -> LogWriter:
    """Set structlog up for this process; return the writer, to flush at the end.

    Args:
        log_format: One JSON object a line, or text for people.
        level: Lowest level that is written.
        fd: Where lines go.
        colours: Whether console lines are coloured; None: when `fd` is a terminal.
    """
    writer = LogWriter(fd)

    def render(_logger: Any, _method: str, values: Any) -> str:
        return render_json(dict(values))

    renderer: Any = render
    if log_format == "console":
        renderer = structlog.dev.ConsoleRenderer(colors=os.isatty(fd) if colours is None else colours)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _Logger(writer.write),
        cache_logger_on_first_use=True,
    )
    return writer
