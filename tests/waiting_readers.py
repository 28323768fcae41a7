"""Readers in processes of their own that wait: `python tests/waiting_readers.py CLIENT PREFIX MODE NAME HOLD_AFTER`.

CLIENT is `consumer` (poll and wait), `long-wait` (the same, an hour at once) or `async` (`async for`). They print
`ready`, a JSON line for each batch, and one at their end: the ring's owner stopped it, or SIGTERM came. After
HOLD_AFTER records they wait for a line on stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from typing import Any

from ring_processes import spec_of, torn
from tickwire.ring import AsyncConsumer, Consumer, Lapped, Start, WaitStrategy

CAPACITY = 64
LONG_S = 3600.0
GENERATION_INTERVAL_S = 0.25


class Watched(Consumer):
    """A consumer that notes when its waits begin and when it re-attaches."""

    def wait(self, timeout_s: float) -> bool:
        """Note and wait."""
        self.__dict__.setdefault("waits", []).append(time.monotonic_ns())
        return super().wait(timeout_s)

    def reattach(self, timeout_s: float = 30.0) -> None:
        """Re-attach and note."""
        super().reattach(timeout_s)
        self.__dict__.setdefault("moved", []).append(time.monotonic_ns())


class Reader:
    """Says what comes."""

    def __init__(self, consumer: Consumer, hold_after: int) -> None:
        """Take an attached consumer."""
        self.consumer = consumer
        self.hold_after = hold_after
        self.received = 0

    def take(self, batch: Any) -> None:
        """Print a batch; `foreign` counts records whose payload is not that of their sequence."""
        if isinstance(batch, Lapped):
            _say({"lost": batch.lost})
            return
        self.received += len(batch)
        _say({"sequences": batch["sequence"].tolist(), "foreign": torn(batch)})
        if self.hold_after and self.received >= self.hold_after:
            self.hold_after = 0
            sys.stdin.readline()

    def poll_and_wait(self, slice_s: float) -> None:
        """Read as a strategy without an event loop does."""
        while not self.consumer.stopped:
            self.consumer.check_generation()
            batch = self.consumer.poll()
            if isinstance(batch, Lapped) or len(batch):
                self.take(batch)
            else:
                self.consumer.wait(slice_s)

    async def iterate(self) -> None:
        """Read as a coroutine does; SIGTERM cancels it."""
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        waiter = AsyncConsumer(self.consumer)
        with contextlib.suppress(asyncio.CancelledError):
            async for batch in waiter:
                self.take(batch)
        waiter.close()


def _say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _main(client: str, prefix: str, mode: str, name: str, hold_after: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    spec = spec_of(mode, CAPACITY, 64)
    with Watched.attach(prefix, spec, name=name, wait=WaitStrategy.PARK, start=Start.OLDEST) as consumer:
        reader = Reader(consumer, int(hold_after))
        print("ready", flush=True)
        try:
            if client == "async":
                asyncio.run(reader.iterate())
            else:
                reader.poll_and_wait(LONG_S if client == "long-wait" else GENERATION_INTERVAL_S)
        finally:
            notes = {"waits": [], "moved": [], **consumer.__dict__}
            _say({"reattaches": consumer.reattaches, "waits": notes["waits"], "moved": notes["moved"]})


if __name__ == "__main__":
    _main(*sys.argv[1:])
