"""The supervisor of `tickwire up` and `tickwire demo`, on stand-ins for the services."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from stub_services import SERVICES, behave, install
from tickwire.errors import RingError, RingNotFoundError, TickwireError
from tickwire.ring.segment import list_segments
from tickwire.runtime import StatsReader
from tickwire_ctl.child import CRASH_LIMIT, Child
from tickwire_ctl.host import Host
from waiting import eventually

CONFIG = Path(__file__).parents[2] / "deploy" / "config" / "demo.toml"
WATCHDOG_S = 60.0


class Run:
    """A host of stand-ins, with what it told."""

    def __init__(self, prefix: str, folder: Path, monkeypatch, *, to_files: bool = True, **behaviour: str) -> None:
        self.folder = folder / "stubs"
        self.folder.mkdir(exist_ok=True)
        monkeypatch.setenv("PYTHONPATH", install(self.folder, **behaviour))
        self.events: list[tuple[str, str]] = []
        self.hurried = False
        self.host = Host(
            CONFIG,
            [f'run.prefix = "{prefix}"', f"run.state_dir = '{folder}'", "run.drain_timeout_s = 0.5"],
            log_dir=folder / "logs" if to_files else None,
            event=self._event,
            hurried=lambda: self.hurried,
        )

    def _event(self, name, values) -> None:
        self.events.append((name, str(values.get("process", ""))))

    def __enter__(self) -> Run:
        self.host.start()
        return self

    def __exit__(self, *_) -> None:
        self.host.stop()

    def watch_until(self, happened) -> None:
        """Watch as `tickwire up` does until something has happened."""

        def look() -> bool:
            self.host.watch()
            return bool(happened())

        eventually(look, WATCHDOG_S, "what the supervisor is to see")

    def all_ready(self) -> Run:
        self.watch_until(lambda: all(self._is_ready(service) for service in SERVICES))
        return self

    def _is_ready(self, service: str) -> bool:
        try:
            reader = StatsReader.attach(self.host.run.prefix, service)
        except RingNotFoundError:
            return False
        with contextlib.closing(reader):
            return reader.was_ready and reader.pid == self.host.children[service].pid

    def pids(self) -> dict[str, int | None]:
        return {service: child.pid for service, child in self.host.children.items()}

    def ended(self) -> list[str]:
        file = self.folder / "ended"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def start(prefix, tmp_path, monkeypatch):
    return lambda **behaviour: Run(prefix, tmp_path, monkeypatch, **behaviour)


def test_host_stop_ends_services_along_the_path_and_leaves_nothing(start, prefix):
    """I1, I2: ingest ends first and the router last; no segment and no process is left."""
    with start() as run:
        run.all_ready()
        pids = run.pids()
        assert len(set(pids.values())) == 4
        assert list_segments(prefix)
    assert [event for event in run.events if event[0] == "process_started"] == [
        ("process_started", service) for service in reversed(SERVICES)
    ]
    assert run.ended() == list(SERVICES)
    assert list_segments(prefix) == []
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("service", SERVICES)
def test_host_killed_service_is_restarted_and_the_others_stay(start, service):
    """I1 of the child: a process that dies is told of, started again, and nobody else notices."""
    with start() as run:
        before = run.all_ready().pids()
        os.kill(before[service], signal.SIGKILL)
        run.watch_until(lambda: ("process_restarted", service) in run.events)
        assert ("process_died", service) in run.events
        after = run.pids()
        assert after[service] not in (None, before[service])
        assert {name: pid for name, pid in after.items() if name != service} == {
            name: pid for name, pid in before.items() if name != service
        }


def test_host_service_that_ends_unasked_is_restarted(start):
    """I3: exit code 0 that nobody asked for is a death, so that no run goes on without one of its services."""
    with start() as run:
        before = run.all_ready().pids()
        os.kill(before["features"], signal.SIGTERM)
        run.watch_until(lambda: ("process_restarted", "features") in run.events)
        assert not run.host.finished


def test_host_ingest_that_ends_is_the_end_of_the_run(start):
    """I3: the end of the captures is a finish, not a fault."""
    with start(ingest="exit 0") as run:
        run.watch_until(lambda: run.host.finished)
        assert ("process_finished", "ingest") in run.events
        assert not [event for event in run.events if event[0] == "process_died"]


def test_host_fault_before_ready_is_one_clear_error(start, prefix):
    """I2 of the child: what is missing at the start ends the run at once, with the service's own error."""
    with pytest.raises(TickwireError) as raised, start(inference="exit 1") as run:
        run.watch_until(lambda: False)
    assert str(raised.value) == "service 'inference': ended with exit code 1: inference has no fuel"
    assert not [event for event in run.events if event[0] == "process_restarted"]
    assert list_segments(prefix) == []


