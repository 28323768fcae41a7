"""SCHED_FIFO for hot threads: which have it, what is refused, what is said where it is not permitted."""

from __future__ import annotations

import os
import threading

import pytest
import structlog

from tickwire.errors import ConfigError
from tickwire.ring import WaitStrategy
from tickwire.runtime import HotThread, load
from tickwire.runtime.config import load_run
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.realtime import check_fifo, schedule_fifo
from tickwire_ctl.host import Host
from tickwire_ctl.options import DEFAULT_CONFIG
from tiny_service import TinyConfig
from waiting import eventually

PRIORITY = "[run.fifo_priority]\nfeatures = 50\n"
SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'
CORES = "[run.cores]\nfeatures = [0, 1]\n"
END_TIMEOUT_S = 60.0


def run_of(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text + SYMBOL)
    return load_run(path)


@pytest.mark.parametrize("value", [0, 100, '"high"'])
def test_fifo_priority_out_of_bounds_is_refused_by_place(tmp_path, value):
    """1 to 99, as sched_setscheduler(2) has it."""
    with pytest.raises(ConfigError, match=r"at `\$\.run\.fifo_priority"):
        run_of(tmp_path, f"[run.fifo_priority]\nrouter = {value}\n")


def test_fifo_priority_of_a_service_without_hot_threads_is_refused(tmp_path):
    """Ingest has an event loop only: a priority would do nothing."""
    path = tmp_path / "run.toml"
    path.write_text("[run.fifo_priority]\ningest = 50\n")
    with pytest.raises(ConfigError, match=r"'ingest'.*`key` in `\$\.run\.fifo_priority"):
        load(path, "router", TinyConfig)


def test_check_fifo_spinning_without_cores_names_the_place(tmp_path):
    """A real-time thread that never sleeps must not take a core that others need."""
    run = run_of(tmp_path, PRIORITY)
    with pytest.raises(
        ConfigError, match=r"run\.toml: .*`\$\.run\.fifo_priority\.features`.*`\$\.run\.cores\.features`"
    ):
        check_fifo(run, "features", WaitStrategy.SPIN)


def test_check_fifo_pinned_or_sleeping_or_another_service_passes(tmp_path):
    """Only the combination is refused."""
    check_fifo(run_of(tmp_path, PRIORITY + CORES), "features", WaitStrategy.SPIN)
    run = run_of(tmp_path, PRIORITY)
    check_fifo(run, "features", WaitStrategy.PARK)
    check_fifo(run, "router", WaitStrategy.SPIN)
    check_fifo(run, "ingest", None)


def test_schedule_fifo_sets_the_calling_thread_alone():
    """Neither the process's first thread nor threads started by the real-time one have it."""
    seen: dict[str, object] = {}

    def body(_stop: int) -> int:
        seen["policy"] = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
        seen["priority"] = os.sched_getparam(0).sched_priority
        child = threading.Thread(target=lambda: seen.update(child=os.sched_getscheduler(0)))
        child.start()
        child.join()
        return 0

    thread = HotThread(
        "hot", body, on_start=lambda: seen.update(reason=schedule_fifo(3)), on_failure=lambda _error: None
    )
    thread.start()
    assert thread.join(END_TIMEOUT_S)
    if seen["reason"] is not None:
        assert "RLIMIT_RTPRIO must be 3 or more" in str(seen["reason"])
        pytest.skip(f"not permitted here: {seen['reason']}")
    assert seen == {"reason": None, "policy": os.SCHED_FIFO, "priority": 3, "child": os.SCHED_OTHER}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_schedule_fifo_not_permitted_names_limit_and_errno(monkeypatch):
    """The reason says what to change."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    reason = schedule_fifo(50)
    assert reason is not None
    assert reason.startswith("sched_setscheduler: EPERM, Operation not permitted; RLIMIT_RTPRIO must be 50 or more")


async def test_context_hot_threads_not_permitted_warn_once(tmp_path, monkeypatch):
    """Two threads of a service, one warning, and both loops run."""
    monkeypatch.setattr("tickwire.runtime.context.schedule_fifo", lambda _: "the reason")
    with structlog.testing.capture_logs() as lines:
        context: ServiceContext[None] = ServiceContext("features", run_of(tmp_path, PRIORITY), None)
        threads = [context.hot_thread(name, lambda _stop: 7) for name in ("first", "second")]
        for thread in threads:
            thread.start()
        for thread in threads:
            assert thread.join(END_TIMEOUT_S)
        await context.stop.wait()  # both have returned, which fails the service after the warning was queued
    assert [line for line in lines if line["event"] == "realtime_not_permitted"] == [
        {
            "event": "realtime_not_permitted",
            "log_level": "warning",
            "fifo_priority": 50,
            "reason": "the reason",
            "service": "features",
            "instance": "tickwire",
        }
    ]


async def test_context_hot_thread_without_priority_is_left_alone(tmp_path, monkeypatch):
    """Nothing is asked of the kernel for a service without an entry."""
    asked: list[int] = []
    monkeypatch.setattr("tickwire.runtime.context.schedule_fifo", asked.append)
    context: ServiceContext[None] = ServiceContext("router", run_of(tmp_path, PRIORITY), None)
    thread = context.hot_thread("router", lambda _stop: 7)
    thread.start()
    eventually(lambda: not thread.alive, END_TIMEOUT_S, "the thread's end")
    assert asked == []


def test_host_spinning_real_time_service_without_cores_is_refused_before_anything_starts():
    """`tickwire up` reads the rule that the service would fail by."""
    overrides = ('run.prefix = "refused"', "run.fifo_priority.features = 50", 'features.wait_strategy = "spin"')
    with pytest.raises(ConfigError, match=r"\$\.run\.fifo_priority\.features"):
        Host(DEFAULT_CONFIG, overrides, log_dir=None, event=lambda *_: None)
