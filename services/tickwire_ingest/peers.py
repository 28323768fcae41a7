"""Waiting for the services that must be READY before the first tick."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tickwire.errors import FeedError, RingNotFoundError
from tickwire.runtime import ServiceState, StatsReader
from tickwire.runtime.clock import monotonic_ns

FRESH_S = 2.0
_LOOK_EVERY_S = 0.02


async def wait_until_ready(prefix: str, services: Sequence[str], timeout_s: float) -> None:
    """Return when all services are READY with a fresh heartbeat.

    Raises:
        FeedError: Names the services that were not in time.
    """
    deadline = time.monotonic() + timeout_s
    missing = list(services)
    while missing:
        missing = [service for service in missing if not is_ready(prefix, service)]
        if missing and time.monotonic() > deadline:
            raise FeedError(
                f"replay: {', '.join(missing)} must be READY before the first tick, not so within {timeout_s:g} s; "
                "see `$.ingest.wait_for`"
            )
        if missing:
            await asyncio.sleep(_LOOK_EVERY_S)


def is_ready(prefix: str, service: str) -> bool:
    """Say whether a service of this prefix is READY and its event loop turns."""
    try:
        reader = StatsReader.attach(prefix, service)
    except RingNotFoundError:
        return False
    try:
        return reader.state is ServiceState.READY and monotonic_ns() - reader.heartbeat_ns < FRESH_S * 1e9
    finally:
        reader.close()
