"""/livez, /readyz and /metrics of a service over HTTP, in its event loop; `run.endpoints` says where.

They are open before the service starts and until it has ended, so that each state can be seen. aiohttp is imported only
where there is an endpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import tickwire
from tickwire.errors import TickwireError
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.health import Health
from tickwire.runtime.lifecycle import ServiceState
from tickwire.runtime.metrics import StatsMetrics, counter_metric, escaped, gauge_metric, head

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client import CollectorRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOK_EVERY_S = 0.25
_CLOSE_WITHIN_S = 0.5


class Endpoints:
    """What answers; made by `open_endpoints`."""

    def __init__(self, context: ServiceContext[Any], registry: CollectorRegistry) -> None:
        """Prepare the answers.

        Args:
            context: The service's surroundings.
            registry: Metrics of the process (memory, file descriptors, CPU time).
        """
        self._context = context
        self._registry = registry
        self._health = Health(context)
        self._metrics: dict[int, StatsMetrics] = {}
        self._runner: web.AppRunner | None = None

    async def listen(self, host: str, port: int) -> None:
        """Bind and answer from now on.

        Raises:
            OSError: The address is taken or is not this host's.
        """
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._serve_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_CLOSE_WITHIN_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self._context.tasks.spawn("health", self._look)

    async def close(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _look(self) -> None:
        while True:
            self._health.look(monotonic_ns())
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _livez(self, _request: web.Request) -> web.Response:
        return _verdict(self._health.why_not_live(monotonic_ns()))

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _verdict(self._health.why_not_ready(monotonic_ns()))

    async def _serve_metrics(self, _request: web.Request) -> web.Response:
        from aiohttp import web
        from prometheus_client import generate_latest

        pieces = [self._own_metrics(), generate_latest(self._registry).decode()]
        for place, (spec, stats) in enumerate(tuple(self._context.stats)):
            if place not in self._metrics:
                labels = tuple(instrument.label for instrument in self._context.symbols)
                self._metrics[place] = StatsMetrics(self._context.name, spec, labels)
            for piece in self._metrics[place].pieces(stats.arrays, monotonic_ns()):
                pieces.append(piece)
                await asyncio.sleep(0)  # lets other threads and tasks have the interpreter
        return web.Response(body="".join(pieces).encode(), headers={"Content-Type": CONTENT_TYPE})

    def _own_metrics(self) -> str:
        # What the runner knows and no statistics segment counts.
        context, now_ns = self._context, monotonic_ns()
        lines = head("tickwire_build_info", "gauge", "release, and the hash of the configuration")
        lines.append(
            f'tickwire_build_info{{service="{context.name}",version="{tickwire.__version__}",'
            f'prefix="{escaped(context.run.prefix)}",config_hash="{context.run.hash}"}} 1'
        )
        state = gauge_metric(context.name, "state")
        lines += head(state, "gauge", "1 for the state that the service is in, 0 for the others")
        lines += [f'{state}{{state="{each.name}"}} {int(each is context.state)}' for each in ServiceState]
        restarts = counter_metric(context.name, "task_restarts")
        lines += [
            *head(restarts, "counter", "background tasks that were restarted"),
            f"{restarts} {context.tasks.restarts}",
        ]
        age_s = self._health.data_age_s(now_ns)
        if age_s is not None:
            age = gauge_metric(context.name, "data_age_seconds")
            lines += [*head(age, "gauge", "time since data came in, or since READY"), f"{age} {age_s!r}"]
        return "\n".join(lines) + "\n"


async def open_endpoints(context: ServiceContext[Any]) -> Endpoints | None:
    """Open a service's endpoints where the configuration has an address for it.

    Raises:
        TickwireError: The address is taken or is not this host's; names the place in the configuration.
    """
    address = context.run.table.endpoints.get(context.name)  # type: ignore[call-overload]
    if address is None:
        return None
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    endpoints = Endpoints(context, registry)
    host, _, port = address.rpartition(":")
    try:
        await endpoints.listen(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        with contextlib.suppress(OSError):
            await endpoints.close()
        reason = getattr(error, "strerror", None) or error
        raise TickwireError(
            f"{context.run.path}: endpoint {address!r} must be free and of this host: {reason} "
            f"- at `$.run.endpoints.{context.name}`"
        ) from error
    context.log.info("endpoints_opened", address=address)
    return endpoints


def _verdict(reason: str | None) -> web.Response:
    from aiohttp import web

    return web.Response(status=503 if reason else 200, text=f"{reason or 'ok'}\n")
