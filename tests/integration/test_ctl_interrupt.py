"""Ctrl-C, SIGTERM and SIGHUP at the moments at which a command is not yet, or no longer, in its main loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from signal_processes import SYMBOLS, signals_of
from tickwire.kernel.cache import cache_folder, is_compiled
from tickwire.records import SignalKind
from tickwire.ring import Producer
from tickwire.ring.header import request_stop
from tickwire.ring.segment import SHM_FOLDER, list_segments
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.topology import SIGNALS
from tickwire_ctl.host import KERNEL_MODULES
from tickwire_ctl.interrupt import Interrupt

WATCHDOG_S = 60.0


@pytest.fixture
def interrupt():
    """An `Interrupt` in this process; the handlers it replaces come back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        yield Interrupt()
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Command:
    """`tickwire ...` as a process, its imports reported on stderr as they are done."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "tickwire_ctl", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def wait_for(self, text: str) -> None:
        """Wait for a line on stderr that holds a text."""
        assert self.popen.stderr is not None
        seen = []
        for line in self.popen.stderr:
            if text in line:
                return
            seen.append(line)
        raise AssertionError(f"no {text!r} in {seen[-20:]}")

    def end(self, os_signal: signal.Signals) -> tuple[int, str, str]:
        """Send a signal; return exit code, output, and errors without the imports."""
        self.popen.send_signal(os_signal)
        out, err = self.popen.communicate(timeout=WATCHDOG_S)
        errors = [line for line in err.splitlines(keepends=True) if not line.startswith("import time:")]
        return self.popen.returncode, out, "".join(errors)


@pytest.fixture
def command():
    """Starts commands; none of them outlives the test."""
    started: list[Command] = []

    def start(*arguments: str, **environment: str) -> Command:
        started.append(Command(*arguments, **environment))
        return started[-1]

    yield start
    for one in started:
        one.popen.kill()
        one.popen.communicate()


def test_interrupt_flag_is_set_by_the_first_and_hurries_from_the_second(interrupt):
    """Nothing is raised outside `immediate`; the second request is told from the first."""
    assert not interrupt.requested
    os.kill(os.getpid(), signal.SIGHUP)
    assert interrupt.wait(WATCHDOG_S)
    assert (interrupt.requested, interrupt.hurried()) == (True, False)
    os.kill(os.getpid(), signal.SIGTERM)
    assert interrupt.hurried()


def test_interrupt_immediate_raises_what_comes_and_what_came_before(interrupt):
    """Within `immediate` a request ends what is under way; an earlier one does so at its beginning."""
    with interrupt.immediate(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    reached = False
    with pytest.raises(KeyboardInterrupt), interrupt.immediate():
        reached = True
    assert not reached
    os.kill(os.getpid(), signal.SIGINT)
    assert interrupt.count == 2, "outside it is a flag again"


@pytest.mark.parametrize("os_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_demo_interrupted_while_it_imports_ends_cleanly(command, os_signal):
    """The first second of a command is imports: no traceback, exit code 0, nothing started."""
    demo = command("demo")
    demo.wait_for("numpy.version")
    code, out, err = demo.end(os_signal)
    assert (code, err) == (0, "")
    assert "nothing to sum up" in out


@pytest.mark.slow
@pytest.mark.parametrize(("name", "os_signal"), [("demo", signal.SIGINT), ("up", signal.SIGTERM)])
def test_command_interrupted_while_kernels_compile_ends_cleanly(command, name, os_signal, prefix, tmp_path):
    """The minute of the first compilation can be left at once, with its processes, before anything is made."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for module in KERNEL_MODULES:  # all that is compiled but the router's
        if is_compiled(module) and not module.startswith("tickwire_router"):
            folder = cache_folder(module)
            if not (cache / folder.name).exists():
                (cache / folder.name).symlink_to(folder)
    settings = [f'run.prefix="{prefix}"', f"run.state_dir='{tmp_path}'"] if name == "up" else []
    arguments = [part for setting in settings for part in ("--set", setting)]
    started = command(name, *arguments, TICKWIRE_KERNEL_CACHE=str(cache))
    started.wait_for("compiled 1 of")
    code, _, err = started.end(os_signal)
    assert (code, "Traceback" in err) == (0, False), err
    assert list_segments(prefix if name == "up" else f"demo-{started.popen.pid}") == []
    assert [path for path in Path("/proc").glob("[0-9]*/environ") if _mentions(path, str(cache))] == []


def _mentions(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except OSError:
        return False  # it has ended


def test_tail_interrupted_while_it_waits_for_a_run_ends_cleanly(command, prefix):
    """Waiting for a run to appear can be left with Ctrl-C."""
    tail = command("tail", "--prefix", prefix, "--timeout-s", "3600")
    tail.wait_for("tickwire_ctl.cli")
    assert tail.end(signal.SIGINT) == (0, "", "")


def test_tail_of_a_run_that_is_over_prints_everything_that_was_published(prefix):
    """The end of the run is not the end of the output: what is on the ring, behind any number of barriers, is shown."""
    publish_symbols(prefix, SYMBOLS)
    count = 5000
    records = signals_of(1, count)
    records["kind"][1000:4000] = SignalKind.BARRIER
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        producer.publish(records)
        request_stop(prefix, SIGNALS)
        done = subprocess.run(
            [sys.executable, "-m", "tickwire_ctl", "tail", "--prefix", prefix, "--oldest", "--json"],
            capture_output=True,
            text=True,
            timeout=WATCHDOG_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == int(np.count_nonzero(records["kind"] != SignalKind.BARRIER))


def test_down_of_a_dead_run_waits_for_services_that_still_end(prefix):
    """Segments of a run whose supervisor was killed go when the last lock on them is free, and not before."""
    command = [sys.executable, "-m", "tickwire_ctl", "down", "--prefix", prefix]

    def down(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)

    with Producer.attach(prefix, SIGNALS):
        refused = down("--timeout-s", "0")
        assert refused.returncode == 1
        assert f"processes of another run are alive on {prefix}.signals.ctl" in refused.stderr
        assert {f"{prefix}.signals", f"{prefix}.signals.ctl"} <= set(list_segments(prefix))
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out, _ = waiting.communicate(timeout=WATCHDOG_S)
    assert waiting.returncode == 0
    assert "segments of a dead run" in out
    assert not [path for path in SHM_FOLDER.iterdir() if path.name.startswith(f"{prefix}.")]
