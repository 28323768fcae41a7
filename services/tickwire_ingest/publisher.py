"""From the desk to the ticks ring: whole events, back-pressure, and the wait for a barrier to come back."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from tickwire.errors import FeedError
from tickwire.records import RecordArray, SignalKind, as_words
from tickwire.ring import Consumer, Lapped, Producer
from tickwire.ring.kernels import BACK_PRESSURE, publish
from tickwire.runtime import StatsArrays
from tickwire.runtime.clock import monotonic_ns
from tickwire_ingest.stats import INGEST_STATS

BACK_PRESSURE_WAIT_S = 0.0002
BARRIER_TIMEOUT_S = 60.0
_SLICE_S = 0.1
_BACK_PRESSURE = INGEST_STATS.counter("back_pressure")
_TURN = INGEST_STATS.gauge("turn_mono_ns")


class StoppedError(Exception):
    """The replay was asked to stop while it waited."""


class Publisher:
    """The only writer of the ticks ring, in the feed thread."""

    def __init__(self, producer: Producer, stop: threading.Event, stats: StatsArrays) -> None:
        """Publish through `producer`; count waits in `stats`."""
        self._producer = producer
        self._stop = stop
        self._counters = stats.counters
        self._gauges = stats.gauges
        self._words: npt.NDArray[np.uint64] | None = None

    def publish(self, ticks: RecordArray, n: int) -> None:
        """Publish one whole event; wait as long as features is a ring behind (replay waits, nothing is dropped).

        Raises:
            StoppedError: The service is to end.
        """
        if self._words is None:
            self._words = as_words(ticks)
        waited = False
        while publish(self._producer.state, self._words, 0, n) == BACK_PRESSURE:
            if not waited:
                waited = True
                self._counters[_BACK_PRESSURE] += np.uint64(1)
            self._gauges[_TURN] = np.uint64(monotonic_ns())
            if self._stop.wait(BACK_PRESSURE_WAIT_S):
                raise StoppedError


class BarrierWait:
    """Waits until a barrier has gone through all stages."""

    def __init__(self, signals: Consumer, stop: threading.Event, stats: StatsArrays) -> None:
        """Read barriers from the signals ring; note turns in `stats`."""
        self._signals = signals
        self._stop = stop
        self._gauges = stats.gauges

    def wait_for(self, barrier_id: int) -> None:
        """Return when the barrier is on the signals ring.

        Raises:
            StoppedError: The service is to end.
            FeedError: It did not come within `BARRIER_TIMEOUT_S`.
        """
        deadline_ns = monotonic_ns() + int(BARRIER_TIMEOUT_S * 1e9)
        while not self._stop.is_set():
            batch = self._signals.poll()
            if isinstance(batch, Lapped):
                continue
            barriers = batch["barrier_id"][batch["kind"] == SignalKind.BARRIER]
            if len(barriers) and int(barriers.max()) >= barrier_id:
                return
            now_ns = monotonic_ns()
            self._gauges[_TURN] = np.uint64(now_ns)
            if now_ns > deadline_ns:
                raise FeedError(
                    f"closed loop: barrier {barrier_id} did not come back within {BARRIER_TIMEOUT_S:g} s; "
                    "are features, inference and router running with run.closed_loop = true?"
                )
            self._signals.wait(_SLICE_S)
        raise StoppedError
