"""The feed thread of a replay: takes frames in order, waits until each is due, and serves snapshots meanwhile.

I1  Only this thread writes ticks; the event loop asks for a resync by counting attaches.
I2  Each run, and each lap, begins with a gap for every symbol.
I3  Closed loop: a barrier follows each group of frames with the same due time, and the next group waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tickwire.records import GapReason
from tickwire.ring import Producer
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.kernels import record_duration
from tickwire_ingest.config import IngestConfig
from tickwire_ingest.desk import Desk
from tickwire_ingest.feed import Feed
from tickwire_ingest.merge import Arrival, Source, merge
from tickwire_ingest.pacing import Pacer
from tickwire_ingest.publisher import BarrierWait, StoppedError
from tickwire_ingest.stats import INGEST_STATS

_LONGEST_NAP_S = 0.02
_CAPTURE_TIME = INGEST_STATS.gauge("capture_time_ns")
_FINISHED = INGEST_STATS.gauge("finished")
_TURN = INGEST_STATS.gauge("turn_mono_ns")


class Replay:
    """One replay of the configured captures."""

    def __init__(
        self,
        config: IngestConfig,
        sources: Sequence[Source],
        desk: Desk,
        make_feeds: Callable[[], list[Feed]],
        producer: Producer,
        stop: threading.Event,
        gauges: npt.NDArray[np.uint64],
        late: npt.NDArray[np.uint64],
        barriers: BarrierWait | None,
    ) -> None:
        """Wire the replay; `run` does it."""
        self._config = config
        self._sources = sources
        self._desk = desk
        self._make_feeds = make_feeds
        self._producer = producer
        self._stop = stop
        self._gauges = gauges
        self._late = late
        self._barriers = barriers
        self._attaches = producer.consumer_attaches
        self._barrier_id = 0

    def run(self) -> None:
        """Replay until the end, or until asked to stop; then serve snapshots if configured to linger.

        Raises:
            FeedError: A capture is missing or cannot be read, or a barrier got lost.
        """
        try:
            reason = GapReason.START
            while not self._stop.is_set():
                self._begin(reason)
                self._lap()
                if not self._config.repeat:
                    break
                self._desk.count("laps")
                reason = GapReason.LAP
            self._gauges[_FINISHED] = 1
            while self._config.linger and not self._stop.wait(_LONGEST_NAP_S):
                self._gauges[_TURN] = np.uint64(monotonic_ns())
                self._serve()
        except StoppedError:
            return

    def _begin(self, reason: GapReason) -> None:
        # I2
        for symbol_id in range(len(self._desk.symbols)):
            self._desk.gap(symbol_id, reason, 0)

    def _lap(self) -> None:
        feeds = self._make_feeds()
        pacer = Pacer(self._config.speed)
        end_ns: int | None = None
        group_ns: int | None = None
        for arrival in merge(self._sources, self._config.align):
            if end_ns is None and self._config.max_seconds is not None:
                end_ns = arrival.due_ns + int(self._config.max_seconds * 1e9)
            if self._stop.is_set() or (end_ns is not None and arrival.due_ns > end_ns):
                break
            if self._barriers is not None and group_ns not in (None, arrival.due_ns):
                self._close_group(arrival)
            group_ns = arrival.due_ns
            self._wait_until(pacer.emission_ns(arrival.due_ns, monotonic_ns()))
            self._serve()
            self._gauges[_CAPTURE_TIME] = np.uint64(arrival.due_ns)
            self._desk.count("frames")
            feeds[arrival.source].take(arrival.frame)
        if self._barriers is not None and group_ns is not None and not self._stop.is_set():
            self._close_group(None)

    def _close_group(self, following: Arrival | None) -> None:
        assert self._barriers is not None
        self._barrier_id += 1
        self._desk.barrier(self._barrier_id, following.frame.receive_time_ns if following is not None else 0)
        self._barriers.wait_for(self._barrier_id)

    def _wait_until(self, emission_ns: int) -> None:
        while True:
            now_ns = monotonic_ns()
            self._gauges[_TURN] = np.uint64(now_ns)
            left_ns = emission_ns - now_ns
            if left_ns <= 0:
                if self._config.speed is not None:
                    record_duration(self._late, -left_ns)
                return
            if self._stop.wait(min(left_ns * 1e-9, _LONGEST_NAP_S)):
                raise StoppedError
            self._serve()

    def _serve(self) -> None:
        # I1: somebody attached to the ticks ring, or came back after an eviction.
        attaches = self._producer.consumer_attaches
        if attaches != self._attaches:
            self._attaches = attaches
            self._desk.resync()
