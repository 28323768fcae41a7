"""The service runner as a real process: states, os_signals, exit codes, drains, dying tasks and threads. Case A1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tickwire.errors import RingNotFoundError
from tickwire.runtime import ServiceState, StatsReader
from waiting import eventually

PROGRAM = Path(__file__).parents[1] / "tiny_service.py"
SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'


class Process:
    """One tiny service."""

    def __init__(self, prefix: str, tmp_path: Path, mode: str, *, drain_timeout_s: float = 30.0, extra=()) -> None:
        self.prefix = prefix
        config = tmp_path / "tiny.toml"
        config.write_text(
            f'[run]\nprefix = "{prefix}"\ndrain_timeout_s = {drain_timeout_s}\nlock_memory = false\n'
            f'[router]\nmode = "{mode}"\n{SYMBOL}'
        )
        command = [sys.executable, str(PROGRAM), "--config", str(config), *extra]
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def state(self) -> ServiceState | None:
        try:
            reader = StatsReader.attach(self.prefix, "router")
        except RingNotFoundError:
            return None
        try:
            return reader.state
        finally:
            reader.close()

    def until(self, state: ServiceState) -> None:
        eventually(lambda: self.state() is state or self.popen.poll() is not None, 60, state.name)
        assert self.state() is state

    def end(self, *os_signals: signal.Signals) -> tuple[int, list[dict], str]:
        """Exit code, log lines, stderr."""
        for os_signal in os_signals:
            self.popen.send_signal(os_signal)
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, [json.loads(line) for line in out.splitlines()], err

    def counter(self, name: str) -> int:
        reader = StatsReader.attach(self.prefix, "router")
        try:
            return reader.counter(name)
        finally:
            reader.close()


def events(lines: list[dict]) -> list[str]:
    return [line["event"] for line in lines]


@pytest.mark.parametrize("os_signal", [signal.SIGTERM, signal.SIGINT])
def test_os_signal_drains_and_exits_0(prefix, tmp_path, os_signal):
    """STARTING, READY, DRAINING, STOPPED; each os_signal takes the same way."""
    process = Process(prefix, tmp_path, "good")
    process.until(ServiceState.READY)
    code, lines, err = process.end(os_signal)
    assert (code, err) == (0, "")
    assert process.state() is ServiceState.STOPPED
    assert (process.counter("drained"), process.counter("closed")) == (1, 1)
    assert events(lines) == [
        "config_loaded",
        "service_ready",
        "os_signal_received",
        "service_draining",
        "service_stopped",
    ]
    assert lines[0]["service"] == "router"
    assert len(lines[0]["hash"]) == 12


def test_work_that_is_over_drains_and_exits_0(prefix, tmp_path):
    """A finished replay ends its service."""
    process = Process(prefix, tmp_path, "ends")
    assert process.end()[0] == 0
    assert process.state() is ServiceState.STOPPED


def test_os_signal_while_starting_ends_the_start(prefix, tmp_path):
    """SIGTERM is honoured while a service waits for something that never comes."""
    process = Process(prefix, tmp_path, "never_starts")
    process.until(ServiceState.STARTING)
    code, lines, _ = process.end(signal.SIGTERM)
    assert code == 0
    assert "service_ready" not in events(lines)


def test_drain_is_bounded_by_its_timeout(prefix, tmp_path):
    """A drain that never ends is cut after run.drain_timeout_s, and that is said."""
    process = Process(prefix, tmp_path, "slow_drain", drain_timeout_s=0.05)
    process.until(ServiceState.READY)
    code, lines, _ = process.end(signal.SIGTERM)
    assert code == 0
    assert next(line for line in lines if line["event"] == "drain_cut_short")["forced"] is False
    assert process.counter("closed") == 1


def test_second_os_signal_forces_the_end(prefix, tmp_path):
    """The first drains, the second does not wait."""
    process = Process(prefix, tmp_path, "slow_drain", drain_timeout_s=300)
    process.until(ServiceState.READY)
    process.popen.send_signal(signal.SIGTERM)
    process.until(ServiceState.DRAINING)
    code, lines, _ = process.end(signal.SIGTERM)
    assert code == 0
    assert next(line for line in lines if line["event"] == "drain_cut_short")["forced"] is True


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("start_fails", "model 'x': must exist, does not"),
        ("start_breaks", "RuntimeError('a bug')"),
        ("thread_dies", "hot thread 'worker': must run until it is stopped, returned 7"),
        ("task_dies", "task 'reader' died: ConnectionError('the venue is gone')"),
    ],
)
def test_failure_is_named_and_exits_1(prefix, tmp_path, mode, text):
    """A1: whatever dies, the service ends FAILED, saying what; never alive but silent. `close` still runs."""
    process = Process(prefix, tmp_path, mode)
    code, lines, err = process.end()
    assert (code, err) == (1, "")
    failed = lines[-1]
    assert (failed["event"], failed["level"]) == ("service_failed", "error")
    assert text in failed["error"]
    assert process.state() is ServiceState.FAILED
    assert process.counter("closed") == 1


def test_failing_close_is_logged_and_hides_nothing(prefix, tmp_path):
    """The failure that ended the service stays the one that is reported; the clean-up's own is a warning."""
    process = Process(prefix, tmp_path, "close_fails")
    code, lines, err = process.end()
    assert (code, err) == (1, "")
    assert events(lines[-2:]) == ["service_failed", "close_failed"]
    assert "model 'x'" in lines[-2]["error"]
    assert "bad clean-up" in lines[-1]["error"]
    assert process.state() is ServiceState.FAILED
    assert process.counter("closed") == 1


