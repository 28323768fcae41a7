"""What the runner hands to a service: configuration, log, tasks, statistics, and ways to stop and to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import structlog

from tickwire.errors import RingNotFoundError
from tickwire.records import SymbolTable
from tickwire.ring import Consumer, Producer
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.config import RunConfig
from tickwire.runtime.hot_thread import HotThread
from tickwire.runtime.lifecycle import ServiceState
from tickwire.runtime.realtime import schedule_fifo
from tickwire.runtime.stats import Stats, StatsSpec
from tickwire.runtime.tasks import Supervisor

C = TypeVar("C")
T = TypeVar("T")

_LOOK_EVERY_S = 0.01

GENERATION_INTERVAL_S = 0.25
HEARTBEAT_INTERVAL_S = 0.1


class ServiceContext(Generic[C]):
    """One service's surroundings. Lives in the event loop's thread, except `fail`, which any thread may call."""

    def __init__(self, name: str, run: RunConfig, config: C) -> None:
        """Bind everything to the running event loop."""
        self.name = name
        self.run = run
        self.config = config
        self.symbols: SymbolTable = run.symbols
        self.log: Any = structlog.get_logger().bind(service=name, instance=run.prefix)
        self.stop = asyncio.Event()
        """Set when the service is to end."""
        self.failure: BaseException | None = None
        self.tasks = Supervisor(self.log, self.fail)
        self._loop = asyncio.get_running_loop()
        self._warned_not_realtime = False
        self.state = ServiceState.STARTING
        self.state_mono_ns = monotonic_ns()
        """When the state was entered."""
        self.stats: list[tuple[StatsSpec, Stats]] = []
        """What this service counts, and what each of it means."""
        self._consumers: list[Consumer] = []
        self._producers: list[Producer] = []

    def create_stats(self, spec: StatsSpec) -> Stats:
        """Create this service's statistics segment; the runner keeps state and heartbeat in it."""
        stats = Stats.create(
            self.run.prefix, self.name, spec, tuple(instrument.label for instrument in self.run.symbols)
        )
        self.stats.append((spec, stats))
        return stats

    def watch(self, consumer: Consumer) -> None:
        """Compare the consumer's generation every 250 ms from now on."""
        self._consumers.append(consumer)

    def watch_producer(self, producer: Producer) -> None:
        """Keep the producer's heartbeat from now on."""
        self._producers.append(producer)

    def hot_thread(
        self, name: str, body: Callable[[int], int], on_reattach: Callable[[], None] | None = None
    ) -> HotThread:
        """Make a hot thread whose death fails the service; the caller starts and stops it.

        It runs under SCHED_FIFO where `run.fifo_priority` has the service; where that is not permitted, one warning of
        the service says why.
        """
        return HotThread(name, body, on_start=self._schedule_thread, on_reattach=on_reattach, on_failure=self.fail)

    async def when_created(self, attach: Callable[[], T], wait_s: float, what: str) -> T:
        """Return what `attach` returns once the segments it needs exist.

        The waiting is the event loop's, in short attempts, so that an os_signal ends it.

        Args:
            attach: Raises `RingNotFoundError` as long as something is missing; must not wait itself.
            wait_s: How long.
            what: What is waited for, and who creates it, for the message.

        Raises:
            RingNotFoundError: It did not appear in time.
        """
        deadline_s = self._loop.time() + wait_s
        while True:
            try:
                return attach()
            except RingNotFoundError as error:
                if self._loop.time() >= deadline_s:
                    raise RingNotFoundError(
                        f"{self.name}: {what} must appear within {wait_s:g} s, did not; "
                        f"is it running with prefix {self.run.prefix!r} and this /dev/shm?"
                    ) from error
            await asyncio.sleep(_LOOK_EVERY_S)

    def fail(self, error: BaseException) -> None:
        """Make the service FAILED with this error; the first one counts. Any thread."""

        def record() -> None:
            if self.failure is None:
                self.failure = error
            self.stop.set()

        self._loop.call_soon_threadsafe(record)

    def _schedule_thread(self) -> None:
        # In the hot thread.
        priority = self.run.table.fifo_priority.get(self.name)  # type: ignore[call-overload]
        if priority is None:
            return
        reason = schedule_fifo(priority)
        if reason is not None:
            self._loop.call_soon_threadsafe(self._warn_not_realtime, priority, reason)

    def _warn_not_realtime(self, priority: int, reason: str) -> None:
        # Once, however many hot threads there are.
        if not self._warned_not_realtime:
            self._warned_not_realtime = True
            self.log.warning("realtime_not_permitted", fifo_priority=priority, reason=reason)

    def set_state(self, state: ServiceState) -> None:
        """Publish the state in the statistics."""
        self.state, self.state_mono_ns = state, monotonic_ns()
        for _, stats in self.stats:
            stats.set_state(state)

    async def beat(self) -> None:
        """Keep heartbeats and look for replaced rings; a task of the runner."""
        turn = 0
        while True:
            for _, stats in self.stats:
                stats.heartbeat()
            for producer in self._producers:
                producer.heartbeat()
            if turn % round(GENERATION_INTERVAL_S / HEARTBEAT_INTERVAL_S + 0.5) == 0:
                for consumer in self._consumers:
                    consumer.check_generation()
            turn += 1
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)

    def close(self) -> None:
        """Unmap the statistics; their segment stays."""
        for _, stats in self.stats:
            stats.close()
        self.stats.clear()
