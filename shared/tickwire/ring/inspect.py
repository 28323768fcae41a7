"""Looking at a ring from outside, without attaching: counts, lag, who is alive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tickwire.errors import RingNotFoundError
from tickwire.ring import layout
from tickwire.ring.header import check_header, control_name, data_name
from tickwire.ring.segment import Segment
from tickwire.ring.spec import RingMode, RingSpec


@dataclass(frozen=True)
class ConsumerView:
    """One consumer's entry."""

    name: str
    lag: int
    """Records published and not yet committed; 0 for one that reads ahead of what it last noted."""
    lost: int
    alive: bool
    evicted: bool
    observer: bool
    """A lossy consumer: it holds nobody back."""
    pid: int


@dataclass(frozen=True)
class RingView:
    """A ring at one moment."""

    name: str
    mode: RingMode
    capacity: int
    published: int
    """Records published since the ring was made."""
    producer_alive: bool
    producer_pid: int
    heartbeat_ns: int
    consumers: tuple[ConsumerView, ...]

    @property
    def fill_ratio(self) -> float:
        """Share of the capacity that the slowest consumer which counts has not yet committed."""
        lags = [c.lag for c in self.consumers if not c.observer and not c.evicted]
        return min(1.0, max(lags, default=0) / self.capacity)


def inspect_ring(prefix: str, spec: RingSpec) -> RingView | None:
    """Return a view of a ring, None if it does not exist.

    Raises:
        RingLayoutError: It is not the ring that `spec` describes.
    """
    try:
        data = Segment.open(data_name(prefix, spec), writable=False)
    except RingNotFoundError:
        return None
    try:
        check_header(data, spec)
        control = Segment.open(control_name(prefix, spec), writable=False)
    except RingNotFoundError:
        data.close()
        return None
    except BaseException:
        data.close()
        raise
    try:
        published = _u64(data, layout.PUBLISHED_AT)
        return RingView(
            name=spec.name,
            mode=spec.mode,
            capacity=spec.capacity,
            published=published - spec.first_sequence,
            producer_alive=control.locked_by_other(layout.PRODUCER_LOCK_AT),
            producer_pid=_u32(data, layout.PRODUCER_PID_AT),
            heartbeat_ns=_u64(data, layout.HEARTBEAT_AT),
            consumers=tuple(
                _consumer(data, control, i, published)
                for i in range(spec.max_consumers)
                if _u32(control, layout.ENTRIES_AT + layout.ENTRY_BYTES * i + layout.STATE) != layout.FREE
            ),
        )
    finally:
        data.close()
        control.close()


def _consumer(data: Segment, control: Segment, index: int, published: int) -> ConsumerView:
    offset = layout.ENTRIES_AT + layout.ENTRY_BYTES * index
    name = control.array(np.uint8, offset + layout.NAME, layout.NAME_BYTES).tobytes().rstrip(b"\0")
    return ConsumerView(
        name=name.decode(errors="replace"),
        lag=max(0, published - _u64(control, offset + layout.CURSOR)),
        lost=_u64(control, offset + layout.LOST),
        alive=control.locked_by_other(offset + layout.LIVENESS_LOCK),
        evicted=_u32(data, layout.EVICTED_AT + layout.ENTRY_BYTES * index) != 0,
        observer=_u32(control, offset + layout.STATE) == layout.OBSERVER,
        pid=_u32(control, offset + layout.PID),
    )


def _u32(segment: Segment, offset: int) -> int:
    return int(segment.array(np.uint32, offset, 1)[0])


def _u64(segment: Segment, offset: int) -> int:
    return int(segment.array(np.uint64, offset, 1)[0])
