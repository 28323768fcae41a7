"""`tickwire anchor` as a real process, with a service that follows it: together up, together down. Case O1."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tickwire.ring.segment import list_segments
from tickwire_ctl.segments import owner_pid
from waiting import eventually

TINY = Path(__file__).parents[1] / "tiny_service.py"


@pytest.fixture
def config(prefix, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        f'[run]\nprefix = "{prefix}"\nlock_memory = false\nfollow_owner = true\n[router]\nmode = "good"\n'
        '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'
    )
    return path


@pytest.fixture
def start():
    """Starts Python programs; whatever still runs afterwards is killed."""
    started = []

    def run(*command: object) -> subprocess.Popen[str]:
        line = [sys.executable, *map(str, command)]
        started.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=60)


@pytest.fixture
def start_anchor(start, prefix, config):
    """Starts an anchor and waits until it owns the prefix and its segments."""

    def run() -> subprocess.Popen[str]:
        anchor = start("-m", "tickwire_ctl", "anchor", "--config", config)
        eventually(lambda: owner_pid(prefix) == anchor.pid or anchor.poll() is not None)
        eventually(lambda: f"{prefix}.windows" in list_segments(prefix) or anchor.poll() is not None)
        assert anchor.poll() is None
        return anchor

    return run


def events(process) -> list[dict]:
    out, err = process.communicate(timeout=60)
    assert err == ""
    return [json.loads(line) for line in out.splitlines()]


def test_anchor_creates_all_segments_and_removes_them(prefix, start_anchor):
    """Rings, symbols and windows are there while it runs, nothing after its SIGTERM."""
    anchor = start_anchor()
    names = {name.removeprefix(f"{prefix}.") for name in list_segments(prefix)}
    assert {"owner", "symbols", "windows", "ticks", "rows", "predictions", "signals"} <= names
    anchor.send_signal(signal.SIGTERM)
    assert [each["event"] for each in events(anchor)] == ["segments_created", "segments_removed"]
    assert anchor.returncode == 0
    assert list_segments(prefix) == []


def test_service_without_its_anchor_fails_at_once_with_the_remedy(start, config):
    """An end with the reason, exit code 1, so that whoever supervises it tries again."""
    service = start(TINY, "--config", config)
    failed = next(each for each in events(service) if each["event"] == "service_failed")
    assert service.returncode == 1
    assert "ipc: service:shm" in failed["error"]


@pytest.mark.parametrize("os_signal", [signal.SIGKILL, signal.SIGTERM])
def test_service_fails_after_its_anchor_however_that_ended(prefix, config, start, start_anchor, os_signal):
    """Killed or stopped, the anchor takes its followers along, each with the reason."""
    anchor = start_anchor()
    service = start(TINY, "--config", config)
    eventually(lambda: f"{prefix}.stats.router" in list_segments(prefix))
    anchor.send_signal(os_signal)
    anchor.wait(timeout=60)
    failed = next(each for each in events(service) if each["event"] == "service_failed")
    assert "its owner must live, has ended" in failed["error"]
    assert service.returncode == 1


def test_service_ends_beside_its_anchor_with_exit_code_0(prefix, config, start, start_anchor):
    """A SIGTERM of its own is an orderly end; the anchor and its segments stay."""
    anchor = start_anchor()
    service = start(TINY, "--config", config)
    eventually(lambda: f"{prefix}.stats.router" in list_segments(prefix))
    service.send_signal(signal.SIGTERM)
    events(service)
    assert service.returncode == 0
    assert f"{prefix}.ticks" in list_segments(prefix)
    anchor.send_signal(signal.SIGTERM)
    assert events(anchor)[-1]["event"] == "segments_removed"
