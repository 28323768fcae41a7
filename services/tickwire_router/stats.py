"""What the router counts and measures. The hot thread writes all of it."""

from __future__ import annotations

from tickwire.records import SignalReason
from tickwire.runtime import StatsSpec

_REASONS = tuple(f"reason_{reason.name.lower()}" for reason in SignalReason)

ROUTER_STATS = StatsSpec(
    counters=(
        "predictions",
        "predictions_expired",
        "predictions_failed",
        "predictions_invalidated",
        "predictions_skipped",  # answered by an earlier process of the router
        "predictions_unknown",  # of a kind or a symbol that does not exist
        "lost_predictions",  # overwritten before they were read
        "barriers",
        "stalls",  # turns of the loop with work that took longer than 1 ms
        "signals_hold",  # in the order of `Action`
        "signals_buy",
        "signals_sell",
        "signals_withdrawn",
        *_REASONS,  # of every signal and withdrawal
    ),
    gauges=(
        "kill_generation",  # of the kill file that signals obey from here on; -1: it cannot be read, all is killed
        "killed_everything",  # 1: the global kill holds
        "turn_mono_ns",  # last turn of the loop
        "turn_max_ns",  # longest turn with work
    ),
    histograms=(
        "receive_to_tick",
        "tick_to_feature",
        "feature_to_row",
        "row_to_request",
        "request_to_batch",
        "batch_to_engine",
        "engine",
        "engine_to_prediction",
        "prediction_to_signal",
        "tick_to_signal",
        "tick_to_signal_less_engine",  # without the time from request to engine end
    ),
    per_symbol=("hold", "buy", "sell", "withdrawn", "killed"),  # `killed` is 1 or 0, the others count
)
"""All of it, by name. Histograms cover signals made from predictions."""

PREDICTIONS = ROUTER_STATS.counter("predictions")
PREDICTIONS_EXPIRED = ROUTER_STATS.counter("predictions_expired")
PREDICTIONS_FAILED = ROUTER_STATS.counter("predictions_failed")
PREDICTIONS_INVALIDATED = ROUTER_STATS.counter("predictions_invalidated")
PREDICTIONS_SKIPPED = ROUTER_STATS.counter("predictions_skipped")
PREDICTIONS_UNKNOWN = ROUTER_STATS.counter("predictions_unknown")
LOST_PREDICTIONS = ROUTER_STATS.counter("lost_predictions")
BARRIERS = ROUTER_STATS.counter("barriers")
STALLS = ROUTER_STATS.counter("stalls")
FIRST_ACTION = ROUTER_STATS.counter("signals_hold")
SIGNALS_WITHDRAWN = ROUTER_STATS.counter("signals_withdrawn")
FIRST_REASON = ROUTER_STATS.counter(_REASONS[0])

KILL_GENERATION = ROUTER_STATS.gauge("kill_generation")
KILLED_EVERYTHING = ROUTER_STATS.gauge("killed_everything")
TURN_MONO_NS = ROUTER_STATS.gauge("turn_mono_ns")
TURN_MAX_NS = ROUTER_STATS.gauge("turn_max_ns")

FIRST_STAGE = ROUTER_STATS.histogram("receive_to_tick")
TICK_TO_SIGNAL = ROUTER_STATS.histogram("tick_to_signal")
TICK_TO_SIGNAL_LESS_ENGINE = ROUTER_STATS.histogram("tick_to_signal_less_engine")

N_SYMBOL_COLUMNS = len(ROUTER_STATS.per_symbol)
SYMBOL_WITHDRAWN = ROUTER_STATS.symbol_column("withdrawn")
"""The columns before it are the actions'."""
SYMBOL_KILLED = ROUTER_STATS.symbol_column("killed")

WARNINGS = {
    "lost_predictions": "ring_lapped",
    "predictions_failed": "predictions_failed",
    "predictions_unknown": "predictions_unknown",
    "reason_stale": "predictions_stale",
}
"""Counters whose growth is a loss or a degradation, and the event that says so."""
