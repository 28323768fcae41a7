"""Hot threads: how they stop, reattach and fail."""

from __future__ import annotations

import ctypes
import threading

import pytest

from tickwire.errors import RingLayoutError, TickwireError
from tickwire.ring.kernels import REATTACH
from tickwire.runtime import HotThread
from waiting import eventually


def until_stopped(stop_address: int) -> int:
    """What a compiled loop does: turn until the stop word is set."""
    eventually(lambda: ctypes.c_uint64.from_address(stop_address).value, 60, "the stop word")
    return -1


def test_hot_thread_stop_ends_the_loop_without_a_failure():
    """I1: the stop word of this thread, and of no other, ends the loop; the thread carries its name."""
    failures: list[BaseException] = []
    names: list[str] = []

    def body(stop_address: int) -> int:
        names.append(threading.current_thread().name)
        return until_stopped(stop_address)

    thread, other = (HotThread(name, body, on_failure=failures.append) for name in ("worker", "other"))
    thread.start()
    other.start()
    thread.end()
    assert (thread.alive, other.alive) == (False, True)
    other.end()
    assert sorted(names) == ["other", "worker"]
    assert failures == []


def test_hot_thread_reattaches_in_the_thread_between_two_runs():
    """I3: REATTACH is answered in the thread while the loop does not run, then the loop runs again."""
    codes, order, failures = iter([REATTACH, REATTACH]), [], []
    running = threading.Event()

    def body(stop_address: int) -> int:
        order.append("run")
        code = next(codes, None)
        if code is not None:
            return code
        running.set()
        return until_stopped(stop_address)

    def reattach() -> None:
        order.append(threading.current_thread().name)

    thread = HotThread("worker", body, on_reattach=reattach, on_failure=failures.append)
    thread.start()
    assert running.wait(60)
    thread.end()
    assert order == ["run", "worker", "run", "worker", "run"]
    assert failures == []


def broken(_stop_address: int) -> int:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (broken, ZeroDivisionError, ""),
        (lambda _stop: 0, TickwireError, "hot thread 'worker': must run until it is stopped, returned 0"),
        (lambda _stop: REATTACH, TickwireError, "hot thread 'worker': must run until it is stopped, returned -2"),
    ],
    ids=["raises", "returns", "reattach_nobody_answers"],
)
def test_hot_thread_that_dies_reports_its_failure(body, kind, text):
    """I2: an exception is handed on as it is, an unexpected return as an error that names the thread."""
    failures: list[BaseException] = []
    thread = HotThread("worker", body, on_failure=failures.append)
    thread.start()
    assert thread.join(60)
    (failure,) = failures
    assert isinstance(failure, kind)
    assert text in str(failure)


def test_hot_thread_failing_reattach_is_its_failure():
    """I2: a ring that cannot be reattached ends the thread with that error; the loop does not run again."""
    failures: list[BaseException] = []
    runs: list[int] = []

    def reattach() -> None:
        raise RingLayoutError("ring 'x': of another release")

    def body(stop_address: int) -> int:
        runs.append(stop_address)
        return REATTACH

    thread = HotThread("worker", body, on_reattach=reattach, on_failure=failures.append)
    thread.start()
    assert thread.join(60)
    assert [type(failure) for failure in failures] == [RingLayoutError]
    assert len(runs) == 1


def test_hot_thread_that_was_never_started_can_be_ended():
    """A start-up that fails before the thread runs takes the same way out."""
    HotThread("worker", broken, on_failure=pytest.fail).end()


def test_hot_thread_that_does_not_end_is_an_error_by_name(monkeypatch):
    """What still runs uses memory that must stay mapped: `end` says so instead of returning."""
    monkeypatch.setattr("tickwire.runtime.hot_thread.END_TIMEOUT_S", 0.0)
    let_go = threading.Event()
    thread = HotThread("deaf", lambda _stop: int(let_go.wait(60)), on_failure=pytest.fail)
    thread.start()
    with pytest.raises(TickwireError, match="hot thread 'deaf': must end when told to"):
        thread.end()
    let_go.set()
    assert thread.join(60)
