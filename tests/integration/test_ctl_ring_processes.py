"""`tickwire ring` beside real processes: live ones lose nothing, killed ones leave nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tickwire.ring.inspect import inspect_ring
from tickwire.ring.segment import list_segments
from tickwire.topology import RINGS, SIGNALS
from waiting import eventually

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "config" / "demo.toml"
WATCHDOG_S = 60.0


def tickwire(*arguments: str) -> str:
    """The output of a `tickwire ring` command in a process of its own."""
    command = [sys.executable, "-m", "tickwire_ctl", "ring", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@contextmanager
def router(prefix: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is the producer of a signals ring until it is killed."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "signal_processes.py"), prefix, "100", "10"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_rm_stale_live_and_stopped_producers_lose_nothing_killed_ones_leave_nothing(prefix):
    """I2: a lock counts while its process exists, even stopped; SIGKILL frees it, and then all segments go."""
    with router(prefix) as process:
        before = list_segments(prefix)
        assert len(before) == 3
        for os_signal in (signal.SIGCONT, signal.SIGSTOP):
            os.kill(process.pid, os_signal)
            text = tickwire("rm", "--stale", "--prefix", prefix)
            assert f"left {prefix}.signals: a process is alive on {prefix}.signals.ctl" in text
            assert list_segments(prefix) == before
        os.kill(process.pid, signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        assert inspect_ring(prefix, SIGNALS).published == 100
        process.kill()
        process.wait()
        assert f"removed 3 segments of {prefix!r}" in tickwire("rm", "--stale", "--prefix", prefix)
    assert list_segments(prefix) == []


def test_watch_prints_a_table_a_look_and_ends_at_ctrl_c(prefix):
    """`--count` looks are printed; without it the first SIGINT ends the command without a traceback."""
    with router(prefix):
        text = tickwire("watch", "--prefix", prefix, "--interval-s", "0.05", "--count", "3")
        assert text.count("lossy") == 3
        process = subprocess.Popen(
            [sys.executable, "-m", "tickwire_ctl", "ring", "watch", "--prefix", prefix, "--interval-s", "0.05"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout.readline() != ""
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=WATCHDOG_S)
            assert (process.returncode, err) == (0, "")
        finally:
            process.kill()
            process.communicate()


@pytest.mark.slow
def test_rm_stale_running_host_is_left_and_a_killed_one_removed(prefix, tmp_path):
    """I2, I3: all rings of a live host are listed and stay; SIGKILL of everything leaves no segment after `rm`."""
    command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(CONFIG)]
    settings = (f'run.prefix = "{prefix}"', f"run.state_dir = '{tmp_path}'", 'inference.engine = "rule"')
    for setting in settings:
        command += ["--set", setting]
    log = tmp_path / "host.log"
    with log.open("wb") as stream:
        host = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:

        def flowing() -> bool:
            assert host.poll() is None, log.read_text()
            view = inspect_ring(prefix, SIGNALS)
            return view is not None and view.published > 0

        eventually(flowing, WATCHDOG_S, "the first signal")
        rows = {row["name"]: row for row in json.loads(tickwire("ls", "--json", "--prefix", prefix))}
        assert set(rows) == {f"{prefix}.{spec.name}" for spec in RINGS}
        assert all(row["producer_alive"] for row in rows.values())
        assert rows[f"{prefix}.ticks"]["rate_per_s"] > 0
        (features,) = rows[f"{prefix}.ticks"]["consumers"]
        assert (features["name"], features["alive"], features["lost"]) == ("features", True, 0)
        before = list_segments(prefix)
        text = tickwire("rm", "--stale", "--prefix", prefix)
        assert text.count("left ") == len(before)
        assert list_segments(prefix) == before
        published = inspect_ring(prefix, SIGNALS).published
        eventually(lambda: inspect_ring(prefix, SIGNALS).published > published, WATCHDOG_S, "further signals")
    finally:
        host.kill()
        host.wait()
    # The services end themselves when their parent is gone; their locks go with them.
    eventually(
        lambda: "removed " in tickwire("rm", "--stale", "--prefix", prefix) and not list_segments(prefix),
        WATCHDOG_S,
        "the removal",
    )
