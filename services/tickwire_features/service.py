"""The features service: wiring only."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import ClassVar

from tickwire.errors import RingNotFoundError, TickwireError
from tickwire.ring import Consumer, Producer
from tickwire.runtime import HotThread, Stats
from tickwire.runtime.context import ServiceContext
from tickwire.topology import ROWS, TICKS
from tickwire.windows import WindowWriter
from tickwire_features.config import FeaturesConfig
from tickwire_features.kernels.desk import new_desk
from tickwire_features.stats import FEATURES_STATS, StatsArrays
from tickwire_features.summary import Summary
from tickwire_features.worker import Worker

_LOOK_EVERY_S = 0.01
_SUMMARY_EVERY_S = 1.0
_JOIN_TIMEOUT_S = 5.0


class FeaturesService:
    """Ticks in, rows and windows out."""

    name: ClassVar[str] = "features"
    config_type: ClassVar[type] = FeaturesConfig

    def __init__(self, context: ServiceContext[FeaturesConfig]) -> None:
        """Remember the surroundings."""
        self._context = context
        self._stats: Stats | None = None
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
        ticks = self._attached.enter_context(await self._attach_ticks())
        arrays = StatsArrays(stats.counters, stats.gauges, stats.histograms, stats.per_symbol)
        desk = new_desk(len(symbols), context.config.batch_ticks, windows.state)
        worker = Worker(desk, ticks, rows, arrays)
        self._thread = context.hot_thread("features", worker.body, worker.reattach)
        self._stats = stats
        context.watch(ticks)
        context.watch_producer(rows)
        context.tasks.spawn("summary", self._summarise)
        self._thread.start()

    async def run(self) -> None:
        """Wait for the stop."""
        await self._context.stop.wait()

    async def drain(self) -> None:
        """Take the ticks that are on the ring, publish their rows, end the hot thread."""
        if self._thread is not None:
            self._thread.stop()
            await asyncio.to_thread(self._thread.join, _JOIN_TIMEOUT_S)

    async def close(self) -> None:
        """Detach.

        Raises:
            TickwireError: The hot thread does not end; the memory under it stays mapped.
        """
        if self._thread is not None:
            self._thread.stop()
            if not self._thread.join(_JOIN_TIMEOUT_S):
                raise TickwireError(
                    f"hot thread 'features': must end when told to, still ran after {_JOIN_TIMEOUT_S:g} s"
                )
        self._attached.close()

    async def _attach_ticks(self) -> Consumer:
        # In short attempts, so that a stop request ends the wait.
        context = self._context
        loop = asyncio.get_running_loop()
        deadline = loop.time() + context.config.wait_for_ticks_s
        while True:
            try:
                return Consumer.attach(
                    context.run.prefix,
                    TICKS,
                    name=self.name,
                    symbol_table_hash=context.symbols.hash,
                    wait=context.config.wait_strategy,
                    timeout_s=0.0,
                )
            except RingNotFoundError as error:
                if loop.time() >= deadline:
                    raise RingNotFoundError(
                        f"ring '{context.run.prefix}.{TICKS.name}': must exist, did not appear within "
                        f"{context.config.wait_for_ticks_s:g} s; is ingest running with this prefix and this /dev/shm?"
                    ) from error
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _summarise(self) -> None:
        assert self._stats is not None
        summary = Summary(self._context.log, self._stats)
        while True:
            await asyncio.sleep(_SUMMARY_EVERY_S)
            summary.log()
