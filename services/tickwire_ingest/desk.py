"""The desk: venue books, the buffer of one event's ticks, and where whole events go.

I1  An event is written whole or not at all: ticks are built and checked before the book is touched.
I2  A gap makes the symbol's book invalid and empties it; a complete snapshot makes it valid.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from tickwire.book import new_book
from tickwire.errors import ConfigError
from tickwire.records import TICK, GapReason, Instrument, RecordArray, SymbolTable, TickKind
from tickwire_ingest.kernels.events import (
    HEADER_WORDS,
    apply_ticks,
    book_to_ticks,
    finish_event,
    mark,
    trim_to_ticks,
)
from tickwire_ingest.stats import INGEST_STATS

MAX_EVENT_TICKS = 32_768
"""Half the ticks ring: an event is published as one batch."""

Sink = Callable[[RecordArray, int], None]
"""Takes one whole event: the first n ticks of a buffer that is valid during the call."""


class Desk:
    """Turns venue events into ticks. One thread."""

    def __init__(
        self,
        symbols: SymbolTable,
        sink: Sink,
        *,
        counters: npt.NDArray[np.uint64] | None = None,
        per_symbol: npt.NDArray[np.uint64] | None = None,
        book_levels: int = 16_384,
    ) -> None:
        """Start with empty, invalid books.

        Args:
            symbols: The run's symbols.
            sink: Where events go.
            counters: Words of `INGEST_STATS`' counters; None counts locally.
            per_symbol: Words of its per-symbol values.
            book_levels: Levels a side that are kept.
        """
        self.symbols = symbols
        self.ticks: RecordArray = np.zeros(MAX_EVENT_TICKS, dtype=TICK)
        self.book = new_book(len(symbols), book_levels)
        self.scales = [scale_of(instrument) for instrument in symbols]
        self.valid = [False] * len(symbols)
        self._book_sequence = [0] * len(symbols)
        self.event_sequence = 0
        self.counters = counters if counters is not None else np.zeros(len(INGEST_STATS.counters), dtype=np.uint64)
        columns = len(INGEST_STATS.per_symbol)
        self.per_symbol = per_symbol if per_symbol is not None else np.zeros((len(symbols), columns), dtype=np.uint64)
        self.clock: Callable[[], int] = lambda: 0
        """Monotonic time of emission, taken once an event."""
        self._sink = sink
        self._header = np.zeros(HEADER_WORDS, dtype=np.int64)
        self._last_receive_ns = 0

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter."""
        self.counters[COUNTER[name]] += np.uint64(n)

    def emit(
        self,
        n: int,
        venue_sequence: int,
        venue_time_ns: int,
        receive_time_ns: int,
        kind_counter: int,
        barrier_id: int = 0,
    ) -> None:
        """Stamp `ticks[:n]` as one event of a symbol, count it under `kind_counter` and hand it on."""
        self.event_sequence += 1
        self._last_receive_ns = receive_time_ns
        self._header[:6] = (
            venue_sequence,
            self.event_sequence,
            venue_time_ns,
            receive_time_ns,
            self.clock(),
            barrier_id,
        )
        finish_event(self.ticks, n, self._header, self.counters, self.per_symbol, kind_counter)
        self._sink(self.ticks, n)

    def apply(self, n: int, symbol_id: int, venue_sequence: int) -> None:
        """Apply `ticks[:n]` to the symbol's book, which is then that of `venue_sequence`."""
        dropped = apply_ticks(self.book, self.ticks, n)
        if dropped:
            self.count("dropped_levels", dropped)
        self._book_sequence[symbol_id] = venue_sequence

    def trim(self, n: int, symbol_id: int, depth: int) -> int:
        """Cut the symbol's book to the venue's depth; return the ticks with a removal appended for each level cut."""
        return int(trim_to_ticks(self.book, self.ticks, n, symbol_id, depth))

    def set_valid(self, symbol_id: int, valid: bool) -> None:
        """Note whether a symbol's book is complete."""
        self.valid[symbol_id] = valid
        self.per_symbol[symbol_id, _BOOK_VALID] = np.uint64(valid)

    def gap(self, symbol_id: int, reason: GapReason, receive_time_ns: int) -> None:
        """Send a gap; the symbol's book is invalid from here on (I2)."""
        self.set_valid(symbol_id, False)
        self.book.counts[symbol_id] = 0
        self._send_gap(symbol_id, reason, receive_time_ns)
        self.per_symbol[symbol_id, _GAPS] += np.uint64(1)

    def resync(self) -> None:
        """Send a gap and ingest's own book for every symbol: a consumer has to start over."""
        for symbol_id in range(len(self.symbols)):
            self._send_gap(symbol_id, GapReason.RESYNC, self._last_receive_ns)
            if self.valid[symbol_id]:
                n = book_to_ticks(self.book, self.ticks, 0, symbol_id)
                self.emit(n, self._book_sequence[symbol_id], 0, self._last_receive_ns, COUNTER["resyncs"])

    def barrier(self, barrier_id: int, receive_time_ns: int) -> None:
        """Send a barrier; it belongs to no symbol and counts as no event."""
        mark(self.ticks, 0, 0, int(TickKind.BARRIER))
        self.emit(1, 0, 0, receive_time_ns, COUNTER["barriers"], barrier_id)

    def _send_gap(self, symbol_id: int, reason: GapReason, receive_time_ns: int) -> None:
        mark(self.ticks, 0, symbol_id, int(TickKind.GAP))
        self.ticks[0]["status"] = reason
        self.emit(1, 0, 0, receive_time_ns, COUNTER["gap_ticks"])


def scale_of(instrument: Instrument) -> npt.NDArray[np.int64]:
    """Return an instrument's increments as the decimal kernels take them: decimals and multiple, price then quantity.

    Raises:
        ConfigError: An increment has more than 18 decimals or is too large.
    """
    columns: list[int] = []
    for text in (instrument.price_increment, instrument.quantity_increment):
        sign, digits, exponent = Decimal(text).normalize().as_tuple()
        assert sign == 0
        assert isinstance(exponent, int)
        decimals = max(-exponent, 0)
        multiple = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        if decimals > 18 or multiple >= 2**63:
            raise ConfigError(f"instrument {instrument.label!r}: increment {text!r} is out of range")
        columns += [decimals, multiple]
    return np.array(columns, dtype=np.int64)


COUNTER = {name: index for index, name in enumerate(INGEST_STATS.counters)}
"""Index of each counter, for `Desk.emit`."""

_GAPS = INGEST_STATS.symbol_column("gaps")
_BOOK_VALID = INGEST_STATS.symbol_column("book_valid")
