"""Statistics as Prometheus text: names, units, buckets, help. Case O7. The reader is prometheus_client's own parser."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tickwire.runtime import private_stats
from tickwire.runtime.kernels import record_duration
from tickwire.runtime.metrics import BOUNDS_NS, StatsMetrics, metric_names
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router import ROUTER_STATS
from tiny_service import TINY_STATS

SPECS = {
    "ingest": INGEST_STATS,
    "features": FEATURES_STATS,
    "inference": INFERENCE_STATS,
    "router": ROUTER_STATS,
}
SYMBOLS = ("v:A", 'v:"B"\\')


def scraped(service, spec, arrays, now_ns=10**12):
    """Families by name, as a Prometheus server reads them."""
    text = "".join(StatsMetrics(service, spec, SYMBOLS).pieces(arrays, now_ns))
    return {family.name: family for family in text_string_to_metric_families(text)}


def buckets_of(family) -> dict[float, float]:
    return {float(s.labels["le"]): s.value for s in family.samples if s.name.endswith("_bucket")}


def prometheus_quantile(q: float, buckets: dict[float, float]) -> tuple[float, float, float]:
    """Lower bound, value and upper bound in seconds, as `histogram_quantile` computes them."""
    rank = q * buckets[math.inf]
    lower = below = 0.0
    for bound, count in sorted(buckets.items()):
        if count >= rank:
            return lower, lower + (bound - lower) * (rank - below) / (count - below), bound
        lower, below = bound, count
    raise AssertionError("no bucket")


@pytest.mark.parametrize(("value_ns", "share"), [(20_000, 0.2), (200_000, 0.5), (2_000_000, 1.0)])
def test_histogram_three_latencies_fill_three_buckets_in_seconds(value_ns, share):
    """O7: 20 us, 200 us and 2 ms stand in three buckets, in seconds; the metric's name says so."""
    arrays = private_stats(TINY_STATS, len(SYMBOLS))
    for value in (20_000, 200_000, 2_000_000):
        for _ in range({20_000: 20, 200_000: 30, 2_000_000: 50}[value]):
            record_duration(arrays.histograms[0], value)
    family = scraped("router", TINY_STATS, arrays)["tickwire_router_work_seconds"]
    buckets = buckets_of(family)
    counts = np.diff([0.0, *(buckets[bound] for bound in sorted(buckets))])
    assert sorted(counts[counts > 0].tolist()) == [20, 30, 50]
    lower, found, upper = prometheus_quantile(share, buckets)
    assert lower <= value_ns / 1e9 <= upper
    assert lower <= found <= upper
    sums = {s.name.rpartition("_")[2]: s.value for s in family.samples if "le" not in s.labels}
    assert sums == {"count": 100, "sum": pytest.approx(0.1064)}


@given(st.lists(st.integers(0, 40_000_000_000), min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.99]))
def test_histogram_any_durations_conserve_counts_and_quantiles(values, q):
    """O7: no duration is lost or counted twice; a computed quantile is within one bucket of the true one."""
    arrays = private_stats(TINY_STATS, len(SYMBOLS))
    for value in values:
        record_duration(arrays.histograms[0], value)
    buckets = buckets_of(scraped("router", TINY_STATS, arrays)["tickwire_router_work_seconds"])
    assert buckets[math.inf] == len(values)
    assert list(buckets.values()) == sorted(buckets.values())
    for bound_ns in BOUNDS_NS:
        count = buckets[bound_ns / 1e9]
        assert sum(v <= bound_ns * (1 - 1 / 32) for v in values) <= count <= sum(v <= bound_ns for v in values)
    truth_ns = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    bounds = [0.0, *sorted(buckets)]
    _, _, upper = prometheus_quantile(q, buckets)
    true_place = next(i for i, bound in enumerate(bounds) if truth_ns <= bound * 1e9)
    assert abs(bounds.index(upper) - max(true_place, 1)) <= 1


def test_text_every_kind_has_its_unit_and_label():
    """Nanoseconds become seconds, moments ages; families have a label; symbols are escaped; integers stay exact."""
    arrays = private_stats(TINY_STATS, len(SYMBOLS))
    arrays.counters[:] = [2**53 - 1, 0, 0, 3, 4]
    arrays.gauges.view(np.int64)[:] = [10**12 - 1_500_000_000, 2_500_000, -7]
    arrays.per_symbol[:] = [[5, 1], [6, 0]]
    found = {
        (s.name, *s.labels.values()): s.value
        for family in scraped("router", TINY_STATS, arrays).values()
        for s in family.samples
        if family.type != "histogram"
    }
    assert found == {
        ("tickwire_router_turns_total",): 2**53 - 1,
        ("tickwire_router_drained_total",): 0,
        ("tickwire_router_closed_total",): 0,
        ("tickwire_router_things_total", "a"): 3,
        ("tickwire_router_things_total", "b"): 4,
        ("tickwire_router_worker_turn_age_seconds",): 1.5,
        ("tickwire_router_longest_seconds",): 0.0025,
        ("tickwire_router_depth",): -7,
        ("tickwire_router_symbol_ticks_total", "v:A"): 5,
        ("tickwire_router_symbol_ticks_total", 'v:"B"\\'): 6,
        ("tickwire_router_symbol_book_valid", "v:A"): 1,
        ("tickwire_router_symbol_book_valid", 'v:"B"\\'): 0,
    }


@pytest.mark.parametrize("service", SPECS)
def test_specs_all_names_are_explained_once_and_well_formed(service):
    """Each counter, gauge, histogram and per-symbol value of a service has a help text and a metric of its own."""
    spec = SPECS[service]
    for names in (spec.counters, spec.gauges, spec.histograms, spec.per_symbol):
        assert all(len(text) >= 5 and text.strip(" .") == text for text in names.values())
    assert spec.symbol_gauges <= set(spec.per_symbol)
    assert spec.data_counter in spec.counters
    families = scraped(service, spec, private_stats(spec, len(SYMBOLS)))
    types = {f"{name}_total" if f.type == "counter" else name: f.type for name, f in families.items()}
    assert types == metric_names(service, spec)
    assert all(f.documentation for f in families.values())
    for name, kind in types.items():
        assert re.fullmatch(rf"tickwire_{service}_[a-z0-9_]+", name)
        assert "_ns" not in name
        assert name.endswith({"counter": "_total", "histogram": "_seconds", "gauge": ""}[kind])
    assert len({s.name for f in families.values() for s in f.samples}) < 120
