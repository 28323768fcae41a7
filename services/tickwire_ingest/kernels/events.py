"""The ticks of one venue event: applying them to the venue's book, stamping them, and reading a book back as ticks."""

from __future__ import annotations

from numba import int64, uint64, void

from tickwire.book import BOOK_TYPE
from tickwire.book.kernels import DROPPED, apply_level, clear, trim
from tickwire.kernel import kernel
from tickwire.records import Side, TickFlag, TickKind
from tickwire.runtime.kernels import bump
from tickwire_ingest.kernels.levels import TICK_ARRAY
from tickwire_ingest.stats import INGEST_STATS

COUNTS = uint64[::1]
COUNTS_TABLE = uint64[:, ::1]

# The header of an event, int64 (HEADER_WORDS,).
H_VENUE_SEQUENCE = 0
H_EVENT_SEQUENCE = 1
H_VENUE_TIME = 2
H_RECEIVE_TIME = 3
H_RECEIVE_MONO = 4
H_BARRIER = 5
HEADER_WORDS = 8

_BEGIN = int(TickKind.SNAPSHOT_BEGIN)
_LEVEL = int(TickKind.SNAPSHOT_LEVEL)
_END = int(TickKind.SNAPSHOT_END)
_DELTA = int(TickKind.DELTA)
_EVENT_END = int(TickFlag.EVENT_END)
_EVENTS = INGEST_STATS.counter("events")
_TICKS = INGEST_STATS.counter("ticks")
_SYMBOL_EVENTS = INGEST_STATS.symbol_column("events")
_SYMBOL_TICKS = INGEST_STATS.symbol_column("ticks")
_BID = int(Side.BID)
_ASK = int(Side.ASK)


@kernel(int64(TICK_ARRAY, int64, int64, int64))
def mark(ticks, n, symbol, kind):
    """Append a tick without price (snapshot begin and end, gap, status); return the ticks in the buffer."""
    tick = ticks[n]
    tick.symbol_id = symbol
    tick.kind = kind
    tick.side = 0
    tick.status = 0
    tick.price_units = 0
    tick.quantity_units = 0
    tick.ask_price_units = 0
    tick.ask_quantity_units = 0
    return n + 1


@kernel(int64(BOOK_TYPE, TICK_ARRAY, int64))
def apply_ticks(book, ticks, n):
    """Apply the levels among `ticks[:n]` to the venue's books; return how many levels a full side gave up."""
    dropped = int64(0)
    for i in range(n):
        tick = ticks[i]
        symbol = int64(tick.symbol_id)
        if tick.kind == _DELTA or tick.kind == _LEVEL:
            if apply_level(book, symbol, int64(tick.side), tick.price_units, tick.quantity_units) == DROPPED:
                dropped += 1
        elif tick.kind == _BEGIN:
            clear(book, symbol)
    return dropped


@kernel(void(TICK_ARRAY, int64, int64[::1], COUNTS, COUNTS_TABLE, int64))
def finish_event(ticks, n, header, counters, per_symbol, kind_counter):
    """Give `ticks[:n]`, one venue event, their common fields and count them; the last tick ends the event.

    Args:
        ticks: Tick buffer.
        n: Ticks of the event.
        header: Indices below: venue and event sequence, the three times.
        counters: Counters of `INGEST_STATS`.
        per_symbol: Its per-symbol values.
        kind_counter: Counter of this kind of event.
    """
    for i in range(n):
        tick = ticks[i]
        tick.flags = _EVENT_END if i == n - 1 else 0
        tick.venue_sequence = header[H_VENUE_SEQUENCE]
        tick.order_id = 0
        tick.barrier_id = header[H_BARRIER]
        tick.event_sequence = header[H_EVENT_SEQUENCE]
        tick.venue_time_ns = header[H_VENUE_TIME]
        tick.receive_time_ns = header[H_RECEIVE_TIME]
        tick.receive_mono_ns = header[H_RECEIVE_MONO]
    bump(counters, kind_counter, 1)
    if header[H_BARRIER] == 0:
        symbol = int64(ticks[0].symbol_id)
        bump(counters, _EVENTS, 1)
        bump(counters, _TICKS, n)
        bump(per_symbol[symbol], _SYMBOL_EVENTS, 1)
        bump(per_symbol[symbol], _SYMBOL_TICKS, n)


@kernel(int64(BOOK_TYPE, TICK_ARRAY, int64, int64))
def book_to_ticks(book, ticks, n, symbol):
    """Append a symbol's whole book to `ticks[n:]` as a snapshot, best levels first; return the ticks in the buffer.

    A book that does not fit is cut to its best levels.
    """
    n = mark(ticks, n, symbol, _BEGIN)
    room = (len(ticks) - n - 1) // 2
    for side in (_BID, _ASK):
        count = book.counts[symbol, side - 1]
        for i in range(count - 1, max(count - room, 0) - 1, -1):
            tick = ticks[n]
            tick.symbol_id = symbol
            tick.kind = _LEVEL
            tick.side = side
            tick.status = 0
            tick.price_units = book.prices[symbol, side - 1, i]
            tick.quantity_units = book.quantities[symbol, side - 1, i]
            tick.ask_price_units = 0
            tick.ask_quantity_units = 0
            n += 1
    return mark(ticks, n, symbol, _END)


@kernel(int64(BOOK_TYPE, TICK_ARRAY, int64, int64, int64))
def trim_to_ticks(book, ticks, n, symbol, depth):
    """Cut both sides to their best `depth` levels; append a removal for each level cut; return the ticks in the buffer.

    Removals that find no room are not sent: whoever is behind keeps some levels too many, far from the best.
    """
    for side in (_BID, _ASK):
        for i in range(min(book.counts[symbol, side - 1] - depth, len(ticks) - n)):
            mark(ticks, n, symbol, _DELTA)
            ticks[n].side = side
            ticks[n].price_units = book.prices[symbol, side - 1, i]
            n += 1
    trim(book, symbol, depth)
    return n
