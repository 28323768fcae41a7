"""What every service is built on: configuration, statistics, lifecycle, hot threads.

`tickwire.runtime.log` and `tickwire.runtime.service` need the `services` extra and are imported by services directly.
"""

from tickwire.runtime.backoff import Backoff
from tickwire.runtime.buckets import HISTOGRAM_WORDS
from tickwire.runtime.config import RunConfig, load
from tickwire.runtime.histogram import Histogram
from tickwire.runtime.hot_thread import HotThread
from tickwire.runtime.lifecycle import ServiceState
from tickwire.runtime.stats import CounterFamily, Stats, StatsArrays, StatsSpec, private_stats
from tickwire.runtime.stats_reader import StatsReader
from tickwire.runtime.summary import CounterSummary
from tickwire.runtime.tasks import Supervisor

__all__ = [
    "HISTOGRAM_WORDS",
    "Backoff",
    "CounterFamily",
    "CounterSummary",
    "Histogram",
    "HotThread",
    "RunConfig",
    "ServiceState",
    "Stats",
    "StatsArrays",
    "StatsReader",
    "StatsSpec",
    "Supervisor",
    "load",
    "private_stats",
]
