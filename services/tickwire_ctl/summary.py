"""What a run did, as one object: gathered from the statistics of the services before they are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tickwire.records import Action, FlushReason, SymbolTable
from tickwire.runtime import Histogram, StatsReader

STAGES = (
    "receive_to_tick",
    "tick_to_feature",
    "feature_to_row",
    "row_to_request",
    "request_to_batch",
    "batch_to_engine",
    "engine",
    "engine_to_prediction",
    "prediction_to_signal",
)
"""Along the path of a tick, as the router measures them from the stamps of each signal."""


class Summary(msgspec.Struct, frozen=True):
    """One run. Times are microseconds."""

    seconds: float
    ticks: dict[str, int]
    """By venue."""
    rows: int
    batches: int
    batch_sizes: dict[str, int]
    flush_reasons: dict[str, int]
    signals: dict[str, int]
    """By action."""
    signals_seen: int
    """Signals that the demo's own reader took from the ring."""
    lost: dict[str, int]
    """Records lost, by ring."""
    gaps: int
    """Breaks of the venues' sequences and checksums."""
    expired: int
    failed: int
    conflated: int
    unreadable_lines: int
    stages_us: dict[str, dict[str, float]]
    tick_to_signal_us: dict[str, float]
    tick_to_signal_less_engine_us: dict[str, float]
    symbols: dict[str, dict[str, Any]]


def summarise(
    readers: Mapping[str, StatsReader],
    symbols: SymbolTable,
    *,
    seconds: float,
    signals_seen: int,
    signals_lost: int,
    window_rows: int,
) -> Summary:
    """Return the summary of a run.

    Args:
        readers: Statistics of the four services, by name.
        symbols: The run's symbols.
        seconds: How long it took.
        signals_seen: Signals that the caller's reader got.
        signals_lost: Signals that it lost.
        window_rows: Rows that the model needs before it speaks.
    """
    ingest, features, inference, router = (readers[name] for name in ("ingest", "features", "inference", "router"))
    return Summary(
        seconds=round(seconds, 3),
        ticks=_by_venue(ingest, symbols),
        rows=features.counter("rows"),
        batches=inference.counter("batches"),
        batch_sizes=_named(inference, "batch_size_", (str(size) for size in range(1, 17))),
        flush_reasons=_named(
            inference, "flush_", (reason.name.lower() for reason in FlushReason if reason is not FlushReason.NONE)
        ),
        signals={action.name: router.counter(f"signals_{action.name.lower()}") for action in Action},
        signals_seen=signals_seen,
        lost={
            "ticks": features.counter("lost_ticks"),
            "rows": inference.counter("lost_rows"),
            "predictions": router.counter("lost_predictions"),
            "signals": signals_lost,
        },
        gaps=ingest.counter("gaps") + ingest.counter("checksum_failures"),
        expired=inference.counter("expired"),
        failed=sum(
            value
            for name, value in inference.counters().items()
            if name.startswith("failed_") and name != "failed_batches"
        ),
        conflated=inference.counter("conflated"),
        unreadable_lines=ingest.counter("corrupt_lines") + ingest.counter("unknown_lines"),
        stages_us={stage: quantiles_us(router.histogram(stage)) for stage in STAGES},
        tick_to_signal_us=quantiles_us(router.histogram("tick_to_signal")),
        tick_to_signal_less_engine_us=quantiles_us(router.histogram("tick_to_signal_less_engine")),
        symbols=_symbols(readers, symbols, window_rows),
    )


def quantiles_us(histogram: Histogram) -> dict[str, float]:
    """Return count, p50, p99, p99.9 and maximum of a histogram, in microseconds."""
    return {
        "count": histogram.count,
        "p50": histogram.p50_ns / 1e3,
        "p99": histogram.p99_ns / 1e3,
        "p99.9": histogram.p999_ns / 1e3,
        "max": histogram.max_ns / 1e3,
    }


def _named(reader: StatsReader, start: str, names: Any) -> dict[str, int]:
    return {name: value for name in names if (value := reader.counter(start + name))}


def _by_venue(ingest: StatsReader, symbols: SymbolTable) -> dict[str, int]:
    venues: dict[str, int] = {}
    for instrument, ticks in zip(symbols, ingest.per_symbol("ticks"), strict=True):
        venues[instrument.venue] = venues.get(instrument.venue, 0) + int(ticks)
    return venues


def _symbols(readers: Mapping[str, StatsReader], symbols: SymbolTable, window_rows: int) -> dict[str, dict[str, Any]]:
    ticks = readers["ingest"].per_symbol("ticks")
    rows = readers["features"].per_symbol("rows")
    fill = readers["features"].per_symbol("window_rows")
    without = readers["features"].per_symbol("events_without_row")
    requests = readers["inference"].per_symbol("requests")
    expired = readers["inference"].per_symbol("expired")
    actions = {name: readers["router"].per_symbol(name) for name in ("buy", "sell", "hold")}
    found: dict[str, dict[str, Any]] = {}
    for i, instrument in enumerate(symbols):
        counts = {name: int(values[i]) for name, values in actions.items()}
        why = None
        if not sum(counts.values()):
            if not ticks[i]:
                why = "no tick"
            elif not rows[i]:
                why = f"no row: {int(without[i])} events with a crossed or empty book" if without[i] else "no row"
            elif fill[i] < window_rows:
                why = f"{int(fill[i])} of {window_rows} rows"
            elif not requests[i]:
                why = "no request yet"
            else:
                why = f"{int(requests[i])} requests, {int(expired[i])} expired"
        found[instrument.label] = {
            "ticks": int(ticks[i]),
            "rows": int(rows[i]),
            "window_rows": int(fill[i]),
            "signals": counts,
            "why_no_signal": why,
        }
    return found