def test_output_that_nobody_reads_neither_holds_the_service_nor_its_end(prefix, tmp_path):
    """A5: with a full pipe for its output the service becomes READY and answers SIGTERM; lines are dropped."""
    process = Process(prefix, tmp_path, "talks", extra=("--set", 'run.log_level="debug"'))
    process.until(ServiceState.READY)
    process.popen.send_signal(signal.SIGTERM)
    assert process.popen.wait(60) == 0
    assert process.state() is ServiceState.STOPPED
    assert process.popen.stdout is not None
    assert process.popen.stderr is not None
    text = process.popen.stdout.read()
    assert len(text) < 20_000 * 500
    process.popen.stdout.close()
    process.popen.stderr.close()


def test_task_with_back_off_is_restarted_and_named(prefix, tmp_path):
    """A1: a task that may fail is restarted, and each time named; the service lives."""
    process = Process(prefix, tmp_path, "task_restarts")
    process.until(ServiceState.READY)
    eventually(lambda: process.counter("turns") >= 3, 60, "three turns of the task")
    assert process.state() is ServiceState.READY
    code, lines, _ = process.end(signal.SIGTERM)
    assert code == 0
    restarted = [line for line in lines if line["event"] == "task_restarted"]
    assert len(restarted) >= 2
    assert restarted[0]["task"] == "reader"
    assert "the venue is gone" in restarted[0]["error"]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ('router.mode = "no"', "Invalid enum value 'no' - at `$.router.mode`"),
        ("router.cores = 1", "unknown field `cores` - at `$.router`"),
        ("run.cores = { router = [9999] }", "must be among the allowed"),
        ("nonsense", "must be a TOML assignment"),
    ],
)
def test_wrong_configuration_is_one_line_and_exits_2(prefix, tmp_path, setting, text):
    """File and place on stderr, no traceback, nothing in shared memory."""
    process = Process(prefix, tmp_path, "good", extra=("--set", setting))
    code, lines, err = process.end()
    assert code == 2
    assert lines == []
    assert text in err
    assert len(err.splitlines()) == 1
    assert process.state() is None


def test_missing_configuration_is_one_line_and_exits_2(tmp_path):
    """The file's name and what the system says of it."""
    command = [sys.executable, str(PROGRAM), "--config", str(tmp_path / "no.toml")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"router: {tmp_path}/no.toml: cannot be read: No such file or directory\n"


def test_child_ends_with_its_parent(prefix, tmp_path):
    """--parent: after a kill -9 of the parent the service drains and ends by itself."""
    program = (
        "import subprocess, sys, os, time\n"
        "child = subprocess.Popen([*sys.argv[1:], '--parent', str(os.getpid())])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    config = tmp_path / "tiny.toml"
    config.write_text(f'[run]\nprefix = "{prefix}"\n{SYMBOL}')
    command = [sys.executable, str(PROGRAM), "--config", str(config)]
    parent = subprocess.Popen([sys.executable, "-c", program, *command], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    eventually(lambda: Path(f"/dev/shm/{prefix}.stats.router").exists(), 60, "the statistics segment")
    reader = StatsReader.attach(prefix, "router")
    eventually(lambda: reader.state is ServiceState.READY, 60, "READY")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    eventually(lambda: reader.state is ServiceState.STOPPED, 60, "STOPPED")
    eventually(lambda: not _alive(pid), 60, "the child's end")
    reader.close()
    parent.stdout.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
