"""The features service: wiring only."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import ClassVar

from tickwire.ring import Consumer, Producer
from tickwire.runtime import CounterSummary, HotThread
from tickwire.runtime.context import ServiceContext
from tickwire.topology import ROWS, TICKS
from tickwire.windows import WindowWriter
from tickwire_features.config import FeaturesConfig
from tickwire_features.kernels.desk import new_desk
from tickwire_features.stats import FEATURES_STATS, WARNINGS
from tickwire_features.worker import Worker


class FeaturesService:
    """Ticks in, rows and windows out."""

    name: ClassVar[str] = "features"
    config_type: ClassVar[type] = FeaturesConfig

    def __init__(self, context: ServiceContext[FeaturesConfig]) -> None:
        """Remember the surroundings."""
        self._context = context
        self._attached = ExitStack()
        self._thread: HotThread | None = None

    async def start(self) -> None:
        """Attach the outputs, then the input, and start the hot thread.

        Raises:
            ProducerAttachedError: Another features process of this prefix is alive.
            RingNotFoundError: The ticks ring did not appear in time.
            RingError: A segment is for other symbols or another release, or there is no memory or no permission.
        """
        context = self._context
        prefix, symbols = context.run.prefix, context.symbols
        stats = context.create_stats(FEATURES_STATS)
        windows = self._attached.enter_context(
            WindowWriter.attach(prefix, len(symbols), symbol_table_hash=symbols.hash)
        )
        rows = self._attached.enter_context(Producer.attach(prefix, ROWS, symbol_table_hash=symbols.hash))
        ticks = self._attached.enter_context(
            await context.when_created(
                lambda: Consumer.attach(
                    prefix,
                    TICKS,
                    name=self.name,
                    symbol_table_hash=symbols.hash,
                    wait=context.config.wait_strategy,
                    timeout_s=0.0,
                ),
                context.config.wait_for_ticks_s,
                "the ticks ring of ingest",
            )
        )
        desk = new_desk(len(symbols), context.config.batch_ticks, windows.state)
        worker = Worker(desk, ticks, rows, stats.arrays)
        self._thread = context.hot_thread("features", worker.body, worker.reattach)
        context.watch(ticks)
        context.watch_producer(rows)
        summary = CounterSummary(context.log, "features_summary", FEATURES_STATS, stats.counters, WARNINGS)
        context.tasks.spawn("summary", summary.run)
        self._thread.start()

    async def run(self) -> None:
        """Wait for the stop."""
        await self._context.stop.wait()

    async def drain(self) -> None:
        """Take the ticks that are on the ring, publish their rows, end the hot thread."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.end)

    async def close(self) -> None:
        """Detach.

        Raises:
            TickwireError: The hot thread does not end; the memory under it stays mapped.
        """
        if self._thread is not None:
            await asyncio.to_thread(self._thread.end)
        self._attached.close()
