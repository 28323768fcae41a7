"""Long-lived tasks: none dies unseen, none outlives `stop`. Case A1."""

from __future__ import annotations

import asyncio
import random

import pytest

from tickwire.runtime import Backoff, Supervisor


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict]] = []
        self.news = asyncio.Event()

    def warning(self, event, **values):
        self.lines.append(("warning", event, values))
        self.news.set()

    def error(self, event, **values):
        self.lines.append(("error", event, values))
        self.news.set()

    async def until(self, count: int) -> None:
        """Wait for so many lines."""
        while len(self.lines) < count:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)


async def raises() -> None:
    raise ConnectionError("gone")


async def returns() -> None:
    pass


async def loses_a_future() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


DEATHS = [
    (raises, "ConnectionError('gone')"),
    (returns, "task 'reader': must run until it is cancelled, returned"),
    (loses_a_future, "CancelledError()"),
]


@pytest.mark.parametrize(("body", "text"), DEATHS)
async def test_supervisor_dead_task_without_restart_fails_the_service_by_name(body, text):
    """A1, I1: raising, returning and a cancellation that nobody asked for are all deaths; each names the task."""
    failures, log = [], Log()
    supervisor = Supervisor(log, failures.append)
    supervisor.spawn("reader", body)
    await log.until(1)
    ((level, event, values),) = log.lines
    assert (level, event, values["task"]) == ("error", "task_died", "reader")
    assert text in values["error"]
    (failure,) = failures
    assert "task 'reader' died" in str(failure)
    assert text in str(failure)
    await supervisor.stop()


@pytest.mark.parametrize(("body", "text"), DEATHS)
async def test_supervisor_dead_task_with_back_off_is_named_and_restarted(body, text):
    """A1, I1: it runs again after each death, as a new coroutine; the log has name, cause, attempt and delay."""
    log = Log()
    supervisor = Supervisor(log, lambda error: pytest.fail(str(error)))
    supervisor.spawn("reader", body, restart=Backoff(first_s=0.0001, cap_s=0.0002))
    await log.until(3)
    for attempt, (level, event, values) in enumerate(log.lines[:3], 1):
        assert (level, event, values["task"], values["attempt"]) == ("warning", "task_restarted", "reader", attempt)
        assert text in values["error"]
        assert values["delay_s"] <= 0.0002
    assert supervisor.restarts == len(log.lines)
    await supervisor.stop()


async def test_supervisor_restarts_wait_as_long_as_the_back_off_says(monkeypatch):
    """The delays between attempts are the back-off's, and double."""
    delays: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        delays.append(delay_s)
        await real_sleep(0)

    monkeypatch.setattr("tickwire.runtime.tasks.asyncio.sleep", sleep)
    log = Log()
    supervisor = Supervisor(log, lambda error: pytest.fail(str(error)))
    supervisor.spawn("reader", raises, restart=Backoff(first_s=1.0, cap_s=4.0, dice=random.Random(1)))
    await log.until(4)
    await supervisor.stop()
    twin = Backoff(first_s=1.0, cap_s=4.0, dice=random.Random(1))
    assert delays[:3] == [twin.next_delay_s() for _ in range(3)]


async def test_supervisor_name_in_use_is_refused():
    """A name in the log means one task."""
    supervisor = Supervisor(Log(), lambda error: pytest.fail(str(error)))
    supervisor.spawn("reader", asyncio.Event().wait)
    with pytest.raises(ValueError, match="task 'reader': must be spawned once"):
        supervisor.spawn("reader", asyncio.Event().wait)
    await supervisor.stop()


async def waits() -> None:
    await asyncio.Event().wait()


async def waits_and_returns() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


async def waits_and_raises() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("bad clean-up")


@pytest.mark.parametrize("restart", [None, Backoff()], ids=["fails", "restarts"])
@pytest.mark.parametrize(
    ("body", "events"), [(waits, []), (waits_and_returns, []), (waits_and_raises, ["task_cleanup_failed"])]
)
async def test_supervisor_stop_ends_every_task_for_good(body, events, restart):
    """However a task takes its cancellation, it ends, is not restarted, and fails nothing; bad clean-up is logged."""
    log = Log()
    supervisor = Supervisor(log, lambda error: pytest.fail(str(error)))
    supervisor.spawn("reader", body, restart=restart)
    await asyncio.sleep(0)
    await asyncio.wait_for(supervisor.stop(), 60)
    assert [event for _, event, _ in log.lines] == events
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_backoff_doubles_up_to_its_cap_with_jitter_and_forgets():
    """Exponential, between half and all of the step, capped; a steady run starts anew."""
    backoff = Backoff(first_s=1.0, cap_s=8.0, steady_s=30.0, dice=random.Random(1))
    delays = [backoff.next_delay_s() for _ in range(8)]
    for delay, whole in zip(delays, (1, 2, 4, 8, 8, 8, 8, 8), strict=True):
        assert whole / 2 <= delay <= whole
    assert len(set(delays)) == 8
    backoff.ran_for(29.0)
    assert backoff.attempts == 8
    backoff.ran_for(30.0)
    assert backoff.next_delay_s() <= 1.0
