"""Writing records: rows, invalidations and barriers, each with the trace of its tick. They leave with one publish.

A row goes to the windows store first, then into the batch for the ring.
"""

from __future__ import annotations

from numba import boolean, from_dtype, int64, uint8, uint64, void

from tickwire.kernel import inlined, kernel
from tickwire.records import ROW, WINDOW_ROWS, RowKind
from tickwire.ring.words import monotonic_ns, realtime_ns
from tickwire.windows.kernels import invalidate, valid_from_of, write_row
from tickwire.windows.layout import ROW_WORDS
from tickwire_features.kernels.desk import SYMBOL_TYPE, TICK_TYPE, WORK_TYPE
from tickwire_features.state import ASK_PRICE, BID_PRICE
from tickwire_features.stats import (
    BARRIERS,
    INVALIDATED,
    ROWS,
    ROWS_NOT_FINITE,
    SYMBOL_INVALIDATED,
    SYMBOL_LAST_ROW_MONO_NS,
    SYMBOL_ROWS,
    SYMBOL_ROWS_NOT_FINITE,
    SYMBOL_WINDOW_ROWS,
)

RECORDS_TYPE = from_dtype(ROW)[::1]
RECORD_WORDS_TYPE = uint64[:, ::1]
WINDOWS_TYPE = uint64[::1]

_ROW = int(RowKind.ROW)
_INVALIDATED = int(RowKind.INVALIDATED)
_BARRIER = int(RowKind.BARRIER)
_FEATURES_AT = ROW.fields["features"][1] // 8  # type: ignore[index]
_RECORD_WORDS = ROW.itemsize // 8


@inlined
def open_record(record_words, work):
    """Return the index of the next free record, every word of it 0; it is part of the batch from here on."""
    i = work.records
    for k in range(_RECORD_WORDS):
        record_words[i, k] = 0
    work.records = i + 1
    return i


@inlined
def _trace(record, work, tick):
    record.tick_sequence = tick.sequence
    record.barrier_id = tick.barrier_id
    record.venue_time_ns = tick.venue_time_ns
    record.receive_time_ns = tick.receive_time_ns
    record.receive_mono_ns = tick.receive_mono_ns
    record.tick_mono_ns = tick.publish_mono_ns
    record.feature_mono_ns = work.taken_mono_ns


@inlined
def _fill_invalidated(record, work, at, symbol, valid_from, reason):
    record.kind = uint8(_INVALIDATED)
    record.symbol_id = at
    record.reason = uint8(reason)
    record.trading = uint8(symbol.trading)
    record.row_sequence = valid_from - uint64(1)
    record.valid_from = valid_from
    work.counts[INVALIDATED] += uint64(1)
    symbol.counts[SYMBOL_INVALIDATED] += uint64(1)
    symbol.counts[SYMBOL_WINDOW_ROWS] = uint64(0)
    symbol.changed = 1


@kernel(void(WINDOWS_TYPE, RECORDS_TYPE, RECORD_WORDS_TYPE, WORK_TYPE, int64, SYMBOL_TYPE, TICK_TYPE, int64))
def post_invalidated(windows, records, record_words, work, at, symbol, tick, reason):
    """End the run of symbol `at` in the store and post that, because of a tick."""
    record = records[open_record(record_words, work)]
    _fill_invalidated(record, work, at, symbol, invalidate(windows, at), reason)
    _trace(record, work, tick)


@kernel(void(WINDOWS_TYPE, RECORDS_TYPE, RECORD_WORDS_TYPE, WORK_TYPE, int64, SYMBOL_TYPE, int64))
def post_invalidated_untraced(windows, records, record_words, work, at, symbol, reason):
    """End the run of symbol `at` in the store and post that, at this moment: no tick says so."""
    record = records[open_record(record_words, work)]
    _fill_invalidated(record, work, at, symbol, invalidate(windows, at), reason)
    record.receive_time_ns = realtime_ns()
    record.receive_mono_ns = monotonic_ns()
    record.tick_mono_ns = record.receive_mono_ns
    record.feature_mono_ns = record.receive_mono_ns


@kernel(void(WINDOWS_TYPE, RECORDS_TYPE, RECORD_WORDS_TYPE, WORK_TYPE, int64, int64, SYMBOL_TYPE, TICK_TYPE, boolean))
def post_row(windows, records, record_words, work, i, at, symbol, tick, finite):
    """Store the row in record `i` and complete the record; behind a row that is not finite, post an invalidation.

    Args:
        windows: State of the store's writer.
        records: Records in hand.
        record_words: The same memory.
        work: Work in hand.
        i: An opened record whose features are filled.
        at: Symbol id.
        symbol: The symbol.
        tick: The tick that completed the row.
        finite: Whether the row is finite.
    """
    row_sequence = write_row(windows, at, record_words[i, _FEATURES_AT : _FEATURES_AT + ROW_WORDS], finite)
    valid_from = valid_from_of(windows, at)
    record = records[i]
    record.kind = uint8(_ROW)
    record.symbol_id = at
    record.trading = uint8(symbol.trading)
    record.row_sequence = row_sequence
    record.valid_from = valid_from
    record.bid_price_units = work.levels[BID_PRICE, 0]
    record.ask_price_units = work.levels[ASK_PRICE, 0]
    _trace(record, work, tick)
    work.counts[ROWS] += uint64(1)
    symbol.counts[SYMBOL_ROWS] += uint64(1)
    symbol.counts[SYMBOL_WINDOW_ROWS] = min(row_sequence + uint64(1) - valid_from, uint64(WINDOW_ROWS))
    symbol.counts[SYMBOL_LAST_ROW_MONO_NS] = uint64(work.taken_mono_ns)
    if not finite:
        work.counts[ROWS_NOT_FINITE] += uint64(1)
        symbol.counts[SYMBOL_ROWS_NOT_FINITE] += uint64(1)
        behind = records[open_record(record_words, work)]
        _fill_invalidated(behind, work, at, symbol, valid_from, 0)
        _trace(behind, work, tick)


@kernel(void(RECORDS_TYPE, RECORD_WORDS_TYPE, WORK_TYPE, TICK_TYPE))
def post_barrier(records, record_words, work, tick):
    """Pass a barrier on."""
    record = records[open_record(record_words, work)]
    record.kind = uint8(_BARRIER)
    _trace(record, work, tick)
    work.counts[BARRIERS] += uint64(1)
