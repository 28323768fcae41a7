"""Latency histograms: bucket widths, quantiles, exact maximum. Case O7's idea."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tickwire.runtime import HISTOGRAM_WORDS, Histogram
from tickwire.runtime.buckets import bucket_edges_ns
from tickwire.runtime.kernels import record_duration

NS = st.integers(0, 20_000_000_000)


def histogram_of(values) -> Histogram:
    words = np.zeros(HISTOGRAM_WORDS, dtype=np.uint64)
    for value in values:
        record_duration(words, value)
    return Histogram(words)


def test_buckets_are_narrow_contiguous_and_cover_the_range():
    """From below 50 ns to beyond 10 s, each bucket at most 5 % wide."""
    edges = bucket_edges_ns()
    assert edges[0] <= 50
    assert edges[-1] >= 10_000_000_000
    assert (np.diff(edges) > 0).all()
    assert (np.diff(edges) / edges[:-1]).max() <= 0.05


@settings(max_examples=200, deadline=None)
@given(st.lists(NS, min_size=1, max_size=60), st.floats(0, 1))
def test_quantile_lies_within_a_bucket_of_the_true_one(values, q):
    """Count, sum and maximum are exact; a quantile is off by at most a bucket's width."""
    found = histogram_of(values)
    assert found.count == len(values)
    assert found.max_ns == max(values)
    assert found.mean_ns == pytest.approx(sum(values) / len(values))
    true = sorted(values)[max(1, int(np.ceil(q * len(values)))) - 1]
    if true < 32:
        assert found.quantile(q) < 32
    elif true >= 1 << 34:
        assert found.quantile(q) == found.max_ns
    else:
        assert abs(found.quantile(q) - true) <= 0.05 * true + 1
    assert found.quantile(q) <= found.max_ns


@settings(max_examples=300, deadline=None)
@given(NS)
def test_value_falls_into_the_bucket_that_holds_it(value):
    """Exactly one bucket counts, the one whose edges enclose the value; below and beyond have their own."""
    counts = histogram_of([value]).counts
    edges = bucket_edges_ns()
    expected = int(np.searchsorted(edges, value, side="right"))
    assert np.flatnonzero(counts).tolist() == [expected]


def test_latencies_of_different_orders_have_different_buckets():
    """O7: 20 us, 200 us and 2 ms are three things; negative durations count as 0; an empty one says 0."""
    found = histogram_of([20_000, 200_000, 2_000_000])
    assert len(np.flatnonzero(found.counts)) == 3
    assert histogram_of([-5]).counts[0] == 1
    assert Histogram(np.zeros(HISTOGRAM_WORDS, np.uint64)).p99_ns == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        found.quantile(1.5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(3.9, 21.0), st.floats(0.1, 2.0))
def test_quantiles_of_latencies_are_numpys_within_a_bucket(seed, log_median, spread):
    """Log-normal latencies from 50 ns to seconds: p50, p99 and p99.9 are in the bucket of numpy's or beside it."""
    drawn = np.random.default_rng(seed).lognormal(log_median, spread, 2000)
    values = np.clip(drawn, 50, 10_000_000_000).astype(np.int64)
    found = histogram_of(values.tolist())
    edges = bucket_edges_ns()
    for q, value in ((0.5, found.p50_ns), (0.99, found.p99_ns), (0.999, found.p999_ns)):
        true = np.quantile(values, q, method="inverted_cdf")
        buckets = np.searchsorted(edges, [value, true], side="right")
        assert abs(int(buckets[0]) - int(buckets[1])) <= 1, (q, value, true)


def test_values_at_the_edges_of_the_range_are_below_within_or_beyond():
    """31 ns is below, 32 ns the first bucket, 2^34 - 1 ns the last, 2^34 ns beyond; the maximum is exact for each."""
    for value, expected in ((0, 0), (31, 0), (32, 1), ((1 << 34) - 1, -2), (1 << 34, -1), ((1 << 62) + 1, -1)):
        found = histogram_of([value])
        assert found.counts[expected] == 1, value
        assert int(found.counts.sum()) == 1
        assert found.max_ns == value
