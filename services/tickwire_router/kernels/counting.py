"""Counting what the router says and how long it took; the hot thread is the only writer."""

from __future__ import annotations

from numba import int64, uint64

from tickwire.kernel import inlined
from tickwire.records import SignalKind
from tickwire.runtime.kernels import bump, record_ns, set_gauge
from tickwire_router.stats import (
    FIRST_ACTION,
    FIRST_REASON,
    FIRST_STAGE,
    KILLED_EVERYTHING,
    N_SYMBOL_COLUMNS,
    SIGNALS_WITHDRAWN,
    SYMBOL_KILLED,
    SYMBOL_WITHDRAWN,
    TICK_TO_SIGNAL,
    TICK_TO_SIGNAL_LESS_ENGINE,
)


@inlined
def count_signal(d, symbol, kind, action, reason):
    """Count one signal or withdrawal, by action, reason and symbol."""
    bump(d.counters, FIRST_REASON + reason, 1)
    if kind == SignalKind.WITHDRAWN:
        bump(d.counters, SIGNALS_WITHDRAWN, 1)
        bump(d.per_symbol, symbol * N_SYMBOL_COLUMNS + SYMBOL_WITHDRAWN, 1)
    else:
        bump(d.counters, FIRST_ACTION + action, 1)
        bump(d.per_symbol, symbol * N_SYMBOL_COLUMNS + action, 1)


@inlined
def time_signal(d, place, now_ns):
    """Record the stages of a signal that was published just now."""
    signal = d.outbox[place]
    stages = d.histograms
    record_ns(stages[FIRST_STAGE], signal.tick_mono_ns - signal.receive_mono_ns)
    record_ns(stages[FIRST_STAGE + 1], signal.feature_mono_ns - signal.tick_mono_ns)
    record_ns(stages[FIRST_STAGE + 2], signal.row_mono_ns - signal.feature_mono_ns)
    record_ns(stages[FIRST_STAGE + 3], signal.request_mono_ns - signal.row_mono_ns)
    record_ns(stages[FIRST_STAGE + 4], signal.batch_mono_ns - signal.request_mono_ns)
    record_ns(stages[FIRST_STAGE + 5], signal.engine_start_mono_ns - signal.batch_mono_ns)
    record_ns(stages[FIRST_STAGE + 6], signal.engine_end_mono_ns - signal.engine_start_mono_ns)
    record_ns(stages[FIRST_STAGE + 7], signal.prediction_mono_ns - signal.engine_end_mono_ns)
    record_ns(stages[FIRST_STAGE + 8], now_ns - signal.prediction_mono_ns)
    whole_ns = now_ns - signal.receive_mono_ns
    engine_ns = signal.engine_end_mono_ns - signal.request_mono_ns
    record_ns(stages[TICK_TO_SIGNAL], whole_ns)
    record_ns(stages[TICK_TO_SIGNAL_LESS_ENGINE], whole_ns - engine_ns)


@inlined
def show_kill(d):
    """Show in the statistics what the kill switch holds back."""
    last = d.killed.size - 1
    set_gauge(d.gauges, KILLED_EVERYTHING, int64(d.killed[last]))
    for symbol in range(last):
        d.per_symbol[symbol * N_SYMBOL_COLUMNS + SYMBOL_KILLED] = uint64(d.killed[symbol])
