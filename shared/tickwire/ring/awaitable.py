"""A consumer for coroutines: a helper thread sleeps in the ring's bounded futex wait and wakes the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from tickwire.records import RecordArray
from tickwire.ring.consumer import Consumer, Lapped

_SLICE_S = 0.25


class AsyncConsumer:
    """Iterates over a consumer's batches: `async for batch in AsyncConsumer(consumer)`.

    Yields arrays of at least one record (a view valid until the next step) and `Lapped`. Ends when the ring's owner
    asks consumers to stop, or after `close`. One loop at a time.
    """

    def __init__(self, consumer: Consumer, limit: int = 1024) -> None:
        """Wrap an attached consumer; `limit` is the most records a batch."""
        self.consumer = consumer
        self._limit = limit
        self._closed = False
        self._thread: threading.Thread | None = None
        self._asked = threading.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None

    def __aiter__(self) -> AsyncIterator[RecordArray | Lapped]:
        """Iterate."""
        return self._batches()

    def close(self) -> None:
        """End the iteration and the helper thread; the consumer stays attached."""
        self._closed = True
        self.consumer.interrupt()
        self._asked.release()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    async def _batches(self) -> AsyncIterator[RecordArray | Lapped]:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        if self._thread is None:
            self._thread = threading.Thread(target=self._sleep, name=f"wait-{self.consumer.spec.name}", daemon=True)
            self._thread.start()
        while not self._closed:
            self.consumer.check_generation()
            batch = self.consumer.poll(self._limit)
            if isinstance(batch, Lapped) or len(batch):
                yield batch
                continue
            if self.consumer.stopped:
                return
            self._wake.clear()
            self._asked.release()
            await self._wake.wait()

    # The helper thread. One wait for each request, so that it never runs ahead of the loop.
    def _sleep(self) -> None:
        while True:
            self._asked.acquire()
            if not self._closed:
                self.consumer.wait(_SLICE_S)
            try:
                assert self._loop is not None
                assert self._wake is not None
                self._loop.call_soon_threadsafe(self._wake.set)
            except RuntimeError:
                return  # the loop is closed
            if self._closed:
                return
