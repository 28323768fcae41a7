"""Counters, gauges and histograms of one service in shared memory, read from outside by `StatsReader`.

I1  Each word has one writer thread; readers see each word whole, but not all words of the same moment.
I2  The segment outlives its process, so that the last figures can be read; a restart replaces it and starts from 0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tickwire.ring.segment import Segment, segment_name
from tickwire.runtime.buckets import HISTOGRAM_WORDS
from tickwire.runtime.clock import monotonic_ns, realtime_ns
from tickwire.runtime.lifecycle import ServiceState

MAGIC = int.from_bytes(b"TWSTAT01", "little")
MODE = 0o640
# Offsets in the segment.
MAGIC_AT = 0
DESCRIPTION_BYTES_AT = 8
STATE_AT = 16  # writer: the event loop
PID_AT = 24
START_TIME_AT = 32
HEARTBEAT_AT = 40  # writer: the event loop
READY_AT = 48  # writer: the event loop; monotonic time of READY, 0 before
DESCRIPTION_AT = 64


@dataclass(frozen=True, kw_only=True)
class StatsSpec:
    """Everything a service counts: each name with what it means, for readers and for `/metrics`."""

    counters: Mapping[str, str] = field(default_factory=dict)
    """Only grow."""
    gauges: Mapping[str, str] = field(default_factory=dict)
    """int64, any value. `turn_mono_ns` and `<thread>_turn_mono_ns` are a hot thread's last turn."""
    histograms: Mapping[str, str] = field(default_factory=dict)
    """Durations in nanoseconds."""
    per_symbol: Mapping[str, str] = field(default_factory=dict)
    """One value a symbol each."""
    symbol_gauges: frozenset[str] = frozenset()
    """Those of `per_symbol` that may fall; the others only grow."""
    families: tuple[CounterFamily, ...] = ()
    """Counters that are one metric with a label."""
    data_counter: str | None = None
    """The counter that grows as long as data comes in."""

    def counter(self, name: str) -> int:
        """Return a counter's index."""
        return tuple(self.counters).index(name)

    def gauge(self, name: str) -> int:
        """Return a gauge's index."""
        return tuple(self.gauges).index(name)

    def histogram(self, name: str) -> int:
        """Return a histogram's index."""
        return tuple(self.histograms).index(name)

    def symbol_column(self, name: str) -> int:
        """Return a per-symbol value's column."""
        return tuple(self.per_symbol).index(name)


@dataclass(frozen=True, kw_only=True)
class CounterFamily:
    """Counters `<prefix><value>` that are one metric with a label, such as batches by size."""

    prefix: str
    name: str
    """The metric's noun."""
    label: str
    help: str


