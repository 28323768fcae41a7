"""What inference counts and measures, and where each value stands in the kernels' arrays.

The scheduler thread writes everything but `engine_turn_mono_ns`, `breaker_state`, `degraded`, `timeouts`,
`fallback_batches` and `breaker_openings`, which are the engine thread's, and `swaps*`, which are the event loop's.
requests = conflated + predictions + expired + failed_* + withdrawn + those that wait or are in flight.
"""

from __future__ import annotations

from tickwire.records import FlushReason
from tickwire.runtime import CounterFamily, StatsSpec
from tickwire_inference.layouts import MAX_BATCH

_BATCH_SIZES = tuple(f"batch_size_{size}" for size in range(1, MAX_BATCH + 1))
_FLUSH_REASONS = tuple(f"flush_{reason.name.lower()}" for reason in FlushReason if reason is not FlushReason.NONE)

INFERENCE_STATS = StatsSpec(
    counters={
        "rows": "rows taken from the ring",
        "rows_known": "rows that were already copied from the windows store",
        "rows_not_finite": "rows with a NaN or an infinity",
        "lost_rows": "rows overwritten on the ring before they were read; the windows store repaired it",
        "repairs": "windows copied from the store",
        "requests": "predictions asked for",
        "conflated": "requests that a newer row of the symbol replaced",
        "predictions": "predictions that an engine made",
        "late": "predictions finished after their deadline",
        "expired": "requests whose deadline passed before a batch took them",
        "failed_input": "requests whose newest row is not finite",
        "failed_output": "predictions that are not finite",
        "failed_overrun": "requests whose window was overwritten while it was gathered",
        "failed_engine": "requests whose engine raised",
        "failed_batches": "batches in which the engine raised",
        "withdrawn": "requests whose book became void",
        "invalidated": "INVALIDATED answers, with and without a request",
        "barriers": "barriers passed on, deterministic replay only",
        "scheduler_stalls": "turns of the scheduler's loop with work that took longer than 1 ms",
        "back_pressure": "times the predictions ring began to refuse",
        "batches": "batches handed to the engine",
        "timeouts": "batches of the primary engine that were finished after their latest deadline",
        "fallback_batches": "batches that a fallback served",
        "breaker_openings": "times the primary engine's breaker opened",
        "swaps": "models activated while running",
        "swaps_refused": "models that were to be activated and were refused",
        **dict.fromkeys(_BATCH_SIZES, "batches of this size"),
        **dict.fromkeys(_FLUSH_REASONS, "batches closed for this reason"),
    },
    gauges={
        "engine_alive": "1: the last batch ran, 0: the engine raised",
        "scheduler_turn_mono_ns": "last turn of the scheduler's loop",
        "scheduler_turn_max_ns": "longest turn with work of the scheduler; the engine's are the histogram `engine`",
        "engine_turn_mono_ns": "last turn of the engine thread's loop",
        "breaker_state": "0: closed, 1: open, 2: half open",
        "degraded": "1: something else than the configured engine serves",
        "window_rows": "rows in a window of the model",
    },
    histograms={
        "queue_wait": "row published to batch closed",
        "engine": "engine took the batch to engine done",
        "row_to_prediction": "row published to prediction on its way out",
    },
    per_symbol={
        "rows": "rows of the symbol",
        "window_rows": "rows of an unbroken valid run that are here",
        "requests": "predictions asked for",
        "predictions": "predictions that an engine made",
        "expired": "requests whose deadline passed before a batch took them",
        "failed": "requests that failed for any reason",
        "invalidated": "INVALIDATED answers",
    },
    symbol_gauges=frozenset({"window_rows"}),
    families=(
        CounterFamily(prefix="batch_size_", name="batches_by_size", label="size", help="batches by size"),
        CounterFamily(
            prefix="flush_", name="batches_by_flush_reason", label="reason", help="batches by why they were closed"
        ),
    ),
    data_counter="rows",
)
"""All of it, by name; per symbol, `window_rows` is how many rows of an unbroken valid run are here."""

