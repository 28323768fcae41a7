"""What the router counts and measures. The hot thread writes all of it."""

from __future__ import annotations

from tickwire.records import SignalReason
from tickwire.runtime import CounterFamily, StatsSpec

_REASONS = tuple(f"reason_{reason.name.lower()}" for reason in SignalReason)

ROUTER_STATS = StatsSpec(
    counters={
        "predictions": "predictions taken from the ring",
        "predictions_expired": "predictions that came as expired",
        "predictions_failed": "predictions that came as failed",
        "predictions_invalidated": "predictions that came as invalidated",
        "predictions_skipped": "predictions answered by an earlier process of the router",
        "predictions_unknown": "predictions of a kind or a symbol that does not exist",
        "lost_predictions": "predictions overwritten before they were read",
        "barriers": "barriers passed on, deterministic replay only",
        "stalls": "turns of the loop with work that took longer than 1 ms",
        # In the order of `Action`.
        "signals_hold": "HOLD signals",
        "signals_buy": "BUY signals",
        "signals_sell": "SELL signals",
        "signals_withdrawn": "withdrawals",
        **dict.fromkeys(_REASONS, "signals and withdrawals of this reason"),
    },
    gauges={
        "kill_generation": "of the kill file that signals obey from here on; -1: it cannot be read, all is killed",
        "killed_everything": "1 while the global kill holds",
        "turn_mono_ns": "last turn of the loop",
        "turn_max_ns": "longest turn with work",
    },
    histograms={
        "receive_to_tick": "tick received to tick published",
        "tick_to_feature": "tick published to taken by features",
        "feature_to_row": "taken by features to row published",
        "row_to_request": "row published to request",
        "request_to_batch": "request to batch closed",
        "batch_to_engine": "batch closed to engine start",
        "engine": "engine start to engine end",
        "engine_to_prediction": "engine end to prediction published",
        "prediction_to_signal": "prediction published to signal published",
        "tick_to_signal": "tick received to signal published",
        "tick_to_signal_less_engine": "tick to signal without the time from request to engine end",
    },
    per_symbol={
        "hold": "HOLD signals of the symbol",
        "buy": "BUY signals of the symbol",
        "sell": "SELL signals of the symbol",
        "withdrawn": "withdrawals of the symbol",
        "killed": "1 while the symbol is killed, else 0",
    },
    symbol_gauges=frozenset({"killed"}),
    families=(
        CounterFamily(prefix="signals_", name="signals", label="action", help="signals and withdrawals by action"),
        CounterFamily(
            prefix="reason_", name="signals_by_reason", label="reason", help="signals and withdrawals by reason"
        ),
    ),
    data_counter="predictions",
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
