"""What `tickwire top` shows: services, rings, stages, inference and symbols over the last seconds. Reads shared memory.

I1  Rates and quantiles are of the span between the oldest look that is kept and this one, not of the whole run.
I2  A restarted service starts its span anew: nothing is ever below zero.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tickwire.errors import RingError, RingNotFoundError
from tickwire.ring.inspect import RingView, inspect_ring
from tickwire.runtime import Histogram, StatsReader
from tickwire.runtime.buckets import MAX_NS, bucket_edges_ns
from tickwire.runtime.clock import monotonic_ns
from tickwire.topology import RINGS
from tickwire_ctl.host import ORDER

SPAN_LOOKS = 10
"""Looks that a span covers."""


class Moment(NamedTuple):
    """One service's figures at one moment."""

    looked_ns: int
    start_time_ns: int
    counters: dict[str, int]
    histograms: dict[str, Histogram]
    per_symbol: dict[str, npt.NDArray[np.uint64]]


class ServiceLook:
    """One service: its figures now and at the begin of the span."""

    def __init__(self, prefix: str, service: str) -> None:
        """Look at nothing yet."""
        self.service = service
        self._prefix = prefix
        self._reader: StatsReader | None = None
        self._moments: deque[Moment] = deque(maxlen=SPAN_LOOKS + 1)

    def refresh(self, now_ns: int) -> None:
        """Look again; attach first where the service has only now appeared."""
        if self._reader is None:
            with contextlib.suppress(RingError):
                self._reader = StatsReader.attach(self._prefix, self.service)
        reader = self._reader
        if reader is None:
            return
        with contextlib.suppress(RingNotFoundError):  # the run is over: its last figures stay
            reader.refresh()
        if self._moments and self._moments[-1].start_time_ns != reader.start_time_ns:
            self._moments.clear()  # I2
        columns = {name: reader.per_symbol(name) for name in reader.description.per_symbol}
        self._moments.append(Moment(now_ns, reader.start_time_ns, reader.counters(), reader.histograms(), columns))

    @property
    def reader(self) -> StatsReader | None:
        """Its statistics, None while it has none."""
        return self._reader

    def total(self, counter: str) -> int:
        """Return a counter now, 0 for a service that has not run."""
        return self._moments[-1].counters[counter] if self._moments else 0

    def rate(self, counter: str) -> float:
        """Return how much a counter grew a second (I1)."""
        return self._per_second(lambda moment: moment.counters[counter])

    def grown(self, counter: str) -> int:
        """Return how much a counter grew in the span."""
        return self._moments[-1].counters[counter] - self._moments[0].counters[counter] if self._moments else 0

    def durations(self, name: str) -> Histogram | None:
        """Return the durations that were measured within the span; None without a service."""
        if not self._moments:
            return None
        words = self._moments[-1].histograms[name].words.copy()
        if len(self._moments) > 1:
            longest = int(words[MAX_NS])
            words -= self._moments[0].histograms[name].words
            words[MAX_NS] = min(longest, _upper_edge_ns(Histogram(words)))
        return Histogram(words)

    def symbol(self, name: str, place: int) -> int:
        """Return a per-symbol value now, 0 for a service that has not run."""
        return int(self._moments[-1].per_symbol[name][place]) if self._moments else 0

    def symbol_rate(self, name: str, place: int) -> float:
        """Return how much a per-symbol counter grew a second."""
        return self._per_second(lambda moment: int(moment.per_symbol[name][place]))

    def close(self) -> None:
        """Unmap."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _per_second(self, value: Callable[[Moment], int]) -> float:
        if len(self._moments) < 2:
            return 0.0
        first, last = self._moments[0], self._moments[-1]
        return (value(last) - value(first)) * 1e9 / max(last.looked_ns - first.looked_ns, 1)


class Looker:
    """All of a prefix, looked at again and again."""

    def __init__(self, prefix: str) -> None:
        """Look at nothing yet; `refresh` does."""
        self.prefix = prefix
        self.services = {service: ServiceLook(prefix, service) for service in ORDER}
        self._rings: dict[str, deque[RingView]] = {spec.name: deque(maxlen=SPAN_LOOKS + 1) for spec in RINGS}
        self.now_ns = 0

    def refresh(self) -> None:
        """Look once."""
        self.now_ns = monotonic_ns()
        for service in self.services.values():
            service.refresh(self.now_ns)
        for spec in RINGS:
            view = None
            with contextlib.suppress(RingError):
                view = inspect_ring(self.prefix, spec)
            if view is None:
                self._rings[spec.name].clear()
            else:
                self._rings[spec.name].append(view)

    def rings(self) -> list[tuple[RingView, float | None]]:
        """Return the rings that exist, with records published a second."""
        return [(looks[-1], looks[-1].rate_since(looks[0])) for looks in self._rings.values() if looks]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Labels of the run's symbols, as any service has them."""
        for service in self.services.values():
            if service.reader is not None and service.reader.symbols:
                return service.reader.symbols
        return ()

    def close(self) -> None:
        """Unmap."""
        for service in self.services.values():
            service.close()


# Of the highest bucket with a duration in it; the overflow has none.
def _upper_edge_ns(durations: Histogram) -> int:
    filled = np.flatnonzero(durations.counts)
    edges = bucket_edges_ns()
    if not len(filled):
        return 0
    return int(edges[filled[-1]]) if filled[-1] < len(edges) else int(np.iinfo(np.int64).max)
