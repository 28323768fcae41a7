"""One tick after another: books, quotes, trades, trading status, and a row at the end of an event.

T1  A book is valid from a complete snapshot to the next gap or snapshot; nothing else makes it valid.
T2  A row comes at the EVENT_END of a delta, quote or trade while the book is valid, two-sided and not crossed; from no
    other tick. An event that gives none is counted, and its trades and changes count for the next that does.
T3  Trades and order ticks never change depth.
T4  A run, and with it the window, restarts at a gap, at a snapshot, when continuous trading stops or resumes, and
    behind a row that is not finite.
"""

from __future__ import annotations

from numba import int64, uint64, void

from tickwire.book.kernels import DROPPED, apply_level, clear
from tickwire.kernel import inlined, kernel
from tickwire.records import GapReason, Side, TickFlag, TickKind, TradingStatus
from tickwire_features.kernels.desk import DESK_TYPE
from tickwire_features.kernels.records import (
    open_record,
    post_barrier,
    post_invalidated,
    post_invalidated_untraced,
    post_row,
)
from tickwire_features.kernels.row import fill_row
from tickwire_features.kernels.run import add_event, add_trade, finish_event, remember, start_run
from tickwire_features.kernels.view import CROSSED, USABLE, fill_view, take_quote, take_update_id
from tickwire_features.state import BOOK_BUILDING, BOOK_INVALID, BOOK_VALID
from tickwire_features.stats import (
    EVENTS_CROSSED,
    EVENTS_ONE_SIDED,
    LEVELS_DROPPED,
    ORDERS_IGNORED,
    SYMBOL_BOOK_VALID,
    SYMBOL_EVENTS_WITHOUT_ROW,
    SYMBOL_TICKS,
    TICKS,
    TICKS_UNKNOWN,
    TICKS_WITHOUT_BOOK,
)

_EVENT_END = int(TickFlag.EVENT_END)
_RESYNC = int(GapReason.RESYNC)
_SNAPSHOT_BEGIN = int(TickKind.SNAPSHOT_BEGIN)
_SNAPSHOT_LEVEL = int(TickKind.SNAPSHOT_LEVEL)
_SNAPSHOT_END = int(TickKind.SNAPSHOT_END)
_DELTA = int(TickKind.DELTA)
_QUOTE = int(TickKind.QUOTE)
_ORDER_ADD = int(TickKind.ORDER_ADD)
_ORDER_CANCEL = int(TickKind.ORDER_CANCEL)
_TRADE = int(TickKind.TRADE)
_STATUS = int(TickKind.STATUS)
_GAP = int(TickKind.GAP)
_BARRIER = int(TickKind.BARRIER)
_HEARTBEAT = int(TickKind.HEARTBEAT)
_BID = int(Side.BID)
_ASK = int(Side.ASK)
_UNKNOWN_STATUS = int(TradingStatus.UNKNOWN)
_TRADING_STATUS = int(TradingStatus.TRADING)


@inlined
def _set_book(symbol, book):
    symbol.book = book
    symbol.counts[SYMBOL_BOOK_VALID] = uint64(book == BOOK_VALID)


@inlined
def _set_level(book, work, at, tick):
    side = int64(tick.side)
    if side not in (_BID, _ASK):
        work.counts[TICKS_UNKNOWN] += uint64(1)
    elif apply_level(book, at, side, tick.price_units, tick.quantity_units) == DROPPED:
        work.counts[LEVELS_DROPPED] += uint64(1)


@inlined
def _start_run(book, work, at, symbol, time_ns):
    # The book as it stands is what the run's first event is compared with, if it may be.
    start_run(symbol, time_ns)
    if symbol.book == BOOK_VALID and fill_view(book, at, symbol, work) == USABLE:
        remember(symbol, work)


@inlined
def _end_event(book, windows, records, record_words, work, at, symbol, tick):
    found = fill_view(book, at, symbol, work)
    if found != USABLE:
        work.counts[EVENTS_CROSSED if found == CROSSED else EVENTS_ONE_SIDED] += uint64(1)
        symbol.counts[SYMBOL_EVENTS_WITHOUT_ROW] += uint64(1)
        return
    time_ns = tick.receive_time_ns
    i = open_record(record_words, work)
    add_event(symbol, work, time_ns)
    finite = fill_row(records[i].features[:], symbol, work, time_ns)
    if finite:
        finish_event(symbol, work, time_ns)
    else:
        start_run(symbol, max(symbol.run_time_ns, time_ns))
    post_row(windows, records, record_words, work, i, at, symbol, tick, finite)


