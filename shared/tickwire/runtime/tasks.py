"""Long-lived tasks of a service's event loop: none dies unseen.

I1  A task that raises or returns is named in the log and restarted after a back-off, or it fails the service.
I2  The supervisor holds every task, so that none is garbage-collected.
I3  `stop` ends every task for good, also one that answers its cancellation by returning or raising.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tickwire.errors import TickwireError
from tickwire.runtime.backoff import Backoff


class TaskLog(Protocol):
    """What the supervisor needs of a logger."""

    def warning(self, event: str, **values: Any) -> Any:
        """Log a degradation."""

    def error(self, event: str, **values: Any) -> Any:
        """Log a fault."""


class Supervisor:
    """Runs named coroutines for as long as the service lives."""

    def __init__(self, log: TaskLog, fail: Callable[[BaseException], None]) -> None:
        """Remember where to log and how to fail the service."""
        self._log = log
        self._fail = fail
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.restarts = 0

    def spawn(self, name: str, run: Callable[[], Awaitable[None]], *, restart: Backoff | None = None) -> None:
        """Start a task that is meant to run until it is cancelled.

        Args:
            name: Its name in the log.
            run: Makes the coroutine, anew at each restart.
            restart: How to restart it; None fails the service when it dies.

        Raises:
            ValueError: The name is in use.
        """
        if name in self._tasks:
            raise ValueError(f"task {name!r}: must be spawned once")
        self._tasks[name] = asyncio.get_running_loop().create_task(self._supervise(name, run, restart), name=name)

    async def stop(self) -> None:
        """Cancel all tasks and wait for them."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]], restart: Backoff | None) -> None:
        while True:
            started = time.monotonic()
            fault = await self._fault_of(name, run)
            if fault is None:
                return
            if restart is None:
                self._log.error("task_died", task=name, error=repr(fault))
                self._fail(TickwireError(f"task {name!r} died: {fault!r}"))
                return
            restart.ran_for(time.monotonic() - started)
            delay_s = restart.next_delay_s()
            self.restarts += 1
            self._log.warning(
                "task_restarted", task=name, error=repr(fault), attempt=restart.attempts, delay_s=round(delay_s, 3)
            )
            await asyncio.sleep(delay_s)

    async def _fault_of(self, name: str, run: Callable[[], Awaitable[None]]) -> BaseException | None:
        # Runs it once; None when `stop` ended it, in whatever way it took that (I3).
        task = asyncio.current_task()
        assert task is not None
        try:
            await run()
            fault: BaseException = TickwireError(f"task {name!r}: must run until it is cancelled, returned")
        except asyncio.CancelledError as error:
            fault = error  # without `stop`, something that it awaited was cancelled: a death like any other
        except Exception as error:  # noqa: BLE001 - whatever ends a task is reported and answered here
            fault = error
            if task.cancelling():
                self._log.warning("task_cleanup_failed", task=name, error=repr(error))
        return None if task.cancelling() else fault
