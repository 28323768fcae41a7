"""The progress line of the compile pass: shown only when there is something to compile."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

_PLAIN_EVERY_S = 2.0


class CompileLine:
    """A `CompileProgress` that rewrites one line on a terminal, or writes a line now and then elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream
        self._terminal = stream.isatty()
        self._shown_s = float("-inf")
        self._shown = False

    def __call__(self, done: int, total: int, name: str) -> None:
        """Show how far it is."""
        now_s = time.monotonic()
        if not self._terminal and now_s - self._shown_s < _PLAIN_EVERY_S and done < total:
            return
        self._shown = True
        self._shown_s = now_s
        text = f"compiled {done} of {total} kernel modules (once)  {name}"
        self._stream.write(f"\r\x1b[2K{text}" if self._terminal else f"{text}\n")
        self._stream.flush()

    def __enter__(self) -> CompileLine:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the line."""
        if self._shown and self._terminal:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
