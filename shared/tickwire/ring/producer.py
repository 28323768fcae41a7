"""The single producer of a ring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import numpy.typing as npt

from tickwire.errors import ProducerAttachedError
from tickwire.records import RecordArray
from tickwire.ring.header import check_symbol_table, create_ring, open_ring
from tickwire.ring.kernels import BACK_PRESSURE, attaches, beat, publish_all, recover
from tickwire.ring.kernels import state as words
from tickwire.ring.layout import EPOCH_AT, PRODUCER_LOCK_AT, PRODUCER_PID_AT, STOP_AT
from tickwire.ring.segment import Segment
from tickwire.ring.spec import RingMode, RingSpec

LIVE_STALL_TIMEOUT_MS = 100
REPLAY_STALL_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class BackPressure:
    """Nothing was published: a lossless consumer is a whole ring behind. Try again, or drop and say so."""

    refused: int
    """Claims refused since the producer attached."""


class Producer:
    """Publishes records; one live producer a ring, guarded by a lock that dies with the process.

    Not thread-safe: one thread publishes, be it through `publish` or through the kernel with `state`.
    """

    def __init__(self, spec: RingSpec, data: Segment, control: Segment, stall_timeout_ms: int) -> None:
        """Wrap attached segments; use `attach`."""
        self.spec = spec
        self._data = data
        self._control = control
        self._dtype = spec.dtype
        self._closed = False
        self.state: npt.NDArray[np.uint64] = np.zeros(words.P_WORDS, dtype=np.uint64)
        for index, value in (
            (words.P_DATA, data.address),
            (words.P_CONTROL, control.address),
            (words.P_CAPACITY, spec.capacity),
            (words.P_SLOT_BYTES, spec.slot_bytes),
            (words.P_LOSSLESS, int(spec.mode is RingMode.LOSSLESS)),
            (words.P_MAX_CONSUMERS, spec.max_consumers),
            (words.P_STALL_TIMEOUT, stall_timeout_ms * 1_000_000),
        ):
            self.state[index] = value

    @classmethod
    def attach(
        cls,
        prefix: str,
        spec: RingSpec,
        *,
        symbol_table_hash: int = 0,
        stall_timeout_ms: int = LIVE_STALL_TIMEOUT_MS,
    ) -> Producer:
        """Become the ring's producer; create the ring if it does not exist (I8), go on behind its last record (I6).

        Raises:
            ProducerAttachedError: Another live process is the producer.
            RingLayoutError: The ring exists with another layout or symbol table.
            RingError: No memory or no permission.
        """
        create_ring(prefix, spec, symbol_table_hash)
        data, control = open_ring(prefix, spec, producer=True, timeout_s=1.0)
        try:
            check_symbol_table(data, symbol_table_hash)
            if not control.try_lock(PRODUCER_LOCK_AT):
                pid = int(data.array(np.uint32, PRODUCER_PID_AT, 1)[0])
                raise ProducerAttachedError(f"ring '{prefix}.{spec.name}': must have one producer, pid {pid} is alive")
            producer = cls(spec, data, control, stall_timeout_ms)
            recover(producer.state)
            data.array(np.uint32, PRODUCER_PID_AT, 1)[0] = os.getpid()
            data.array(np.uint32, EPOCH_AT, 1)[0] += 1
            data.array(np.uint32, STOP_AT, 1)[0] = 0
            producer.heartbeat()
        except BaseException:
            data.close()
            control.close()
            raise
        return producer

    def publish(self, records: RecordArray) -> int | BackPressure:
        """Publish records as one batch.

        Args:
            records: Structured array of the ring's dtype, at most capacity / 2; the first two fields are ignored.

        Returns:
            How many were published (all), or `BackPressure` (none).

        Raises:
            ValueError: More than capacity / 2 records, another dtype, or not contiguous.
        """
        if self._closed:
            raise ValueError(f"ring {self.spec.name!r}: the producer is closed")
        if records.dtype is not self._dtype and records.dtype != self._dtype:
            raise ValueError(f"ring {self.spec.name!r}: records must have the ring's dtype, had {records.dtype}")
        published: int = publish_all(self.state, records.view(np.uint64))
        if published >= 0:
            return published
        if published == BACK_PRESSURE:
            return BackPressure(int(self.state[words.P_BACK_PRESSURE]))
        raise ValueError(
            f"ring {self.spec.name!r}: a batch must be at most {self.spec.max_batch} records, was {len(records)}"
        )

    @property
    def next_sequence(self) -> int:
        """Sequence of the next record."""
        return int(self.state[words.P_NEXT])

    @property
    def evictions(self) -> int:
        """Consumers evicted since attach."""
        return int(self.state[words.P_EVICTIONS])

    @property
    def back_pressure(self) -> int:
        """Claims refused since attach."""
        return int(self.state[words.P_BACK_PRESSURE])

    @property
    def consumer_attaches(self) -> int:
        """How often consumers have attached or come back after an eviction; a change asks for a new snapshot."""
        return int(attaches(self.state))

    def heartbeat(self) -> None:
        """Say that the producer is alive even when it has nothing to publish; about ten times a second."""
        beat(self.state)

    def stop_consumers(self) -> None:
        """Set the segment's stop word: consumers' waits end once they have read everything."""
        self._data.array(np.uint32, STOP_AT, 1)[0] = 1

    def close(self) -> None:
        """Detach and free the lock; removes nothing. No kernel may use `state` any more."""
        self._closed = True
        self._data.close()
        self._control.close()

    def __enter__(self) -> Producer:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach."""
        self.close()
