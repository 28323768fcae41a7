"""The ingest service: captures in, ticks out."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import ClassVar

from tickwire.errors import TickwireError
from tickwire.ring import Consumer, Producer
from tickwire.ring.producer import REPLAY_STALL_TIMEOUT_MS
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.context import ServiceContext
from tickwire.topology import SIGNALS, TICKS
from tickwire_ingest.complaints import Complaints
from tickwire_ingest.config import IngestConfig
from tickwire_ingest.desk import COUNTER, Desk
from tickwire_ingest.feed import Feed
from tickwire_ingest.feeds import make_feed
from tickwire_ingest.merge import Source, check_sources
from tickwire_ingest.peers import wait_until_ready
from tickwire_ingest.publisher import BarrierWait, Publisher
from tickwire_ingest.replay import Replay
from tickwire_ingest.stats import INGEST_STATS

_JOIN_S = 5.0
_SUMMARY_EVERY_S = 1.0


class IngestService:
    """Replays captures from a thread of its own; the event loop watches."""

    name: ClassVar[str] = "ingest"
    config_type: ClassVar[type] = IngestConfig

    def __init__(self, context: ServiceContext[IngestConfig]) -> None:
        """Prepare; `start` attaches."""
        self._context = context
        self._stats = context.create_stats(INGEST_STATS)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._producer: Producer | None = None
        self._signals: Consumer | None = None
        self._sources = [
            Source(place, context.run.resolve(config.path), config)
            for place, config in enumerate(context.config.captures)
        ]

    async def start(self) -> None:
        """Check the captures, attach, wait for the services behind."""
        context, run = self._context, self._context.run
        check_sources(self._sources)
        closed = context.config.pace == "closed"
        if closed != run.closed_loop:
            raise TickwireError("ingest: `$.ingest.pace` must be closed exactly when `$.run.closed_loop` is true")
        table_hash = context.symbols.hash
        self._producer = Producer.attach(
            run.prefix, TICKS, symbol_table_hash=table_hash, stall_timeout_ms=REPLAY_STALL_TIMEOUT_MS
        )
        context.watch_producer(self._producer)
        if closed:
            self._signals = await asyncio.to_thread(
                Consumer.attach, run.prefix, SIGNALS, name="ingest", symbol_table_hash=table_hash
            )
            context.watch(self._signals)
        await wait_until_ready(run.prefix, context.config.wait_for, context.config.wait_for_s)

    async def run(self) -> None:
        """Replay until the end of the captures."""
        context = self._context
        assert self._producer is not None
        stats = self._stats
        publisher = Publisher(self._producer, self._stop, stats.arrays)
        desk = Desk(
            context.symbols,
            publisher.publish,
            counters=stats.counters,
            per_symbol=stats.per_symbol,
            book_levels=context.config.book_levels,
        )
        desk.clock = monotonic_ns
        complaints = Complaints(context.log, time.monotonic)

        def make_feeds() -> list[Feed]:
            return [make_feed(source.config, desk, source.path, complaints) for source in self._sources]

        replay = Replay(
            context.config,
            self._sources,
            desk,
            make_feeds,
            self._producer,
            self._stop,
            stats.gauges,
            stats.histograms[INGEST_STATS.histogram("late_emission")],
            BarrierWait(self._signals, self._stop, stats.arrays) if self._signals is not None else None,
        )
        context.tasks.spawn("summary", self._summarise)
        over = asyncio.Event()

        def body() -> None:
            try:
                replay.run()
            except Exception as error:  # noqa: BLE001 - the thread's end is the service's, whatever it is
                context.fail(error)
            loop.call_soon_threadsafe(over.set)

        loop = asyncio.get_running_loop()
        context.log.info(
            "replay_started", captures=[source.path.name for source in self._sources], pace=context.config.pace
        )
        self._thread = threading.Thread(target=body, name="feed", daemon=True)
        self._thread.start()
        await over.wait()
        context.log.info("replay_finished", events=int(stats.counters[COUNTER["events"]]))

    async def drain(self) -> None:
        """Stop the feed thread; what it published stays for features."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _JOIN_S)

    async def close(self) -> None:
        """Detach, unless the feed thread still runs: then the process's exit does it."""
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            return
        for attached in (self._producer, self._signals):
            if attached is not None:
                attached.close()

    async def _summarise(self) -> None:
        # One line a second at most, and only when something happened.
        names = ("events", "ticks", "gap_ticks", "checksum_failures", "corrupt_lines", "unknown_lines", "back_pressure")
        before = dict.fromkeys(names, 0)
        while True:
            await asyncio.sleep(_SUMMARY_EVERY_S)
            now = {name: int(self._stats.counters[COUNTER[name]]) for name in names}
            if now != before:
                self._context.log.info("ticks_published", **{name: now[name] - before[name] for name in names})
            before = now
