"""Kraken's WebSocket API v1: book-N snapshots and updates with checksums.

Where it stands: first stage of the tick path, in ingest's feed thread.
Source: Kraken WebSocket API v1, channels `book` and `heartbeat`.

I1  Each update's checksum is compared; a mismatch is a gap, and the symbol is invalid until the next snapshot.
I2  The book keeps the depth that was subscribed to: levels pushed out are gone, as the venue says, and those behind are
    told.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from tickwire.records import GapReason, Side, TickKind
from tickwire_ingest.desk import COUNTER, Desk
from tickwire_ingest.feed import REASONS, Complaint, Feed, text_of
from tickwire_ingest.frames import Frame
from tickwire_ingest.kernels.checksum import book_checksum
from tickwire_ingest.kernels.events import mark
from tickwire_ingest.kernels.levels import levels_to_ticks
from tickwire_ingest.messages import (
    KrakenBook,
    decode_kraken_array,
    decode_kraken_book,
    decode_kraken_event,
    decode_text,
)

_EVENTS = frozenset({"heartbeat", "systemStatus", "subscriptionStatus", "pong"})
_LEVEL, _DELTA = int(TickKind.SNAPSHOT_LEVEL), int(TickKind.DELTA)
_BEGIN, _END = int(TickKind.SNAPSHOT_BEGIN), int(TickKind.SNAPSHOT_END)
_BID, _ASK = int(Side.BID), int(Side.ASK)


class KrakenFeed(Feed):
    """One connection to Kraken."""

    venue = "kraken"

    def __init__(self, desk: Desk, path: Path, complain: Complaint, *, depth: int) -> None:
        """Write to `desk`; `depth` is what was subscribed to."""
        super().__init__(desk, path, complain)
        self._depth = depth
        self._newest_ns = np.zeros(1, dtype=np.int64)

    def take(self, frame: Frame) -> None:
        """Turn one frame into ticks."""
        if frame.fault is not None:
            return self._unreadable(frame, frame.fault)
        try:
            if frame.payload.startswith(b"{"):
                event = decode_kraken_event(frame.payload).event
                return None if event in _EVENTS else self.unknown(frame, f"event {event!r}")
            parts = decode_kraken_array(frame.payload)
            if len(parts) not in (4, 5):
                return self.unknown(frame, f"message of {len(parts)} parts")
            channel, pair = decode_text(parts[-2]), decode_text(parts[-1])
            if not channel.startswith("book-"):
                return self.unknown(frame, f"channel {channel!r}")
            books = [decode_kraken_book(part) for part in parts[1:-2]]
        except msgspec.MsgspecError as error:
            return self._unreadable(frame, f"not a Kraken message: {error}")
        symbol_id = self.symbol_of(pair)
        if symbol_id is None:
            return None
        if books[0].snapshot_asks or books[0].snapshot_bids:
            return self._snapshot(symbol_id, books[0], frame)
        return self._update(symbol_id, books, frame)

    def restart(self) -> None:
        """Nothing is kept but the books."""

    def _snapshot(self, symbol_id: int, book: KrakenBook, frame: Frame) -> None:
        self._newest_ns[0] = 0
        n = mark(self.desk.ticks, 0, symbol_id, _BEGIN)
        n = self._levels(n, symbol_id, book.snapshot_bids, _LEVEL, _BID)
        n = self._levels(n, symbol_id, book.snapshot_asks, _LEVEL, _ASK)
        if n < 0 or n == len(self.desk.ticks):
            return self._broken(symbol_id, frame, f"book snapshot: {REASONS[min(n, -1)]}")
        n = mark(self.desk.ticks, n, symbol_id, _END)
        self.desk.apply(n, symbol_id, 0)
        self.desk.set_valid(symbol_id, True)
        return self.desk.emit(n, 0, int(self._newest_ns[0]), frame.receive_time_ns, COUNTER["snapshots"])

    def _update(self, symbol_id: int, books: list[KrakenBook], frame: Frame) -> None:
        if not self.desk.valid[symbol_id]:
            return self.desk.count("stale_deltas")  # of a book that is gone: only a snapshot helps
        self._newest_ns[0] = 0
        n = 0
        for book in books:
            n = self._levels(n, symbol_id, book.bids, _DELTA, _BID)
            n = self._levels(n, symbol_id, book.asks, _DELTA, _ASK)
        checksum = books[-1].checksum
        if n <= 0 or not checksum.isdigit():
            return self._broken(symbol_id, frame, f"book update: {REASONS[n] if n < 0 else 'no level or no checksum'}")
        self.desk.apply(n, symbol_id, 0)
        n = self.desk.trim(n, symbol_id, self._depth)
        if book_checksum(self.desk.book, symbol_id) != int(checksum):
            self.desk.count("checksum_failures")
            self._complain(f"{self.path}:{frame.line}", f"checksum of {self.desk.symbols[symbol_id].label} differs")
            return self.lose(symbol_id, GapReason.CHECKSUM, frame.receive_time_ns)
        return self.desk.emit(n, 0, int(self._newest_ns[0]), frame.receive_time_ns, COUNTER["deltas"])

    def _levels(self, n: int, symbol_id: int, text: msgspec.Raw, kind: int, side: int) -> int:
        # Hands a negative reason on; a side that is not in the message has no levels.
        if n < 0 or not text:
            return n
        desk = self.desk
        return int(
            levels_to_ticks(
                desk.ticks, n, text_of(text), symbol_id, kind, side, desk.scales[symbol_id], self._newest_ns
            )
        )

    def _broken(self, symbol_id: int, frame: Frame, reason: str) -> None:
        self.corrupt(frame, reason)
        self.lose(symbol_id, GapReason.CORRUPT, frame.receive_time_ns)

    def _unreadable(self, frame: Frame, reason: str) -> None:
        # The frame may have been an update of any pair. The next checksum would tell, some updates late: do not wait.
        self.corrupt(frame, reason)
        for symbol_id in self.symbol_ids.values():
            self.lose(symbol_id, GapReason.CORRUPT, frame.receive_time_ns)
