"""The hot loop of features: allocates nothing, logs nothing, touches no Python object.

One turn: poll ticks, take each, publish the rows, commit. Ticks are committed only once their rows are on the ring.
"""

from __future__ import annotations

from numba import int64, typeof, uint64, void

from tickwire.kernel import kernel
from tickwire.records import GapReason, RowKind
from tickwire.ring.kernels import LAPPED, LAST_LOST, REATTACH, STOPPED, commit, poll, publish, wait
from tickwire.ring.words import load_acquire, monotonic_ns
from tickwire.runtime import private_stats
from tickwire.runtime.kernels import note_turn, record_ns, set_gauge
from tickwire.topology import TICKS
from tickwire_features.kernels.desk import DESK_TYPE
from tickwire_features.kernels.ticks import invalidate_all, take_ticks
from tickwire_features.stats import (
    FEATURES_STATS,
    LAPS,
    LOST_TICKS,
    RECEIVE_TO_ROW_NS,
    STALLS,
    TICK_TO_ROW_NS,
    TURN_MAX_NS,
    TURN_MONO_NS,
)

STATS_TYPE = typeof(private_stats(FEATURES_STATS, 1))

_MAX_WAIT_NS = 100_000_000
_DRAIN_TICKS = TICKS.capacity
_RESYNC = int(GapReason.RESYNC)
_ROW = int(RowKind.ROW)
_N_COUNTERS = len(FEATURES_STATS.counters)
_N_SYMBOL_VALUES = len(FEATURES_STATS.per_symbol)


@kernel(void(DESK_TYPE, STATS_TYPE))
def report(d, stats):
    """Copy what was counted to the statistics: of symbols, those that changed."""
    work = d.work[0]
    for k in range(_N_COUNTERS):
        set_gauge(stats.counters, k, work.counts[k])
    symbols = d.symbols
    per_symbol = stats.per_symbol
    for at in range(symbols.shape[0]):
        symbol = symbols[at]
        if symbol.changed != 0:
            symbol.changed = 0
            for k in range(_N_SYMBOL_VALUES):
                set_gauge(per_symbol, at * _N_SYMBOL_VALUES + k, symbol.counts[k])


@kernel(int64(DESK_TYPE, uint64[::1], STATS_TYPE))
def publish_records(d, producer, stats):
    """Publish the records in hand as one batch, measure how long their rows took, report; return how many."""
    work = d.work[0]
    count = work.records
    work.records = 0
    if count > 0:
        publish(producer, d.record_words, 0, count)
        now_ns = monotonic_ns()
        records = d.records
        for i in range(count):
            if records[i].kind == _ROW:
                record_ns(stats.histograms[TICK_TO_ROW_NS], now_ns - records[i].tick_mono_ns)
                record_ns(stats.histograms[RECEIVE_TO_ROW_NS], now_ns - records[i].receive_mono_ns)
    report(d, stats)
    return count


@kernel(int64(DESK_TYPE, uint64[::1], uint64[::1], STATS_TYPE, uint64))
def run(d, consumer, producer, stats, stop_address):
    """Turn ticks into rows until told otherwise; a stop first deals with the ticks that are there, one ring at most.

    Args:
        d: The desk.
        consumer: State of the ticks ring's consumer.
        producer: State of the rows ring's producer.
        stats: Where to count.
        stop_address: Address of a process-local u64; not 0 ends the loop.

    Returns:
        `STOPPED` or `REATTACH`.
    """
    work = d.work[0]
    left = int64(_DRAIN_TICKS)
    busy_since_ns = int64(0)
    while left > 0:
        now_ns = monotonic_ns()
        work.counts[STALLS] += uint64(note_turn(stats.gauges, TURN_MONO_NS, TURN_MAX_NS, busy_since_ns, now_ns))
        busy_since_ns = int64(0)
        found = poll(consumer, d.tick_words, d.ticks.shape[0])
        if found == REATTACH:
            return int64(REATTACH)
        if found == 0:
            waited = wait(consumer, _MAX_WAIT_NS, stop_address)
            if waited in (STOPPED, REATTACH):
                return waited
            continue
        busy_since_ns = now_ns
        work.taken_mono_ns = monotonic_ns()
        if found == LAPPED:
            work.counts[LAPS] += uint64(1)
            work.counts[LOST_TICKS] += consumer[LAST_LOST]
            invalidate_all(d, _RESYNC)
        else:
            take_ticks(d, found)
        publish_records(d, producer, stats)
        commit(consumer)
        if load_acquire(stop_address) != 0:
            left -= max(found, 1)
    return int64(STOPPED)
