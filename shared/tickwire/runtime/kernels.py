"""Counting and timing inside kernels. Each word has one writer thread; readers are other processes."""

from __future__ import annotations

from numba import int64, uint64

from tickwire.kernel import inlined
from tickwire.ring.words import address_of, load_relaxed, store_relaxed
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


@inlined
def bump(counters, index, n):
    """Add `n` to `counters[index]` (uint64[::1])."""
    address = address_of(counters) + uint64(8) * uint64(index)
    store_relaxed(address, load_relaxed(address) + uint64(n))


@inlined
def set_gauge(gauges, index, value):
    """Store an int64 value in `gauges[index]` (uint64[::1])."""
    store_relaxed(address_of(gauges) + uint64(8) * uint64(index), uint64(value))


@inlined
def exponent_of(value):
    """Return floor(log2(value)) of a positive integer."""
    exponent = int64(0)
    rest = uint64(value)
    for shift in (32, 16, 8, 4, 2, 1):
        if rest >> uint64(shift):
            rest >>= uint64(shift)
            exponent += shift
    return exponent


@inlined
def record_ns(histogram, value_ns):
    """Count one duration in nanoseconds in a histogram (uint64[::1] of HISTOGRAM_WORDS); negative counts as 0."""
    value = int64(max(value_ns, 0))
    if value < SUB_BUCKETS:
        bump(histogram, UNDERFLOW, 1)
    else:
        exponent = exponent_of(value)
        if exponent >= END_EXPONENT:
            bump(histogram, OVERFLOW, 1)
        else:
            within = (value >> (exponent - SUB_BITS)) - SUB_BUCKETS
            bump(histogram, FIRST_BUCKET + (exponent - FIRST_EXPONENT) * SUB_BUCKETS + within, 1)
    bump(histogram, SUM_NS, value)
    if uint64(value) > histogram[MAX_NS]:
        set_gauge(histogram, MAX_NS, value)
    bump(histogram, COUNT, 1)
