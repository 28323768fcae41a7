"""What health says of a service, with the time as an argument; and that health itself does not die unseen. Case A1."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tickwire.runtime import ServiceState, StatsSpec
from tickwire.runtime.config import load_run
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.endpoints import open_endpoints
from tickwire.runtime.health import LIVE_WITHIN_S, Health

SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'
SPEC = StatsSpec(
    counters={"ticks": "ticks"},
    gauges={"turn_mono_ns": "last turn", "engine_turn_mono_ns": "last turn of the engine"},
    data_counter="ticks",
)
S = 1_000_000_000


@pytest.fixture
async def context(prefix, tmp_path):
    """Surroundings of a service that wants data every 10 s, with an endpoint on a port of its own."""
    path = tmp_path / "health.toml"
    path.write_text(
        f'[run]\nprefix = "{prefix}"\ndata_fresh_s = 10\nendpoints.router = "127.0.0.1:0"\n[router]\n{SYMBOL}'
    )
    made = ServiceContext("router", load_run(path), None)
    yield made
    await made.tasks.stop()
    made.close()


async def test_health_ready_counts_from_ready_and_then_from_the_last_data(context):
    """I2: READY without data is ready for `data_fresh_s`; data begins the span anew; other states are named."""
    health = Health(context)
    stats = context.create_stats(SPEC)
    assert health.why_not_ready(0) == "service 'router': must be READY, is STARTING"
    assert health.data_age_s(0) is None
    context.set_state(ServiceState.READY)
    begin = context.state_mono_ns
    health.look(begin)
    assert health.why_not_ready(begin + 10 * S) is None
    assert health.why_not_ready(begin + 12 * S) == "data: must have come within 10 s, no ticks for 12.0 s"
    stats.counters[0] += np.uint64(1)
    health.look(begin + 13 * S)
    assert health.why_not_ready(begin + 23 * S) is None
    assert health.why_not_ready(begin + 24 * S) == "data: must have come within 10 s, no ticks for 11.0 s"
    context.set_state(ServiceState.DRAINING)
    assert health.why_not_ready(begin + 14 * S) == "service 'router': must be READY, is DRAINING"


async def test_health_hanging_thread_is_named_and_one_that_has_not_begun_is_not(context):
    """I1: each thread's own gauge counts; a service without a statistics segment has no thread to hang."""
    health = Health(context)
    assert health.why_not_live(100 * S) is None
    stats = context.create_stats(SPEC)
    stats.gauges[0] = np.uint64(100 * S)
    late = 100 * S + int(LIVE_WITHIN_S * S)
    assert health.why_not_live(late) is None
    assert health.why_not_live(late + S) == "hot thread 'router': must turn within 5 s, last did 6.0 s ago"
    stats.gauges[0] = np.uint64(late + S)
    stats.gauges[1] = np.uint64(100 * S)
    assert health.why_not_live(late + S) == "hot thread 'engine': must turn within 5 s, last did 6.0 s ago"


async def test_health_task_that_dies_fails_the_service(context, monkeypatch):
    """A1: the task behind /readyz raises; the service is told, and by which task."""

    def fail(_health: Health, _now_ns: int) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Health, "look", fail)
    endpoints = await open_endpoints(context)
    await asyncio.wait_for(context.stop.wait(), 60)
    assert str(context.failure) == "task 'health' died: RuntimeError('a bug')"
    await endpoints.close()
