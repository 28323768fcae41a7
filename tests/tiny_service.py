"""A small service for tests of the runner: `python tests/tiny_service.py --config FILE`. Its mode is in `[router]`."""

from __future__ import annotations

import asyncio
import sys
from typing import ClassVar, Literal

import msgspec

from tickwire.errors import EngineError
from tickwire.runtime import Backoff, CounterFamily, StatsSpec
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.service import run_service

TINY_STATS = StatsSpec(
    counters={name: name for name in ("turns", "drained", "closed", "kind_a", "kind_b")},
    gauges={"worker_turn_mono_ns": "last turn of the worker", "longest_ns": "longest turn", "depth": "any value"},
    histograms={"work": "begin to end"},
    per_symbol={"ticks": "ticks of the symbol", "book_valid": "1 or 0"},
    symbol_gauges=frozenset({"book_valid"}),
    families=(CounterFamily(prefix="kind_", name="things", label="kind", help="things by kind"),),
    data_counter="turns",
)


class TinyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong, and where."""

    mode: Literal[
        "good",
        "ends",
        "start_fails",
        "start_breaks",
        "thread_dies",
        "task_dies",
        "task_restarts",
        "slow_drain",
        "never_starts",
        "close_fails",
        "talks",
    ] = "good"


class TinyService:
    """Does as it is told."""

    name: ClassVar[str] = "router"
    config_type: ClassVar[type] = TinyConfig

    def __init__(self, context: ServiceContext[TinyConfig]) -> None:
        """Create the statistics."""
        self._context = context
        self._stats = context.create_stats(TINY_STATS)

    async def start(self) -> None:
        """Start, or not."""
        mode = self._context.config.mode
        if mode in ("start_fails", "close_fails"):
            raise EngineError("model 'x': must exist, does not")
        if mode == "start_breaks":
            raise RuntimeError("a bug")
        if mode == "never_starts":
            await asyncio.Event().wait()
        if mode == "talks":
            for _ in range(20_000):
                self._context.log.debug("chatter", text="x" * 500)
        if mode == "thread_dies":
            self._context.hot_thread("worker", lambda _stop: 7).start()
        if mode == "task_dies":
            self._context.tasks.spawn("reader", self._die)
        if mode == "task_restarts":
            self._context.tasks.spawn("reader", self._die, restart=Backoff(first_s=0.001, cap_s=0.001))

    async def run(self) -> None:
        """Wait, or end."""
        if self._context.config.mode != "ends":
            await self._context.stop.wait()

    async def drain(self) -> None:
        """Drain, or never come back."""
        self._stats.counters[1] += 1
        if self._context.config.mode == "slow_drain":
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Count."""
        self._stats.counters[2] += 1
        if self._context.config.mode == "close_fails":
            raise OSError("bad clean-up")

    async def _die(self) -> None:
        self._stats.counters[0] += 1
        raise ConnectionError("the venue is gone")


if __name__ == "__main__":
    sys.exit(run_service(TinyService))