@inlined
def _take_event(book, windows, records, record_words, work, at, symbol, tick):
    # A delta, quote or trade of a valid book.
    if tick.kind == _DELTA:
        _set_level(book, work, at, tick)
        take_update_id(symbol, int64(tick.venue_sequence))
    elif tick.kind == _QUOTE:
        take_quote(symbol, tick)
    else:
        add_trade(symbol, int64(tick.side == _BID) - int64(tick.side == _ASK), tick.quantity_units)
    if tick.flags & _EVENT_END:
        _end_event(book, windows, records, record_words, work, at, symbol, tick)


@inlined
def _take_snapshot(book, windows, records, record_words, work, at, symbol, tick):
    if tick.kind == _SNAPSHOT_BEGIN:
        if symbol.book == BOOK_VALID:
            post_invalidated(windows, records, record_words, work, at, symbol, tick, _RESYNC)
        clear(book, at)
        _set_book(symbol, BOOK_BUILDING)
    elif symbol.book != BOOK_BUILDING:
        work.counts[TICKS_WITHOUT_BOOK] += uint64(1)
    elif tick.kind == _SNAPSHOT_LEVEL:
        _set_level(book, work, at, tick)
    else:
        symbol.quote_id = 0
        symbol.update_id = int64(tick.venue_sequence)
        _set_book(symbol, BOOK_VALID)
        _start_run(book, work, at, symbol, tick.receive_time_ns)


@inlined
def _take_status(book, windows, records, record_words, work, at, symbol, tick):
    trading = int64(tick.status == _TRADING_STATUS or tick.status == _UNKNOWN_STATUS)
    if trading == symbol.trading:
        return
    symbol.trading = trading
    post_invalidated(windows, records, record_words, work, at, symbol, tick, 0)
    _start_run(book, work, at, symbol, tick.receive_time_ns)


@inlined
def _take_symbol_tick(book, windows, records, record_words, work, at, symbol, tick):
    symbol.counts[SYMBOL_TICKS] += uint64(1)
    symbol.changed = 1
    kind = int64(tick.kind)
    if kind in (_DELTA, _QUOTE, _TRADE):
        if symbol.book == BOOK_VALID:
            _take_event(book, windows, records, record_words, work, at, symbol, tick)
        else:
            work.counts[TICKS_WITHOUT_BOOK] += uint64(1)
    elif _SNAPSHOT_BEGIN <= kind <= _SNAPSHOT_END:
        _take_snapshot(book, windows, records, record_words, work, at, symbol, tick)
    elif kind == _GAP:
        _set_book(symbol, BOOK_INVALID)
        post_invalidated(windows, records, record_words, work, at, symbol, tick, int64(tick.status))
    elif kind == _STATUS:
        _take_status(book, windows, records, record_words, work, at, symbol, tick)
    elif _ORDER_ADD <= kind <= _ORDER_CANCEL:
        work.counts[ORDERS_IGNORED] += uint64(1)
    else:
        work.counts[TICKS_UNKNOWN] += uint64(1)


@kernel(void(DESK_TYPE, int64))
def take_ticks(d, count):
    """Deal with the first `count` ticks in `d.ticks`, in order; posts at most two records a tick."""
    book = d.book
    symbols = d.symbols
    windows = d.windows
    ticks = d.ticks
    records = d.records
    record_words = d.record_words
    work = d.work[0]
    for i in range(count):
        tick = ticks[i]
        at = int64(tick.symbol_id)
        if tick.kind == _BARRIER:
            post_barrier(records, record_words, work, tick)
        elif tick.kind == _HEARTBEAT:
            continue
        elif at >= symbols.shape[0]:
            work.counts[TICKS_UNKNOWN] += uint64(1)
        else:
            _take_symbol_tick(book, windows, records, record_words, work, at, symbols[at], tick)
    work.counts[TICKS] += uint64(count)


@kernel(void(DESK_TYPE, int64))
def invalidate_all(d, reason):
    """Trust no book until its next snapshot; posts one record a symbol. `reason` is a `GapReason`."""
    for at in range(d.symbols.shape[0]):
        _set_book(d.symbols[at], BOOK_INVALID)
        post_invalidated_untraced(d.windows, d.records, d.record_words, d.work[0], at, d.symbols[at], reason)