ROWS = INFERENCE_STATS.counter("rows")
ROWS_KNOWN = INFERENCE_STATS.counter("rows_known")
ROWS_NOT_FINITE = INFERENCE_STATS.counter("rows_not_finite")
LOST_ROWS = INFERENCE_STATS.counter("lost_rows")
REPAIRS = INFERENCE_STATS.counter("repairs")
REQUESTS = INFERENCE_STATS.counter("requests")
CONFLATED = INFERENCE_STATS.counter("conflated")
PREDICTIONS = INFERENCE_STATS.counter("predictions")
LATE = INFERENCE_STATS.counter("late")
EXPIRED = INFERENCE_STATS.counter("expired")
FAILED_INPUT = INFERENCE_STATS.counter("failed_input")
FAILED_OUTPUT = INFERENCE_STATS.counter("failed_output")
FAILED_OVERRUN = INFERENCE_STATS.counter("failed_overrun")
FAILED_ENGINE = INFERENCE_STATS.counter("failed_engine")
FAILED_BATCHES = INFERENCE_STATS.counter("failed_batches")
WITHDRAWN = INFERENCE_STATS.counter("withdrawn")
INVALIDATED = INFERENCE_STATS.counter("invalidated")
BARRIERS = INFERENCE_STATS.counter("barriers")
SCHEDULER_STALLS = INFERENCE_STATS.counter("scheduler_stalls")
BACK_PRESSURE_COUNT = INFERENCE_STATS.counter("back_pressure")
BATCHES = INFERENCE_STATS.counter("batches")
TIMEOUTS = INFERENCE_STATS.counter("timeouts")
FALLBACK_BATCHES = INFERENCE_STATS.counter("fallback_batches")
BREAKER_OPENINGS = INFERENCE_STATS.counter("breaker_openings")
SWAPS = INFERENCE_STATS.counter("swaps")
SWAPS_REFUSED = INFERENCE_STATS.counter("swaps_refused")
FIRST_BATCH_SIZE = INFERENCE_STATS.counter(_BATCH_SIZES[0])
FIRST_FLUSH_REASON = INFERENCE_STATS.counter(_FLUSH_REASONS[0])

ENGINE_ALIVE = INFERENCE_STATS.gauge("engine_alive")
SCHEDULER_TURN_MONO_NS = INFERENCE_STATS.gauge("scheduler_turn_mono_ns")
SCHEDULER_TURN_MAX_NS = INFERENCE_STATS.gauge("scheduler_turn_max_ns")
ENGINE_TURN_MONO_NS = INFERENCE_STATS.gauge("engine_turn_mono_ns")
BREAKER_STATE = INFERENCE_STATS.gauge("breaker_state")
DEGRADED = INFERENCE_STATS.gauge("degraded")
WINDOW_ROWS_GAUGE = INFERENCE_STATS.gauge("window_rows")

QUEUE_WAIT_NS = INFERENCE_STATS.histogram("queue_wait")
ENGINE_NS = INFERENCE_STATS.histogram("engine")
ROW_TO_PREDICTION_NS = INFERENCE_STATS.histogram("row_to_prediction")

SYMBOL_ROWS = INFERENCE_STATS.symbol_column("rows")
SYMBOL_WINDOW_ROWS = INFERENCE_STATS.symbol_column("window_rows")
SYMBOL_REQUESTS = INFERENCE_STATS.symbol_column("requests")
SYMBOL_PREDICTIONS = INFERENCE_STATS.symbol_column("predictions")
SYMBOL_EXPIRED = INFERENCE_STATS.symbol_column("expired")
SYMBOL_FAILED = INFERENCE_STATS.symbol_column("failed")
SYMBOL_INVALIDATED = INFERENCE_STATS.symbol_column("invalidated")
N_SYMBOL_COLUMNS = len(INFERENCE_STATS.per_symbol)

WARNINGS = {
    "lost_rows": "ring_lapped",
    "rows_not_finite": "rows_not_finite",
    "expired": "requests_expired",
    "late": "predictions_late",
    "failed_input": "predictions_failed",
    "failed_output": "predictions_failed",
    "failed_overrun": "predictions_failed",
    "failed_engine": "predictions_failed",
    "timeouts": "batches_timed_out",
    "back_pressure": "predictions_refused",
}
"""Counters whose growth is a loss or a degradation, and the event that says so."""
