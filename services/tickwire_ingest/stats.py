"""What ingest counts and measures. The replay thread writes everything."""

from __future__ import annotations

from tickwire.runtime import StatsSpec

INGEST_STATS = StatsSpec(
    counters={
        "frames": "lines taken from the captures",
        "events": "venue messages that became ticks",
        "ticks": "ticks published",
        "snapshots": "book snapshots",
        "deltas": "depth messages",
        "quotes": "best bid and ask messages",
        "trades": "trades",
        "stale_deltas": "depth messages older than the snapshot, dropped by the venue's rule",
        "gaps": "sequence breaks",
        "gap_ticks": "gaps of any reason, as sent",
        "checksum_failures": "books that differed from the venue's checksum",
        "stale_snapshots": "snapshots too old to join the deltas, refused",
        "resyncs": "snapshots sent from ingest's own book, because a consumer attached or was evicted",
        "corrupt_lines": "lines that cannot be read",
        "unknown_lines": "lines of no known message",
        "unknown_symbols": "messages of a symbol that the run does not have",
        "ignored_trades": "prints that are no trade between two orders (insurance fund, auto-deleveraging)",
        "dropped_levels": "levels that a full book gave up",
        "barriers": "barriers sent, deterministic replay only",
        "back_pressure": "events that had to wait for features",
        "laps": "laps of a repeated replay",
    },
    gauges={
        "capture_time_ns": "place on the captures' time line",
        "finished": "1 when the captures are at their end",
        "turn_mono_ns": "last turn of the feed thread",
    },
    histograms={"late_emission": "due time to emission, paced replay only"},
    per_symbol={
        "events": "venue messages of the symbol that became ticks",
        "ticks": "ticks of the symbol",
        "gaps": "gaps of the symbol",
        "book_valid": "1 while the symbol's book is valid, else 0",
    },
    symbol_gauges=frozenset({"book_valid"}),
    data_counter="frames",
)
