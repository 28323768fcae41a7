"""The reader of the signals ring, in a strategy's process.

I1  Every signal is delivered once and in order, or counted in `lost`; a `Lapped` stands where signals are missing.
I2  A reader never holds the router back.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator
from types import TracebackType

from tickwire.client.signal import SignalBatch
from tickwire.records import RecordArray, SignalKind
from tickwire.ring import AsyncConsumer, Consumer, Lapped, Start, WaitStrategy
from tickwire.ring.symbol_segment import read_symbols
from tickwire.topology import SIGNALS

_GENERATION_INTERVAL_S = 0.25


class SignalReader:
    """Reads the signals of one Tickwire host. Not thread-safe.

    `poll` never blocks; `wait` is bounded; `async for batch in reader` yields what `poll` returns, without empty
    batches. Use as a context manager, or `close` it.
    """

    def __init__(
        self,
        prefix: str = "tickwire",
        *,
        name: str | None = None,
        start: Start = Start.HEAD,
        wait: WaitStrategy = WaitStrategy.SPIN_PARK,
        timeout_s: float = 30.0,
    ) -> None:
        """Attach.

        Args:
            prefix: The run's prefix (`run.prefix` of its configuration).
            name: How the operators' tools show this reader; must be unique among live ones. None makes one up.
            start: `HEAD` for signals from now on, `OLDEST` for those still on the ring too.
            wait: How `wait` waits.
            timeout_s: How long the signals ring may take to appear.

        Raises:
            RingNotFoundError: No router has run with this prefix.
            RingLayoutError: The ring is of another release.
            ConsumerAttachedError: A live process uses the name.
        """
        name = name if name is not None else f"strategy-{os.getpid()}-{secrets.token_hex(4)}"
        self._consumer = Consumer.attach(prefix, SIGNALS, name=name, wait=wait, start=start, timeout_s=timeout_s)
        try:
            self.symbols = read_symbols(prefix)
            """The symbol table: names and increments, by `symbol_id`."""
        except BaseException:
            self._consumer.close()
            raise
        self._async = AsyncConsumer(self._consumer)
        self._closed = False
        self._looked_s = time.monotonic()

    def poll(self, limit: int = 1024) -> SignalBatch | Lapped:
        """Return the next signals, at most `limit`, possibly none; never blocks.

        `Lapped` says that signals were overwritten before they were read; the next poll goes on behind them.

        Raises:
            ValueError: The reader is closed.
        """
        self._look_for_new_ring()
        found = self._consumer.poll(limit)
        return found if isinstance(found, Lapped) else self._batch_of(found)

    def wait(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` until `poll` has something to report; say whether it has.

        Raises:
            ValueError: The reader is closed.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            self._look_for_new_ring()
            left_s = deadline_s - time.monotonic()
            if self._consumer.wait(max(min(left_s, _GENERATION_INTERVAL_S), 0.0)):
                return True
            if left_s <= _GENERATION_INTERVAL_S:
                return False

    @property
    def lost(self) -> int:
        """Records lost since attach, exact (I1)."""
        return self._consumer.lost

    @property
    def stopped(self) -> bool:
        """Whether the run is over: its owner has stopped the ring. What is published can still be polled."""
        return self._consumer.stopped

    def __aiter__(self) -> AsyncIterator[SignalBatch | Lapped]:
        """Iterate over batches of at least one signal, and `Lapped`; ends after `close`."""
        return self._batches()

    def close(self) -> None:
        """Detach; ends an `async for`."""
        self._closed = True
        self._async.close()
        self._consumer.close()

    def __enter__(self) -> SignalReader:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach."""
        self.close()

    async def _batches(self) -> AsyncIterator[SignalBatch | Lapped]:
        async for found in self._async:
            if isinstance(found, Lapped):
                yield found
                continue
            batch = self._batch_of(found)
            if len(batch):
                yield batch

    # A copy, so that a batch outlives the next poll. Barriers are the replay's own business.
    def _batch_of(self, records: RecordArray) -> SignalBatch:
        return SignalBatch(records[records["kind"] != SignalKind.BARRIER], self.symbols)

    def _look_for_new_ring(self) -> None:
        if self._closed:
            raise ValueError("signal reader: must not be used after close")
        now_s = time.monotonic()
        if now_s - self._looked_s >= _GENERATION_INTERVAL_S:
            self._looked_s = now_s
            self._consumer.check_generation()
