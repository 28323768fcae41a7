"""Looking at a ring from outside, without attaching: counts, lag, who is alive."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tickwire.errors import RingLayoutError, RingNotFoundError
from tickwire.ring import layout
from tickwire.ring.header import CONTROL_SUFFIX, check_header, data_name
from tickwire.ring.segment import Segment
from tickwire.ring.shape import RingShape, read_shape
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
    """Without the prefix."""
    prefix: str
    mode: RingMode
    capacity: int
    slot_bytes: int
    generation: int
    """Random; another one is another ring under the same name."""
    published: int
    """Records published since the ring was made."""
    producer_alive: bool
    producer_pid: int
    epoch: int
    """How often a producer has attached."""
    heartbeat_ns: int
    looked_ns: int
    """CLOCK_MONOTONIC of this look."""
    consumers: tuple[ConsumerView, ...]

    @property
    def fill_ratio(self) -> float:
        """Share of the capacity that the slowest consumer which counts has not yet committed."""
        lags = [c.lag for c in self.consumers if not c.observer and not c.evicted]
        return min(1.0, max(lags, default=0) / self.capacity)

    def rate_since(self, earlier: RingView) -> float | None:
        """Return records published a second since an earlier look; None if that saw another generation."""
        if earlier.generation != self.generation or earlier.looked_ns >= self.looked_ns:
            return None
        return (self.published - earlier.published) * 1e9 / (self.looked_ns - earlier.looked_ns)


def inspect_ring(prefix: str, spec: RingSpec) -> RingView | None:
    """Return a view of a ring, None if it does not exist.

    Raises:
        RingLayoutError: It is not the ring that `spec` describes.
    """
    return _inspect(data_name(prefix, spec), spec)


def inspect_named(name: str) -> RingView | None:
    """Return a view of the ring `<prefix>.<ring>` of whatever records, None if it does not exist.

    Raises:
        RingLayoutError: It is no ring of this layout version.
        RingError: No permission.
    """
    return _inspect(name, None)


def _inspect(name: str, spec: RingSpec | None) -> RingView | None:
    try:
        data = Segment.open(name, writable=False)
    except RingNotFoundError:
        return None
    try:
        if spec is not None:
            check_header(data, spec)
        shape = read_shape(data)
        control = Segment.open(name + CONTROL_SUFFIX, writable=False)
    except RingNotFoundError:
        data.close()
        return None
    except BaseException:
        data.close()
        raise
    try:
        if control.size < layout.CONTROL_BYTES:
            raise RingLayoutError(f"segment {control.name!r}: must be {layout.CONTROL_BYTES} bytes, is {control.size}")
        return _view(data, control, shape)
    finally:
        data.close()
        control.close()


def _view(data: Segment, control: Segment, shape: RingShape) -> RingView:
    prefix, _, ring = data.name.partition(".")
    published = _u64(data, layout.PUBLISHED_AT)
    return RingView(
        name=ring,
        prefix=prefix,
        mode=RingMode(shape.mode),
        capacity=shape.capacity,
        slot_bytes=shape.slot_bytes,
        generation=shape.generation,
        published=published - shape.first_sequence,
        producer_alive=control.locked_by_other(layout.PRODUCER_LOCK_AT),
        producer_pid=_u32(data, layout.PRODUCER_PID_AT),
        epoch=_u32(data, layout.EPOCH_AT),
        heartbeat_ns=_u64(data, layout.HEARTBEAT_AT),
        looked_ns=time.monotonic_ns(),
        consumers=tuple(
            _consumer(data, control, i, published)
            for i in range(shape.max_consumers)
            if _u32(control, layout.ENTRIES_AT + layout.ENTRY_BYTES * i + layout.STATE) != layout.FREE
        ),
    )


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
