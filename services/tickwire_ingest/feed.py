"""What every venue's feed is: it takes frames and writes to the desk, and answers for what it cannot read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tickwire.records import GapReason
from tickwire_ingest.desk import Desk
from tickwire_ingest.frames import Frame
from tickwire_ingest.kernels.decimals import MALFORMED, NOT_A_MULTIPLE, TOO_LARGE
from tickwire_ingest.kernels.levels import FULL

Complaint = Callable[[str, str], None]
"""Told (place as `file:line`, reason) of each line that could not be read."""

REASONS = {
    MALFORMED: "not a positive decimal number in quotes",
    NOT_A_MULTIPLE: "finer than the instrument's increment",
    TOO_LARGE: "too large for 63 bits of increments",
    FULL: "more levels than one event may have",
}


class Feed(ABC):
    """One capture's or connection's state. `take` never raises for what a venue sends."""

    venue: str

    def __init__(self, desk: Desk, path: Path, complain: Complaint) -> None:
        """Write to `desk`; `path` names the source in complaints."""
        self.desk = desk
        self.path = path
        self._complain = complain
        self._unknown: set[str] = set()
        prefix = f"{self.venue}:"
        self.symbol_ids = {
            instrument.name: symbol_id
            for symbol_id, instrument in enumerate(desk.symbols)
            if instrument.label.startswith(prefix)
        }

    @abstractmethod
    def take(self, frame: Frame) -> None:
        """Turn one frame into ticks."""

    @abstractmethod
    def restart(self) -> None:
        """Forget all synchronisation: a new connection, or the capture from its start."""

    def symbol_of(self, name: str) -> int | None:
        """Return the id of a venue's symbol; one that is not configured is counted, and reported once."""
        symbol_id = self.symbol_ids.get(name)
        if symbol_id is None:
            self.desk.count("unknown_symbols")
            if name not in self._unknown:
                self._unknown.add(name)
                self._complain(str(self.path), f"symbol {self.venue}:{name} is not in [[symbols]]")
        return symbol_id

    def corrupt(self, frame: Frame, reason: str) -> None:
        """Count and name a line that cannot be read."""
        self.desk.count("corrupt_lines")
        self._complain(f"{self.path}:{frame.line}", reason)

    def unknown(self, frame: Frame, what: str) -> None:
        """Count and name a line that is valid but not expected."""
        self.desk.count("unknown_lines")
        self._complain(f"{self.path}:{frame.line}", f"unknown {what}")

    def lose(self, symbol_id: int, reason: GapReason, receive_time_ns: int) -> None:
        """Send a gap unless the book is invalid already."""
        if self.desk.valid[symbol_id]:
            self.desk.gap(symbol_id, reason, receive_time_ns)


def text_of(raw: object) -> npt.NDArray[np.uint8]:
    """Return JSON text as bytes for a kernel, without a copy."""
    return np.frombuffer(raw, dtype=np.uint8)  # type: ignore[call-overload,no-any-return]
