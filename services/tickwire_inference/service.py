"""The inference service: loads and warms an engine, attaches to its rings, runs scheduler and engine thread."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import ClassVar

from tickwire.errors import EngineError
from tickwire.ring import Consumer, Producer, Start
from tickwire.ring.producer import REPLAY_STALL_TIMEOUT_MS
from tickwire.runtime import CounterSummary, HotThread
from tickwire.runtime.context import ServiceContext
from tickwire.topology import PREDICTIONS, ROWS
from tickwire.windows import WindowReader
from tickwire_inference.activation import ActivationDesk
from tickwire_inference.breaker import Breaker
from tickwire_inference.config import InferenceConfig
from tickwire_inference.engine_thread import EngineThread
from tickwire_inference.engines import HostEngine, load_engine, load_fallbacks, load_model
from tickwire_inference.kernels.desk import Desk, new_desk
from tickwire_inference.lineup import Lineup
from tickwire_inference.scheduler import Scheduler
from tickwire_inference.stats import INFERENCE_STATS, WARNINGS

CONSUMER_NAME = "inference"
"""Name of the consumer of the rows ring."""

_LOOK_EVERY_S = 0.01
_GENERATION_INTERVAL_S = 0.25


class InferenceService:
    """Wiring only."""

    name: ClassVar[str] = "inference"
    config_type: ClassVar[type] = InferenceConfig

    def __init__(self, context: ServiceContext[InferenceConfig]) -> None:
        """Keep the context; `start` does the rest."""
        self._context = context
        self._lineup: Lineup | None = None
        self._scheduler: Scheduler | None = None
        self._threads: list[HotThread] = []
        self._ends: list[Consumer | Producer] = []

    async def start(self) -> None:
        """Load and warm the engine first, so that a missing model leaves nothing behind; then attach and start.

        Raises:
            EngineError: The model cannot be used.
            ConfigError: An override names a symbol that the run does not have.
            RingError: Rows, windows or predictions cannot be attached.
        """
        context = self._context
        ranks = context.config.ranks(context.symbols)
        models_dir = context.run.resolve(context.config.models_dir)
        lineup, run_times_ns = await asyncio.to_thread(self._line_up, models_dir)
        self._lineup = lineup
        desk = self._new_desk(ranks, lineup.window_rows)
        scheduler = await self._attach(desk)
        scheduler.expect(run_times_ns)
        self._scheduler = scheduler
        self._threads = [
            context.hot_thread("scheduler", scheduler.body, scheduler.reattach),
            context.hot_thread("engine", EngineThread(desk, lineup, context.log, context.config.wait_strategy).body),
        ]
        for thread in self._threads:
            thread.start()
        context.tasks.spawn("generations", self._watch_generations)
        activation = ActivationDesk(
            context.run.state_dir, lineup, desk, functools.partial(load_model, models_dir), context.log
        )
        context.tasks.spawn("activation", activation.run)
        summary = CounterSummary(context.log, "inference_summary", INFERENCE_STATS, desk.counters, WARNINGS)
        context.tasks.spawn("summary", summary.run)

    async def run(self) -> None:
        """Wait for the stop; the threads do the work."""
        await self._context.stop.wait()

    async def drain(self) -> None:
        """Take no more rows, answer what waits, publish it."""
        if self._scheduler is None or not self._threads:
            return
        self._scheduler.request_drain()
        while not self._scheduler.drained:  # noqa: ASYNC110 - the answer comes from a thread that knows no event loop
            await asyncio.sleep(_LOOK_EVERY_S)

    async def close(self) -> None:
        """Stop the threads, then detach.

        Raises:
            TickwireError: A thread does not end; its memory stays mapped.
        """
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            await asyncio.to_thread(thread.end)
        self._threads.clear()
        if self._scheduler is not None:
            self._scheduler.close()
        for end in self._ends:
            end.close()
        self._ends.clear()
        if self._lineup is not None:
            self._lineup.close()
            self._lineup = None

    # Engines loaded and warmed; run times of the one that serves first.
    def _line_up(self, models_dir: Path) -> tuple[Lineup, tuple[int, ...]]:
        config, log = self._context.config, self._context.log
        primary: HostEngine | None = None
        try:
            primary = load_engine(config, models_dir)
            run_times_ns = self._warm(primary)
        except EngineError as error:
            if config.engine_missing == "refuse":
                raise
            primary = None
            log.error("engine_missing", engine=config.engine, model=config.model, reason=str(error))
        fallbacks = load_fallbacks(config, models_dir)
        fallback_times_ns = [self._warm(engine) for engine in fallbacks]
        breaker = Breaker(config.breaker_timeouts, config.breaker_cooldown_ms * 1_000_000)
        return Lineup(primary, fallbacks, breaker), run_times_ns if primary is not None else fallback_times_ns[0]

    def _warm(self, engine: HostEngine) -> tuple[int, ...]:
        run_times_ns = engine.warm_up()
        self._context.log.info(
            "engine_loaded",
            model=engine.label,
            engine=engine.kind.name.lower(),
            window_rows=engine.window_rows,
            bucket_times_us=[round(time_ns / 1000) for time_ns in run_times_ns],
        )
        return run_times_ns

    def _new_desk(self, ranks: list[int], window_rows: int) -> Desk:
        context = self._context
        stats = context.create_stats(INFERENCE_STATS)
        return new_desk(
            [context.config.budget_of_ns(rank) for rank in ranks],
            [rank * context.config.ageing_us * 1000 for rank in ranks],
            window_rows,
            context.run.closed_loop,
            stats.arrays,
        )

    # Rows before windows: what features writes in between is then in both, and known when it comes from the ring.
    async def _attach(self, desk: Desk) -> Scheduler:
        context = self._context
        prefix, symbol_table_hash = context.run.prefix, context.symbols.hash
        stall_timeout_ms = REPLAY_STALL_TIMEOUT_MS if context.run.closed_loop else context.config.stall_timeout_ms
        predictions = Producer.attach(
            prefix, PREDICTIONS, symbol_table_hash=symbol_table_hash, stall_timeout_ms=stall_timeout_ms
        )
        self._ends.append(predictions)
        context.watch_producer(predictions)
        rows = await context.when_created(
            lambda: Consumer.attach(
                prefix,
                ROWS,
                name=CONSUMER_NAME,
                symbol_table_hash=symbol_table_hash,
                wait=context.config.wait_strategy,
                start=Start.HEAD,
                timeout_s=0,
            ),
            context.config.wait_for_rows_s,
            "the rows ring of features",
        )
        self._ends.append(rows)
        store = await context.when_created(
            lambda: WindowReader.attach(prefix, symbol_table_hash=symbol_table_hash, timeout_s=0),
            context.config.wait_for_rows_s,
            "the windows store of features",
        )

        def attach_store() -> WindowReader:
            return WindowReader.attach(prefix, symbol_table_hash=symbol_table_hash)

        return Scheduler(desk, rows, predictions, store, attach_store)

    async def _watch_generations(self) -> None:
        assert self._scheduler is not None
        while True:
            if self._scheduler.check_generation():
                self._context.log.warning("rows_replaced")
            await asyncio.sleep(_GENERATION_INTERVAL_S)
