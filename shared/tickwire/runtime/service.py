"""The runner of every service: start-up, main loop and shutdown on one screen.

STARTING  configuration, log, pinning, locked memory, kernels, `start`
READY     `run`, until it returns, an os_signal comes or something fails
DRAINING  `drain`, bounded by run.drain_timeout_s; a second os_signal ends it at once
STOPPED   `close`; exit code 0       FAILED: exit code 1, 2 for a wrong configuration
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import uvloop

from tickwire.errors import ConfigError, TickwireError
from tickwire.runtime import config as configuration
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.endpoints import Endpoints, open_endpoints
from tickwire.runtime.lifecycle import ServiceState, advance
from tickwire.runtime.log import LogWriter, configure
from tickwire.runtime.memory import lock_memory
from tickwire.runtime.owner import OwnerWatch
from tickwire.runtime.parent import follow_parent
from tickwire.runtime.pinning import pin
from tickwire.runtime.realtime import check_fifo

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2
OS_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Service(Protocol):
    """What a service implements. Its class also has `name` and `config_type`."""

    name: ClassVar[str]
    config_type: ClassVar[type]

    async def start(self) -> None:
        """Attach, load, warm up; returning means READY."""

    async def run(self) -> None:
        """Return when the work is over; wait for `context.stop` if it never is."""

    async def drain(self) -> None:
        """Stop intake, flush, publish."""

    async def close(self) -> None:
        """Detach; always called, also after a failed start."""


ServiceFactory = Callable[[ServiceContext[Any]], Service]


def run_service(factory: type[Service], argv: Sequence[str] | None = None) -> int:
    """Run a service until it ends; return the process's exit code.

    Args:
        factory: The service's class; called with its `ServiceContext`.
        argv: Command line without the program's name; None takes the process's.
    """
    arguments = _parse(factory.name, argv)
    if arguments.parent is not None and not follow_parent(arguments.parent):
        return EXIT_OK  # it ended before this process could ask
    try:
        own: Any
        run, own = configuration.load(
            arguments.config, factory.name, factory.config_type, overrides=arguments.overrides
        )
        cores = run.table.cores.get(factory.name)  # type: ignore[call-overload]
        if cores is not None:
            pin(factory.name, cores, run.path)
        check_fifo(run, factory.name, getattr(own, "wait_strategy", None))
    except ConfigError as error:
        print(f"{factory.name}: {error}", file=sys.stderr)  # noqa: T201 - there is no log before its configuration
        return EXIT_CONFIG
    writer = configure(run.table.log_format, run.table.log_level)
    try:
        return uvloop.run(_Runner(factory, run, own, writer).main())
    finally:
        writer.flush()


class _Runner:
    # Drives one service through its states.
    def __init__(self, factory: type[Service], run: configuration.RunConfig, own: Any, writer: LogWriter) -> None:
        self._factory = factory
        self._run = run
        self._own = own
        self._writer = writer
        self._state = ServiceState.STARTING
        self._forced = asyncio.Event()

    async def main(self) -> int:
        context: ServiceContext[Any] = ServiceContext(self._factory.name, self._run, self._own)
        log = context.log
        log.info("config_loaded", path=str(self._run.path), hash=self._run.hash)
        self._lock_memory(log)
        self._handle_os_signals(context)
        context.tasks.spawn("heartbeat", context.beat)
        service: Service | None = None
        endpoints: Endpoints | None = None
        owner: OwnerWatch | None = None
        try:
            if self._run.table.follow_owner:
                owner = OwnerWatch(self._run.prefix)
                context.tasks.spawn("owner", partial(self._follow, context, owner))
            endpoints = await open_endpoints(context)
            service = self._factory(context)  # type: ignore[call-arg]
            await self._unless_stopped(context, service.start())
            if not context.stop.is_set():
                self._enter(context, ServiceState.READY)
                log.info("service_ready")
                await self._unless_stopped(context, service.run())
            self._raise_failure(context)
            self._enter(context, ServiceState.DRAINING)
            log.info("service_draining")
            await self._drain(service, log)
            self._raise_failure(context)
            closing, service = service, None
            await closing.close()
            self._enter(context, ServiceState.STOPPED)
            log.info("service_stopped", dropped_log_lines=self._writer.dropped)
            return EXIT_OK
        except Exception as error:
            self._enter(context, ServiceState.FAILED)
            known = isinstance(error, TickwireError)
            log.error("service_failed", error=str(error) if known else repr(error), exc_info=None if known else error)
            return EXIT_CONFIG if isinstance(error, ConfigError) else EXIT_FAILED
        finally:
            if endpoints is not None:
                await endpoints.close()
            await context.tasks.stop()
            if service is not None:
                try:
                    await service.close()
                except Exception as error:  # noqa: BLE001 - the failure that led here is the one to report
                    log.warning("close_failed", error=repr(error))
            context.close()
            if owner is not None:
                if self._state is ServiceState.FAILED:
                    await owner.time_to_return(self._forced)
                owner.close()

    async def _follow(self, context: ServiceContext[Any], owner: OwnerWatch) -> None:
        context.fail(await owner.ended())
        await asyncio.Event().wait()  # the failure ends this task

    def _enter(self, context: ServiceContext[Any], state: ServiceState) -> None:
        self._state = advance(self._state, state)
        context.set_state(state)

    async def _unless_stopped(self, context: ServiceContext[Any], work: Any) -> None:
        # Runs until the work is over or the service is to end, whichever is first.
        running = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(context.stop.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not running.done():
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    async def _drain(self, service: Service, log: Any) -> None:
        draining = asyncio.ensure_future(service.drain())
        forced = asyncio.ensure_future(self._forced.wait())
        timeout_s = self._run.table.drain_timeout_s
        await asyncio.wait({draining, forced}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if draining.done():
            return draining.result()
        draining.cancel()
        log.warning("drain_cut_short", forced=self._forced.is_set(), drain_timeout_s=timeout_s)
        with contextlib.suppress(asyncio.CancelledError):
            await draining
        return None

    def _lock_memory(self, log: Any) -> None:
        wanted = self._run.table.lock_memory
        if wanted is False:
            return
        reason = lock_memory()
        if reason is None:
            log.info("memory_locked")
        else:
            (log.info if wanted == "auto" else log.warning)("memory_not_locked", reason=reason)

    def _raise_failure(self, context: ServiceContext[Any]) -> None:
        if context.failure is not None:
            raise context.failure

    def _handle_os_signals(self, context: ServiceContext[Any]) -> None:
        def stop(os_signal: signal.Signals) -> None:
            second = context.stop.is_set()
            context.log.info("os_signal_received", os_signal=os_signal.name, second=second)
            context.stop.set()
            if second:
                self._forced.set()

        loop = asyncio.get_running_loop()
        for os_signal in OS_SIGNALS:
            loop.add_signal_handler(os_signal, stop, os_signal)


def _parse(name: str, argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m tickwire_{name}", description=f"The Tickwire {name} service.")
    parser.add_argument("--config", type=Path, required=True, help="the TOML file of the host")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="overrides",
        metavar="KEY=VALUE",
        help="a TOML assignment that takes the place of the file's, such as 'run.prefix=\"a\"'; may be repeated",
    )
    parser.add_argument("--parent", type=int, help="end (SIGTERM) when the process of this id, the parent, ends")
    return parser.parse_args(argv)
