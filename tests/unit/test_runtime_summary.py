"""What a service logs once a second."""

from __future__ import annotations

import pytest

from tickwire.runtime import CounterSummary, StatsSpec, private_stats
from tickwire_features.stats import FEATURES_STATS
from tickwire_features.stats import WARNINGS as FEATURES_WARNINGS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_inference.stats import WARNINGS as INFERENCE_WARNINGS
from tickwire_router.stats import ROUTER_STATS
from tickwire_router.stats import WARNINGS as ROUTER_WARNINGS


class Log:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def info(self, event, **values):
        self.lines.append(("info", event, values))

    def warning(self, event, **values):
        self.lines.append(("warning", event, values))


def test_summary_says_what_grew_and_warns_of_losses():
    """One line while something happens, none otherwise; a loss is a warning of its own, once for each growth."""
    spec = StatsSpec(counters={name: name for name in ("ticks", "rows", "lost")})
    counters = private_stats(spec, 0).counters
    log = Log()
    summary = CounterSummary(log, "summary", spec, counters, {"lost": "ring_lapped"})
    summary.log()
    assert log.lines == []
    counters[0] += 5
    counters[1] += 2
    summary.log()
    assert log.lines == [("info", "summary", {"ticks": 5, "rows": 2})]
    counters[2] += 7
    summary.log()
    assert log.lines[1:] == [("info", "summary", {"lost": 7}), ("warning", "ring_lapped", {"lost": 7})]
    summary.log()
    assert len(log.lines) == 3


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [(FEATURES_STATS, FEATURES_WARNINGS), (INFERENCE_STATS, INFERENCE_WARNINGS), (ROUTER_STATS, ROUTER_WARNINGS)],
    ids=["features", "inference", "router"],
)
def test_warnings_name_counters_that_exist(spec, warnings):
    """A warning on a counter that is not there would never be given."""
    assert set(warnings) <= set(spec.counters)
