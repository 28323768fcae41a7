"""What ingest counts and measures. The replay thread writes everything."""

from __future__ import annotations

from tickwire.runtime import StatsSpec

INGEST_STATS = StatsSpec(
    counters=(
        "frames",  # lines taken from the captures
        "events",  # venue messages that became ticks
        "ticks",
        "snapshots",
        "deltas",  # depth messages
        "quotes",
        "trades",
        "stale_deltas",  # older than the snapshot, dropped by the venue's rule
        "gaps",  # sequence breaks
        "gap_ticks",  # gaps of any reason, as sent
        "checksum_failures",
        "stale_snapshots",  # too old to join the deltas, refused
        "resyncs",  # snapshots sent from ingest's own book, because a consumer attached or was evicted
        "corrupt_lines",
        "unknown_lines",
        "unknown_symbols",
        "ignored_trades",  # prints that are no trade between two orders (insurance fund, auto-deleveraging)
        "dropped_levels",  # levels that a full book gave up
        "barriers",
        "back_pressure",  # events that had to wait for features
        "laps",
    ),
    gauges=("capture_time_ns", "finished"),
    histograms=("late_emission",),  # due time to emission, paced replay only
    per_symbol=("events", "ticks", "gaps", "book_valid"),
)