class Description(msgspec.Struct, frozen=True):
    """What stands in the segment's header, as JSON: enough to read it without knowing the service."""

    service: str
    counters: tuple[str, ...]
    gauges: tuple[str, ...]
    histograms: tuple[str, ...]
    per_symbol: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def offsets(self) -> tuple[int, int, int, int, int]:
        """Byte offsets of counters, gauges, histograms, per-symbol values, and the end."""
        counters = DESCRIPTION_AT + -(-len(msgspec.json.encode(self)) // 64) * 64
        gauges = counters + 8 * len(self.counters)
        histograms = gauges + 8 * len(self.gauges)
        per_symbol = histograms + 8 * HISTOGRAM_WORDS * len(self.histograms)
        return counters, gauges, histograms, per_symbol, per_symbol + 8 * len(self.symbols) * len(self.per_symbol)


class StatsArrays(NamedTuple):
    """What is counted, as kernels take it."""

    counters: npt.NDArray[np.uint64]
    """Shape (n,)."""
    gauges: npt.NDArray[np.uint64]
    """Shape (n,); int64 values."""
    histograms: npt.NDArray[np.uint64]
    """Shape (n, HISTOGRAM_WORDS)."""
    per_symbol: npt.NDArray[np.uint64]
    """Shape (n_symbols, n)."""


class Stats:
    """The writer's side: arrays over shared memory that kernels and the event loop count in."""

    def __init__(self, segment: Segment, description: Description) -> None:
        """Wrap a fresh segment; use `create`."""
        self._segment = segment
        self.arrays = views(segment, description)
        """What kernels and the event loop count in."""

    @classmethod
    def create(cls, prefix: str, service: str, spec: StatsSpec, symbols: tuple[str, ...] = ()) -> Stats:
        """Create `<prefix>.stats.<service>` with zeros, in place of an earlier run's (I2).

        Args:
            prefix: The run's prefix.
            service: Name of the service.
            spec: What it counts.
            symbols: Labels of the symbols, for per-symbol values.

        Raises:
            RingError: No memory or no permission.
        """
        description = Description(
            service, tuple(spec.counters), tuple(spec.gauges), tuple(spec.histograms), tuple(spec.per_symbol), symbols
        )
        text = msgspec.json.encode(description)

        def fill(segment: Segment) -> None:
            segment.array(np.uint8, DESCRIPTION_AT, len(text))[:] = np.frombuffer(text, dtype=np.uint8)
            for offset, value in (
                (DESCRIPTION_BYTES_AT, len(text)),
                (STATE_AT, ServiceState.STARTING),
                (PID_AT, os.getpid()),
                (START_TIME_AT, realtime_ns()),
                (HEARTBEAT_AT, monotonic_ns()),
                (MAGIC_AT, MAGIC),
            ):
                segment.array(np.uint64, offset, 1)[0] = value

        name = segment_name(prefix, f"stats.{service}")
        segment = Segment.create(name, description.offsets[-1], mode=MODE, fill=fill, replace=True)
        return cls(segment, description)

    def set_state(self, state: ServiceState) -> None:
        """Publish the service's state."""
        if state is ServiceState.READY:
            self._segment.array(np.uint64, READY_AT, 1)[0] = monotonic_ns()
        self._segment.array(np.uint64, STATE_AT, 1)[0] = state

    def heartbeat(self) -> None:
        """Say that the event loop turns."""
        self._segment.array(np.uint64, HEARTBEAT_AT, 1)[0] = monotonic_ns()

    def close(self) -> None:
        """Unmap; the segment stays. No thread may count any more."""
        self.arrays = private_stats(StatsSpec(), 0)
        self._segment.close()

    @property
    def counters(self) -> npt.NDArray[np.uint64]:
        """Shape (n,)."""
        return self.arrays.counters

    @property
    def gauges(self) -> npt.NDArray[np.uint64]:
        """Shape (n,)."""
        return self.arrays.gauges

    @property
    def histograms(self) -> npt.NDArray[np.uint64]:
        """Shape (n, HISTOGRAM_WORDS)."""
        return self.arrays.histograms

    @property
    def per_symbol(self) -> npt.NDArray[np.uint64]:
        """Shape (n_symbols, n)."""
        return self.arrays.per_symbol


def private_stats(spec: StatsSpec, n_symbols: int) -> StatsArrays:
    """Return the same arrays in memory of this process alone, for kernels without a service around them."""
    return StatsArrays(
        np.zeros(len(spec.counters), dtype=np.uint64),
        np.zeros(len(spec.gauges), dtype=np.uint64),
        np.zeros((len(spec.histograms), HISTOGRAM_WORDS), dtype=np.uint64),
        np.zeros((n_symbols, len(spec.per_symbol)), dtype=np.uint64),
    )


def views(segment: Segment, description: Description) -> StatsArrays:
    """Return the arrays of a segment."""
    counters, gauges, histograms, per_symbol, _ = description.offsets

    def words(offset: int, count: int) -> npt.NDArray[np.uint64]:
        return segment.array(np.uint64, offset, count).view(np.uint64)

    n_histograms, n_symbols, n_values = (
        len(description.histograms),
        len(description.symbols),
        len(description.per_symbol),
    )
    return StatsArrays(
        words(counters, len(description.counters)),
        words(gauges, len(description.gauges)),
        words(histograms, n_histograms * HISTOGRAM_WORDS).reshape(n_histograms, HISTOGRAM_WORDS),
        words(per_symbol, n_symbols * n_values).reshape(n_symbols, n_values),
    )
