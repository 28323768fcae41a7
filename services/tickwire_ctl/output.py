"""What a child process writes: handed on line by line, the last lines kept for the message about its end."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

import msgspec

LAST_LINES = 5
_LINE_BYTES = 65_536


class Output:
    """Reads a child's output in a thread of its own until the child ends.

    A sink that does not take the lines holds the child's pipe back; the child then drops and counts lines.
    """

    def __init__(self, stream: IO[bytes], sink: int) -> None:
        """Start reading.

        Args:
            stream: The child's output; closed here.
            sink: File descriptor that the lines are handed on to.
        """
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._thread = threading.Thread(target=self._read, args=(stream, sink), name="child-output", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait at most so long until everything that an ended child wrote is handed on."""
        self._thread.join(timeout_s)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines so far, without their ends."""
        return tuple(line.decode(errors="replace").rstrip() for line in tuple(self._last))

    def _read(self, stream: IO[bytes], sink: int) -> None:
        with stream:
            while line := stream.readline(_LINE_BYTES):
                self._last.append(line)
                _put(sink, line)


def reason_in(lines: Sequence[str]) -> str:
    """Return the newest error that lines of a log state, or the lines as they are where none does."""
    for line in reversed(lines):
        try:
            error = msgspec.json.decode(line, type=dict[str, object]).get("error")
        except msgspec.DecodeError:
            continue
        if error is not None:
            return str(error)
    return "\n".join(lines)


def _put(sink: int, line: bytes) -> None:
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(sink, rest) :]
    except OSError:
        return  # nobody reads any more: the lines are kept, not shown
