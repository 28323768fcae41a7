"""What features counts and measures, and where each value stands in the kernels' arrays. Written by the hot thread."""

from __future__ import annotations

from tickwire.runtime.stats import StatsSpec

FEATURES_STATS = StatsSpec(
    counters={
        "ticks": "ticks taken from the ring",
        "lost_ticks": "ticks overwritten on the ring before they were read, after an eviction",
        "laps": "evictions from the ring",
        "rows": "rows published",
        "rows_not_finite": "rows replaced by zeros and of no use",
        "events_one_sided": "events without a row: a side of the book was empty",
        "events_crossed": "events without a row: best bid not below best ask",
        "invalidated": "INVALIDATED records published",
        "ticks_without_book": "deltas, quotes, trades and levels of a symbol whose book is not valid",
        "orders_ignored": "order ticks: no L3 books are kept",
        "ticks_unknown": "ticks of a symbol, kind or side that does not exist",
        "levels_dropped": "farthest levels that a full book gave up",
        "barriers": "barriers passed on, deterministic replay only",
        "stalls": "turns of the hot loop with work that took longer than 1 ms",
    },
    gauges={
        "turn_mono_ns": "last turn of the hot loop",
        "turn_max_ns": "longest turn with work",
    },
    histograms={
        "tick_to_row": "tick published to row published",
        "receive_to_row": "tick received to row published",
    },
    per_symbol={
        "ticks": "ticks of the symbol",
        "rows": "rows of the symbol",
        "window_rows": "rows of the unbroken run, at most 1,024",
        "invalidated": "INVALIDATED records of the symbol",
        "rows_not_finite": "rows replaced by zeros and of no use",
        "events_without_row": "events with a one-sided or crossed book",
        "book_valid": "1 while the symbol's book is valid, else 0",
        "last_row_mono_ns": "last row of the symbol",
    },
    symbol_gauges=frozenset({"window_rows", "book_valid", "last_row_mono_ns"}),
    data_counter="ticks",
)
"""All of it, by name."""

TICKS = FEATURES_STATS.counter("ticks")
LOST_TICKS = FEATURES_STATS.counter("lost_ticks")
LAPS = FEATURES_STATS.counter("laps")
ROWS = FEATURES_STATS.counter("rows")
ROWS_NOT_FINITE = FEATURES_STATS.counter("rows_not_finite")
EVENTS_ONE_SIDED = FEATURES_STATS.counter("events_one_sided")
EVENTS_CROSSED = FEATURES_STATS.counter("events_crossed")
INVALIDATED = FEATURES_STATS.counter("invalidated")
TICKS_WITHOUT_BOOK = FEATURES_STATS.counter("ticks_without_book")
ORDERS_IGNORED = FEATURES_STATS.counter("orders_ignored")
TICKS_UNKNOWN = FEATURES_STATS.counter("ticks_unknown")
LEVELS_DROPPED = FEATURES_STATS.counter("levels_dropped")
BARRIERS = FEATURES_STATS.counter("barriers")
STALLS = FEATURES_STATS.counter("stalls")

TURN_MONO_NS = FEATURES_STATS.gauge("turn_mono_ns")
TURN_MAX_NS = FEATURES_STATS.gauge("turn_max_ns")

TICK_TO_ROW_NS = FEATURES_STATS.histogram("tick_to_row")
RECEIVE_TO_ROW_NS = FEATURES_STATS.histogram("receive_to_row")

SYMBOL_TICKS = FEATURES_STATS.symbol_column("ticks")
SYMBOL_ROWS = FEATURES_STATS.symbol_column("rows")
SYMBOL_WINDOW_ROWS = FEATURES_STATS.symbol_column("window_rows")
SYMBOL_INVALIDATED = FEATURES_STATS.symbol_column("invalidated")
SYMBOL_ROWS_NOT_FINITE = FEATURES_STATS.symbol_column("rows_not_finite")
SYMBOL_EVENTS_WITHOUT_ROW = FEATURES_STATS.symbol_column("events_without_row")
SYMBOL_BOOK_VALID = FEATURES_STATS.symbol_column("book_valid")
SYMBOL_LAST_ROW_MONO_NS = FEATURES_STATS.symbol_column("last_row_mono_ns")

WARNINGS = {
    "lost_ticks": "ring_lapped",
    "rows_not_finite": "rows_not_finite",
    "orders_ignored": "orders_ignored",
    "ticks_unknown": "ticks_unknown",
    "levels_dropped": "levels_dropped",
}
"""Counters whose growth is a loss or a degradation, and the event that says so."""
