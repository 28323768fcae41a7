"""A consumer of a ring."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

import numpy as np
import numpy.typing as npt

from tickwire.errors import RingNotFoundError
from tickwire.records import RecordArray, as_words
from tickwire.ring import layout
from tickwire.ring.entries import take_entry
from tickwire.ring.header import check_symbol_table, open_ring
from tickwire.ring.kernels import LAPPED, READY, REATTACH, TIMEOUT, commit, commit_and_poll, wait
from tickwire.ring.kernels import state as words
from tickwire.ring.segment import Segment
from tickwire.ring.spec import RingMode, RingSpec

SPIN_BEFORE_PARK_NS = 50_000
SIGNAL_SLICE_S = 0.1
"""Longest stay in a kernel at once: how late a Python handler of an OS signal runs while `wait` sleeps."""
_DEFAULT_POLL = 1024


class WaitStrategy(Enum):
    """How a consumer waits."""

    SPIN = "spin"
    """Never sleeps: for a core of its own."""
    SPIN_PARK = "spin_park"
    """Spins about 50 us, then sleeps until the producer wakes it."""
    PARK = "park"
    """Sleeps at once: for cores that are shared."""


class Start(Enum):
    """Where a consumer starts that has no cursor of an earlier process."""

    HEAD = "head"
    """With the next record."""
    OLDEST = "oldest"
    """With the oldest record that is still there."""


@dataclass(frozen=True)
class Lapped:
    """Records were overwritten before they were read."""

    lost: int
    resumed_at: int
    """Sequence of the next record to be read."""


class Consumer:
    """Reads records of a ring in order. Not thread-safe, except that another thread may `wait`."""

    def __init__(self, prefix: str, spec: RingSpec, name: str, wait_strategy: WaitStrategy, start: Start) -> None:
        """Remember how to attach; use `attach`."""
        self.prefix = prefix
        self.spec = spec
        self.name = name
        self.reattaches = 0
        self._start = start
        self._symbol_table_hash: int | None = None
        self._data: Segment | None = None
        self._control: Segment | None = None
        self._records: RecordArray = np.zeros(0, dtype=spec.dtype)
        self._words = as_words(self._records)
        self._stop = np.zeros(1, dtype=np.uint64)
        self.state: npt.NDArray[np.uint64] = np.zeros(words.C_WORDS, dtype=np.uint64)
        self.state[words.C_SPIN_NS] = {
            WaitStrategy.SPIN: words.SPIN_FOREVER,
            WaitStrategy.SPIN_PARK: SPIN_BEFORE_PARK_NS,
            WaitStrategy.PARK: 0,
        }[wait_strategy]

    @classmethod
    def attach(
        cls,
        prefix: str,
        spec: RingSpec,
        *,
        name: str,
        symbol_table_hash: int | None = None,
        wait: WaitStrategy = WaitStrategy.SPIN_PARK,
        start: Start = Start.HEAD,
        timeout_s: float = 30.0,
    ) -> Consumer:
        """Attach to a ring, waiting at most `timeout_s` for it to exist.

        A lossless consumer whose name is known goes on at its cursor (I6), whatever `start`.

        Raises:
            RingNotFoundError: The ring did not appear in time.
            RingLayoutError: It has another layout or symbol table.
            ConsumerAttachedError: A live process uses the name.
            RingError: No permission, or no place for another consumer.
        """
        consumer = cls(prefix, spec, name, wait, start)
        consumer._symbol_table_hash = symbol_table_hash
        consumer._open(timeout_s)
        return consumer

    def poll(self, limit: int = _DEFAULT_POLL) -> RecordArray | Lapped:
        """Return the next records, at most `limit`, possibly none; never blocks. Commits the records of the last poll.

        The array is a view that is valid until the next poll; `sequence` and `publish_mono_ns` are filled in.
        """
        self._check_open()
        if len(self._records) < limit:
            self._records = np.zeros(limit, dtype=self.spec.dtype)
            self._words = as_words(self._records)
        found: int = commit_and_poll(self.state, self._words, limit)
        if found >= 0:
            return self._records[:found]
        if found == LAPPED:
            return Lapped(int(self.state[words.C_LAST_LOST]), int(self.state[words.C_CURSOR]))
        self.reattach()
        return self._records[:0]

    def wait(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` until `poll` has something to report; say whether it has."""
        self._check_open()
        deadline_s = time.monotonic() + timeout_s
        left_s = timeout_s
        while True:
            slice_s = min(left_s, SIGNAL_SLICE_S)
            found = int(wait(self.state, int(slice_s * 1e9), self._stop.ctypes.data))
            left_s = deadline_s - time.monotonic()
            if found != TIMEOUT or left_s <= 0.0:
                return found in (READY, REATTACH)

    def interrupt(self) -> None:
        """End a wait of another thread now and from now on."""
        self._stop[0] = 1

    def commit(self) -> None:
        """Let the producer reuse what was polled so far."""
        self._check_open()
        commit(self.state)

    @property
    def lost(self) -> int:
        """Records lost since attach."""
        return int(self.state[words.C_LOST])

    @property
    def cursor(self) -> int:
        """Sequence of the next record to be read."""
        return int(self.state[words.C_CURSOR])

    @property
    def stopped(self) -> bool:
        """Whether the ring's owner has asked its consumers to stop."""
        assert self._data is not None, "consumer is closed"
        return bool(self._data.array(np.uint32, layout.STOP_AT, 1)[0])

    def check_generation(self) -> bool:
        """Compare the name's inode (I7); when the ring was replaced, make the kernels return REATTACH. Any thread."""
        if self._data is not None and self._data.replaced():
            self.state[words.C_REATTACH] = 1
            return True
        return False

    def reattach(self, timeout_s: float = 30.0) -> None:
        """Leave a replaced ring for the new one, at its oldest record; nothing of the old one is delivered (I7).

        No kernel may be running on `state`.
        """
        self._release()
        self._start = Start.OLDEST
        self._open(timeout_s)
        self.reattaches += 1

    def close(self) -> None:
        """Detach; a lossless consumer's entry keeps its cursor. No kernel may use `state` any more."""
        if self._data is not None:
            commit(self.state)
        self._release()

    def _open(self, timeout_s: float) -> None:
        lossless = self.spec.mode is RingMode.LOSSLESS
        data, control = open_ring(self.prefix, self.spec, producer=False, timeout_s=timeout_s)
        try:
            if self._symbol_table_hash is not None:
                check_symbol_table(data, self._symbol_table_hash)
            cursor = self._first_cursor(data)
            entry = take_entry(
                data,
                control,
                f"{self.prefix}.{self.spec.name}",
                self.name,
                self.spec.max_consumers,
                lossless=lossless,
                cursor=cursor,
            )
        except BaseException:
            data.close()
            control.close()
            raise
        if entry is not None and entry.resumed_cursor is not None and lossless:
            cursor = entry.resumed_cursor
        self._data, self._control = data, control
        for index, value in (
            (words.C_DATA, data.address),
            (words.C_CONTROL, control.address),
            (words.C_CAPACITY, self.spec.capacity),
            (words.C_SLOT_BYTES, self.spec.slot_bytes),
            (words.C_LOSSLESS, int(lossless)),
            (words.C_ENTRY, control.address + entry.offset if entry is not None else 0),
            (words.C_INDEX, entry.index if entry is not None else 0),
            (words.C_CURSOR, cursor),
            (words.C_REATTACH, 0),
        ):
            self.state[index] = value

    def _first_cursor(self, data: Segment) -> int:
        published = int(data.array(np.uint64, layout.PUBLISHED_AT, 1)[0])
        if self._start is Start.HEAD:
            return published
        first = int(data.array(np.uint64, layout.FIRST_SEQUENCE_AT, 1)[0])
        return max(first, published - self.spec.capacity + self.spec.capacity // 4)

    def _check_open(self) -> None:
        # A kernel on a closed segment is a SIGSEGV.
        if self._data is None:
            raise ValueError(f"ring '{self.prefix}.{self.spec.name}': consumer {self.name!r} is closed")

    def _release(self) -> None:
        for segment in (self._data, self._control):
            if segment is not None:
                segment.close()
        self._data = self._control = None

    def __enter__(self) -> Consumer:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach."""
        self.close()


__all__ = ["Consumer", "Lapped", "RingNotFoundError", "Start", "WaitStrategy"]
