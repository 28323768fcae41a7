"""The router service: wiring only."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import ClassVar

from tickwire.client import SignalReader
from tickwire.ring import Consumer, Producer, Start
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.runtime import Backoff, CounterSummary, HotThread
from tickwire.runtime.context import ServiceContext
from tickwire.topology import PREDICTIONS, SIGNALS
from tickwire_router.config import RouterConfig
from tickwire_router.kernels.desk import Desk, new_desk
from tickwire_router.kill_watch import KillWatch
from tickwire_router.orders import LogAdapter, OrderAdapter
from tickwire_router.stats import ROUTER_STATS, WARNINGS
from tickwire_router.worker import Worker

ORDERS_READER = "router-orders"
"""Name of the order adapter's reader of the signals ring."""


class RouterService:
    """Predictions in, signals out."""

    name: ClassVar[str] = "router"
    config_type: ClassVar[type] = RouterConfig

    def __init__(self, context: ServiceContext[RouterConfig]) -> None:
        """Remember the surroundings."""
        self._context = context
        self._attached = ExitStack()
        self._thread: HotThread | None = None

    async def start(self) -> None:
        """Attach the output, then the input; read the kill switch before the first signal.

        Raises:
            ConfigError: A rule names a symbol that the run does not have, or a quantity is not whole increments.
            ProducerAttachedError: Another router of this prefix is alive.
            RingNotFoundError: The predictions ring did not appear in time.
            RingError: A segment is for other symbols or another release, or there is no memory or no permission.
        """
        context = self._context
        rules = context.config.rules(context.symbols)
        prefix, symbol_table_hash = context.run.prefix, context.symbols.hash
        stats = context.create_stats(ROUTER_STATS)
        desk = new_desk(
            rules,
            context.config.max_age_us * 1000,
            context.config.max_signals_per_s,
            context.run.closed_loop,
            stats.arrays,
        )
        publish_symbols(prefix, context.symbols)
        signals = self._attached.enter_context(Producer.attach(prefix, SIGNALS, symbol_table_hash=symbol_table_hash))
        context.watch_producer(signals)
        predictions = self._attached.enter_context(
            await context.when_created(
                lambda: Consumer.attach(
                    prefix,
                    PREDICTIONS,
                    name=self.name,
                    symbol_table_hash=symbol_table_hash,
                    wait=context.config.wait_strategy,
                    start=Start.OLDEST,
                    timeout_s=0.0,
                ),
                context.config.wait_for_predictions_s,
                "the predictions ring of inference",
            )
        )
        context.watch(predictions)
        with Consumer.attach(prefix, SIGNALS, name="router", start=Start.OLDEST) as published:
            worker = Worker(desk, predictions, signals, published)
        self._watch_kill_file(desk)
        self._start_orders()
        summary = CounterSummary(context.log, "router_summary", ROUTER_STATS, stats.counters, WARNINGS)
        context.tasks.spawn("summary", summary.run)
        self._thread = context.hot_thread("router", worker.body, worker.reattach)
        self._thread.start()

    async def run(self) -> None:
        """Wait for the stop."""
        await self._context.stop.wait()

    async def drain(self) -> None:
        """Route the predictions that are on the ring, end the hot thread."""
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

    def _watch_kill_file(self, desk: Desk) -> None:
        # Without restart: a router that does not see the kill switch must not go on.
        context = self._context
        watch = KillWatch(context.run.state_dir, context.symbols, desk, context.log)
        watch.look()
        context.tasks.spawn("kill_watch", watch.run)

    def _start_orders(self) -> None:
        context = self._context
        if context.config.order_adapter == "none":
            return
        adapter: OrderAdapter = LogAdapter(context.log)

        async def run() -> None:
            with SignalReader(context.run.prefix, name=ORDERS_READER) as signals:
                await adapter.run(signals)

        context.tasks.spawn("orders", run, restart=Backoff())