def test_host_wrong_configuration_is_not_repeated(start):
    """I2 of the child: exit code 2 ends the run, also when the service was READY before."""
    with start() as run:
        run.all_ready()
        behave(run.folder, "router", "exit 2")
        os.kill(run.pids()["router"], signal.SIGKILL)
        with pytest.raises(TickwireError, match=r"service 'router': ended with exit code 2 after 1 restarts: router"):
            run.watch_until(lambda: False)


def test_host_fault_after_ready_is_restarted(start):
    """I1 of the child: a service that has been READY may have bad luck."""
    with start(features="exit 1 ready") as run:
        run.all_ready()
        (run.folder / "go").touch()
        run.watch_until(lambda: ("process_died", "features") in run.events)
        behave(run.folder, "features", "serve")
        run.watch_until(lambda: ("process_restarted", "features") in run.events and run.pids()["features"])


def test_host_crash_loop_ends_the_run_naming_the_process(start, prefix):
    """I1 of the child: a service that keeps dying is given up after `CRASH_LIMIT` restarts."""
    run = start(router="killed")
    with run, pytest.raises(TickwireError, match=f"'router'.*SIGKILL after {CRASH_LIMIT} restarts"):
        run.watch_until(lambda: False)
    names = [name for name, process in run.events if process == "router"]
    assert names == ["process_started", *["process_died", "process_restarted"] * CRASH_LIMIT]
    assert list_segments(prefix) == []


def test_host_output_that_is_handed_on_is_named_in_the_error(start, capfd):
    """Without log files the services' lines appear as they are, and the error still says why."""
    with pytest.raises(TickwireError, match=r"exit code 1: ingest has no fuel$"):
        with start(to_files=False, ingest="exit 1") as run:
            run.watch_until(lambda: False)
    out = capfd.readouterr().out
    assert '"event":"last words of ingest"}\n' in out


def test_host_second_request_ends_services_without_draining(start):
    """A second Ctrl-C is passed on; a service that drains for long ends by it."""
    with start(features="stubborn") as run:
        run.all_ready()
        run.hurried = True
    assert run.ended() == list(SERVICES)


def test_host_service_that_does_not_end_is_killed(start, prefix):
    """I1: not even a service that hears nothing stays behind."""
    with start(inference="deaf") as run:
        pid = run.all_ready().pids()["inference"]
    assert run.ended() == ["ingest", "features", "router"]
    assert not Path(f"/proc/{pid}").exists()
    assert list_segments(prefix) == []


def test_host_second_one_of_a_prefix_is_refused_and_the_first_goes_on(start, prefix):
    """One owner a prefix: the second is told whose it is, removes nothing and starts nothing."""
    with start() as first:
        before = first.all_ready().pids()
        segments = list_segments(prefix)
        with pytest.raises(RingError, match=rf"prefix '{prefix}'.*pid {os.getpid()} is alive"):
            with start() as second:
                second.watch_until(lambda: False)
        assert list_segments(prefix) == segments
        assert first.pids() == before


def test_child_never_started_can_be_ended(tmp_path):
    """An end in the middle of a start finds services that do not run yet."""
    child = Child("router", CONFIG, [], tmp_path / "router.log")
    child.terminate()
    child.join(0.0)
    assert child.pid is None
