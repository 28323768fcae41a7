"""Counting and timing inside kernels. Each word has one writer thread; readers are other processes."""

from __future__ import annotations

from numba import int64, uint64

from tickwire.kernel import inlined, kernel
from tickwire.ring.words import address_of, leading_zeros, load_relaxed, store_relaxed
from tickwire.runtime.buckets import (
    COUNT,
    END_EXPONENT,
    FIRST_BUCKET,
    FIRST_EXPONENT,
    MAX_NS,
    OVERFLOW,
    SUB_BITS,
    SUB_BUCKETS,
    SUM_NS,
    UNDERFLOW,
)

STALL_NS = 1_000_000
"""A turn with work that takes longer than this is a stall: ten times what the hot path has from tick to signal."""


@inlined
def _word(base, index):
    return base + uint64(8) * uint64(index)


@inlined
def _add(address, n):
    store_relaxed(address, load_relaxed(address) + uint64(n))


@inlined
def bump(counters, index, n):
    """Add `n` to `counters[index]` (uint64[::1])."""
    _add(_word(address_of(counters), index), n)


@inlined
def set_gauge(gauges, index, value):
    """Store an int64 value in `gauges[index]` (uint64[::1])."""
    store_relaxed(_word(address_of(gauges), index), uint64(value))


@inlined
def note_turn(gauges, turn_gauge, turn_max_gauge, busy_since_ns, now_ns):
    """Note the begin of a hot loop's turn, and how long the turn before it took if it had work.

    Args:
        gauges: uint64[::1].
        turn_gauge: Where the begin goes.
        turn_max_gauge: Where the longest turn with work goes, in nanoseconds.
        busy_since_ns: Begin of the turn before if it had work, else 0: waiting is no turn.
        now_ns: Begin of this turn.

    Returns:
        1 when the turn before was a stall, else 0; int64, to add to a counter.
    """
    base = address_of(gauges)
    store_relaxed(_word(base, turn_gauge), uint64(now_ns))
    if busy_since_ns == 0:
        return int64(0)
    turn_ns = int64(now_ns) - int64(busy_since_ns)
    if uint64(turn_ns) > load_relaxed(_word(base, turn_max_gauge)):
        store_relaxed(_word(base, turn_max_gauge), uint64(turn_ns))
    return int64(turn_ns > STALL_NS)


@inlined
def record_ns(histogram, value_ns):
    """Count one duration in nanoseconds in a histogram (uint64[::1] of HISTOGRAM_WORDS); negative counts as 0."""
    base = address_of(histogram)  # once: passing an array on costs two atomic reference counts
    value = int64(max(value_ns, 0))
    if value < SUB_BUCKETS:
        _add(_word(base, UNDERFLOW), 1)
    else:
        exponent = int64(63) - leading_zeros(uint64(value))
        if exponent >= END_EXPONENT:
            _add(_word(base, OVERFLOW), 1)
        else:
            within = (value >> (exponent - SUB_BITS)) - SUB_BUCKETS
            _add(_word(base, FIRST_BUCKET + (exponent - FIRST_EXPONENT) * SUB_BUCKETS + within), 1)
    _add(_word(base, SUM_NS), value)
    if uint64(value) > load_relaxed(_word(base, MAX_NS)):
        store_relaxed(_word(base, MAX_NS), uint64(value))
    _add(_word(base, COUNT), 1)


@kernel("void(uint64[::1], int64)")
def record_duration(histogram, value_ns):
    """Count one duration from Python; kernels call `record_ns`."""
    record_ns(histogram, value_ns)
