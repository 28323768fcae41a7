"""Reading a service's statistics from another process."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from tickwire.errors import RingLayoutError
from tickwire.ring.segment import Segment, segment_name
from tickwire.runtime.histogram import Histogram
from tickwire.runtime.lifecycle import ServiceState
from tickwire.runtime.stats import (
    DESCRIPTION_AT,
    DESCRIPTION_BYTES_AT,
    HEARTBEAT_AT,
    MAGIC,
    MAGIC_AT,
    PID_AT,
    READY_AT,
    START_TIME_AT,
    STATE_AT,
    Description,
    StatsSpec,
    private_stats,
    views,
)


class StatsReader:
    """The figures of one service, alive or dead."""

    def __init__(self, segment: Segment) -> None:
        """Read the description; use `attach`."""
        self._load(segment)

    def _load(self, segment: Segment) -> None:
        self.description = _describe(segment)
        self._segment = segment
        self._counters, self._gauges, self._histograms, self._per_symbol = views(segment, self.description)

    @classmethod
    def attach(cls, prefix: str, service: str) -> StatsReader:
        """Attach to `<prefix>.stats.<service>`.

        Raises:
            RingNotFoundError: The service has not run with this prefix.
            RingLayoutError: The segment is something else.
        """
        segment = Segment.open(segment_name(prefix, f"stats.{service}"), writable=False)
        try:
            return cls(segment)
        except BaseException:
            segment.close()
            raise

    def refresh(self) -> bool:
        """Go over to the segment of a restarted service; say whether there was one.

        Raises:
            RingLayoutError: The new segment is something else; the figures are still those of the old one.
        """
        if not self._segment.replaced():
            return False
        fresh, old = Segment.open(self._segment.name, writable=False), self._segment
        try:
            self._load(fresh)
        except BaseException:
            fresh.close()
            raise
        old.close()
        return True

    @property
    def service(self) -> str:
        """Name of the service."""
        return self.description.service

    @property
    def symbols(self) -> tuple[str, ...]:
        """Labels of the symbols, in the order of `per_symbol`."""
        return self.description.symbols

    @property
    def state(self) -> ServiceState:
        """The state it published last; a killed process leaves its last one."""
        return ServiceState(self._word(STATE_AT))

    @property
    def pid(self) -> int:
        """Its process id, in its own PID namespace."""
        return self._word(PID_AT)

    @property
    def start_time_ns(self) -> int:
        """Wall clock at its start."""
        return self._word(START_TIME_AT)

    @property
    def heartbeat_ns(self) -> int:
        """Monotonic time at which its event loop turned last."""
        return self._word(HEARTBEAT_AT)

    @property
    def was_ready(self) -> bool:
        """Whether this run of the service has been READY."""
        return self._word(READY_AT) != 0

    def counter(self, name: str) -> int:
        """Return a counter's value."""
        return int(self._counters[self.description.counters.index(name)])

    def counters(self) -> dict[str, int]:
        """Return all counters."""
        return {name: int(value) for name, value in zip(self.description.counters, self._counters, strict=True)}

    def gauge(self, name: str) -> int:
        """Return a gauge's value."""
        return int(self._gauges[self.description.gauges.index(name)].view(np.int64))

    def gauges(self) -> dict[str, int]:
        """Return all gauges."""
        return {name: self.gauge(name) for name in self.description.gauges}

    def histogram(self, name: str) -> Histogram:
        """Return a copy of a histogram."""
        return Histogram(self._histograms[self.description.histograms.index(name)].copy())

    def histograms(self) -> dict[str, Histogram]:
        """Return copies of all histograms."""
        return {name: self.histogram(name) for name in self.description.histograms}

    def per_symbol(self, name: str) -> npt.NDArray[np.uint64]:
        """Return a copy of one value of every symbol, shape (n_symbols,)."""
        return self._per_symbol[:, self.description.per_symbol.index(name)].copy()

    def close(self) -> None:
        """Unmap."""
        self._counters, self._gauges, self._histograms, self._per_symbol = private_stats(StatsSpec(), 0)
        self._segment.close()

    def _word(self, offset: int) -> int:
        return int(self._segment.array(np.uint64, offset, 1)[0])


def _describe(segment: Segment) -> Description:
    if segment.size < DESCRIPTION_AT or int(segment.array(np.uint64, MAGIC_AT, 1)[0]) != MAGIC:
        raise RingLayoutError(f"segment {segment.name!r}: holds no statistics of this release")
    length = int(segment.array(np.uint64, DESCRIPTION_BYTES_AT, 1)[0])
    try:
        if DESCRIPTION_AT + length > segment.size:
            raise RingLayoutError(f"segment {segment.name!r}: is cut off")
        text = segment.array(np.uint8, DESCRIPTION_AT, length).tobytes()
        description = msgspec.json.decode(text, type=Description)
    except msgspec.MsgspecError as error:
        raise RingLayoutError(f"segment {segment.name!r}: its description cannot be read: {error}") from error
    if description.offsets[-1] > segment.size:
        raise RingLayoutError(f"segment {segment.name!r}: is cut off")
    return description
