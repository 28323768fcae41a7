"""Parts of the runtime, each on its own: lifecycle, back-off, tasks, hot threads, pinning, log."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import threading

import pytest
import structlog

from tickwire.errors import ConfigError, TickwireError
from tickwire.ring.kernels import REATTACH
from tickwire.runtime import Backoff, HotThread, ServiceState, Supervisor
from tickwire.runtime.lifecycle import TRANSITIONS, advance
from tickwire.runtime.log import LogWriter, configure, render_json
from tickwire.runtime.pinning import pin
from waiting import eventually


def test_advance_only_documented_transitions_exist():
    """The table is the whole truth; ends are final."""
    for current, following in itertools.product(ServiceState, ServiceState):
        if following in TRANSITIONS[current]:
            assert advance(current, following) is following
        else:
            with pytest.raises(TickwireError, match=f"no way from {current.name} to {following.name}"):
                advance(current, following)
    assert not TRANSITIONS[ServiceState.STOPPED]
    assert not TRANSITIONS[ServiceState.FAILED]


def test_backoff_doubles_up_to_its_cap_with_jitter_and_forgets():
    """A3's shape: exponential, between half and all of the step, capped; a steady run starts anew."""
    backoff = Backoff(first_s=1.0, cap_s=8.0, steady_s=30.0, dice=random.Random(1))
    delays = [backoff.next_delay_s() for _ in range(8)]
    for delay, whole in zip(delays, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert whole / 2 <= delay <= whole
    assert len(set(delays)) == 8
    backoff.ran_for(29.0)
    assert backoff.attempts == 8
    backoff.ran_for(30.0)
    assert backoff.next_delay_s() <= 1.0


class Log:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def warning(self, event, **values):
        self.lines.append((event, values))

    error = warning


async def test_supervisor_dead_task_without_restart_fails_the_service_by_name():
    """A1: raising and returning are both deaths."""
    for body, text in ((_raise, "ConnectionError('gone')"), (asyncio.sleep, "must run until it is cancelled")):
        failures, log = [], Log()
        supervisor = Supervisor(log, failures.append)
        supervisor.spawn("reader", lambda body=body: body(0))
        while not failures:
            await asyncio.sleep(0)
        assert text in str(failures[0])
        assert log.lines[0][0] == "task_died"
        assert log.lines[0][1]["task"] == "reader"
        await supervisor.stop()


async def test_supervisor_restarts_by_back_off_and_stops_on_cancel():
    """A1: a restarted task is made anew each time and named; stop cancels it for good."""
    runs, log = [], Log()

    async def body() -> None:
        runs.append(1)
        if len(runs) < 4:
            raise ConnectionError("gone")
        await asyncio.Event().wait()

    supervisor = Supervisor(log, lambda error: pytest.fail(str(error)))
    supervisor.spawn("reader", body, restart=Backoff(first_s=0.0001, cap_s=0.0001))
    with pytest.raises(ValueError, match="must be spawned once"):
        supervisor.spawn("reader", body)
    while len(runs) < 4:
        await asyncio.sleep(0.001)
    assert supervisor.restarts == 3
    assert [line[0] for line in log.lines] == ["task_restarted"] * 3
    await supervisor.stop()
    assert len(runs) == 4


async def _raise(_argument: int) -> None:
    raise ConnectionError("gone")


def test_hot_thread_reattaches_between_runs_and_stops():
    """I1, I3: REATTACH is answered in the thread, then the loop runs again; a stop ends it for good."""
    codes, answered, failures = iter([REATTACH, REATTACH]), [], []
    running = threading.Event()

    def body(stop_address: int) -> int:
        assert stop_address
        code = next(codes, None)
        if code is not None:
            return code
        running.set()
        eventually(lambda: thread._stop[0], 60, "the stop word")
        return -1

    thread = HotThread(
        "worker", body, on_reattach=lambda: answered.append(threading.current_thread().name), on_failure=failures.append
    )
    thread.start()
    assert running.wait(60)
    assert thread.alive
    thread.end()
    assert not thread.alive
    assert answered == ["worker", "worker"]
    assert failures == []


def test_hot_thread_failures_are_named():
    """I2: an exception is handed on as it is, an unexpected return as an error that names the thread."""
    failures = []

    def broken(_stop: int) -> int:
        raise ZeroDivisionError

    for body in (broken, lambda _stop: 0, lambda _stop: REATTACH):
        thread = HotThread("worker", body, on_failure=failures.append)
        thread.start()
        assert thread.join(60)
    assert isinstance(failures[0], ZeroDivisionError)
    assert "hot thread 'worker': must run until it is stopped, returned 0" in str(failures[1])
    assert "returned -2" in str(failures[2])


def test_pin_core_outside_the_allowed_set_is_refused_with_the_set():
    """O5: the message has the allowed set and the place; nothing is changed."""
    before = os.sched_getaffinity(0)
    with pytest.raises(ConfigError, match=r"among the allowed 0.*, were \[0, 4096\] - at `\$\.run\.cores\.router`"):
        pin("router", [0, 4096])
    with pytest.raises(ConfigError, match=r"were \[\]"):
        pin("router", [])
    assert os.sched_getaffinity(0) == before
    try:
        pin("router", [min(before)])
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


def test_log_full_queue_drops_counts_and_tells():
    """A5: nobody reads the pipe: logging goes on at once, lines are dropped and counted, and the count is written."""
    read_end, write_end = os.pipe()
    writer = LogWriter(write_end, capacity=10)
    line = "x" * 60_000
    for _ in range(200):
        writer.write(line)
    assert writer.dropped > 150
    assert not writer.flush(0.0)
    text = b""
    while b"log_dropped" not in text:
        text += os.read(read_end, 1 << 20)
    told = json.loads(next(part for part in text.decode().splitlines() if "log_dropped" in part))
    assert told["dropped_lines"] > 150
    os.close(read_end)


def test_log_sink_that_is_gone_does_not_stop_the_process():
    """A closed pipe loses lines and nothing else."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    writer = LogWriter(write_end)
    writer.write("into the void")
    assert writer.flush(60)
    os.close(write_end)


def test_log_json_lines_hold_any_value():
    """What msgspec cannot encode is written as text; exceptions carry their traceback; levels are obeyed."""
    read_end, write_end = os.pipe()
    writer = configure("json", "info", fd=write_end)
    log = structlog.get_logger().bind(service="x")
    log.debug("not_written")
    log.info("strange", path=os, symbols={1, 2}, error=ValueError("v"))
    try:
        raise KeyError("k")
    except KeyError:
        log.exception("broken")
    assert writer.flush(60)
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        first, second = (json.loads(line) for line in lines)
    assert (first["event"], first["level"], first["service"]) == ("strange", "info", "x")
    assert "module 'os'" in first["path"]
    assert first["error"] == "v"
    assert "KeyError: 'k'" in second["exception"]
    assert json.loads(render_json({"event": object()}))["event"].startswith("<object")
    structlog.reset_defaults()
