"""The `tickwire` command on a running host, with the rule engine: supervision, endings, kill switch, tail, demo."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tickwire.ring.segment import list_segments
from tickwire.runtime import StatsReader
from tickwire_ctl.observe import observe
from tickwire_ctl.segments import owner_pid
from waiting import eventually

CONFIG = Path(__file__).parents[2] / "deploy" / "config" / "demo.toml"
SERVICES = ("ingest", "features", "inference", "router")
KEYS = {
    "ticks",
    "rows",
    "batches",
    "batch_sizes",
    "flush_reasons",
    "signals",
    "lost",
    "gaps",
    "expired",
    "stages_us",
    "tick_to_signal_us",
    "symbols",
}


def tickwire(*arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tickwire_ctl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(*arguments: str) -> tuple[int, str, str]:
    process = tickwire(*arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def settings(prefix: str, folder: Path, *more: str) -> list[str]:
    chosen = [f'run.prefix="{prefix}"', f"run.state_dir='{folder}'", 'inference.engine="rule"', *more]
    return [part for setting in chosen for part in ("--set", setting)]


class Host:
    """A running `tickwire up`, its output in a file."""

    def __init__(self, prefix: str, folder: Path, *more: str) -> None:
        self.prefix = prefix
        self.folder = folder
        self.settings = settings(prefix, folder, "ingest.repeat=true", *more)
        self.log = folder / "up.log"
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(CONFIG), *self.settings]
            self.popen = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def status(self) -> dict:
        return observe(self.prefix)

    def healthy(self) -> dict:
        def look():
            assert self.popen.poll() is None, self.log.read_text()
            seen = self.status()
            return seen if seen["health"] == "healthy" else None

        return eventually(look, 90, "a healthy host")

    def end(self, os_signal: signal.Signals | None = signal.SIGTERM) -> int:
        if os_signal is not None and self.popen.poll() is None:
            self.popen.send_signal(os_signal)
        return self.popen.wait(timeout=60)


def children_of(prefix: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            text = path.read_bytes().decode(errors="replace")
            if prefix in text and "tickwire_" in text:
                found.append(int(path.parent.name))
    return found


def nothing_left(prefix: str) -> bool:
    return not list_segments(prefix) and not children_of(prefix)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    prefix = f"test-host-{os.getpid()}"
    host = Host(prefix, tmp_path_factory.mktemp("host"))
    try:
        host.healthy()
        yield host
    finally:
        host.end()
    assert nothing_left(prefix)


def test_up_status_shows_services_rings_and_symbols(host):
    """Healthy means READY everywhere, producers alive, symbols known."""
    host.healthy()
    code, out, _ = run("status", "--config", str(CONFIG), "--prefix", host.prefix, "--json")
    assert code == 0
    seen = json.loads(out)
    assert list(seen["services"]) == list(SERVICES)
    assert {ring: view["producer_alive"] for ring, view in seen["rings"].items()} == dict.fromkeys(
        ("ticks", "rows", "predictions", "signals"), True
    )
    assert len(seen["symbols"]) == 12
    code, out, _ = run("status", "--config", str(CONFIG), "--prefix", host.prefix)
    assert code == 0
    assert "binance_usdm:BTCUSDT" in out


def test_tail_json_lines_are_signals(host):
    """Filters and count are obeyed; each line is a whole signal."""
    wanted = ("--json", "--count", "5", "--symbol", "binance_usdm:BTCUSDT")
    code, out, err = run("tail", "--config", str(CONFIG), "--prefix", host.prefix, *wanted)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 5
    assert {line["symbol"] for line in lines} == {"binance_usdm:BTCUSDT"}
    assert all(line["action"] in ("HOLD", "BUY", "SELL") for line in lines)
    code, _, err = run("tail", "--config", str(CONFIG), "--prefix", host.prefix, "--symbol", "x:Y")
    assert code == 2
    assert "symbol 'x:Y': must be one of the run's" in err


def test_second_up_with_the_prefix_is_refused_by_pid(host):
    """One owner a prefix; the first one is not disturbed."""
    code, _, err = run("up", "--config", str(CONFIG), *host.settings)
    assert code == 1
    assert f"`tickwire up` with pid {host.popen.pid} is alive" in err
    assert host.status()["health"] == "healthy"


def test_kill_and_unkill_are_confirmed_by_the_router(host):
    """While killed there is no BUY and no SELL; afterwards there are again."""

    def actions() -> int:
        reader = StatsReader.attach(host.prefix, "router")
        try:
            return reader.counter("signals_buy") + reader.counter("signals_sell")
        finally:
            reader.close()

    code, out, _ = run("kill", "--why", "drill", "--config", str(CONFIG), *host.settings)
    assert code == 0
    assert "killed everything; confirmed by the router" in out
    before, held = actions(), 0
    reader = StatsReader.attach(host.prefix, "router")
    killed = reader.counter("reason_killed_global")
    eventually(lambda: reader.counter("reason_killed_global") > killed, 60, "a signal under the kill")
    held = actions()
    assert held == before
    code, out, _ = run("unkill", "--config", str(CONFIG), *host.settings)
    assert code == 0
    assert "confirmed by the router" in out
    eventually(lambda: actions() > held, 60, "a BUY or SELL after the unkill")
    reader.close()
    code, _, err = run("kill", "no:such", "--config", str(CONFIG), *host.settings)
    assert code == 2
    assert "symbol 'no:such': must be one of the run's" in err


@pytest.mark.parametrize("service", SERVICES)
def test_killed_service_is_restarted_and_signals_flow_again(host, service):
    """Kill -9 of any process: it comes back, the others stay, signals go on."""
    before = host.healthy()["services"]
    os.kill(before[service]["pid"], signal.SIGKILL)
    eventually(lambda: host.status()["services"][service]["pid"] != before[service]["pid"], 60, f"a new {service}")
    after = host.healthy()["services"]
    for other in SERVICES:
        assert (after[other]["pid"] == before[other]["pid"]) == (other != service)
    reader = StatsReader.attach(host.prefix, "router")
    signals = reader.counter("predictions")
    eventually(lambda: reader.refresh() or reader.counter("predictions") > signals, 90, "predictions after the restart")
    reader.close()


@pytest.mark.parametrize("os_signal", [signal.SIGTERM, signal.SIGINT])
def test_up_ends_by_os_signal_with_nothing_left(prefix, tmp_path, os_signal):
    """Ctrl-C and SIGTERM drain, exit 0, and leave neither segment nor process - also in the middle of the start."""
    host = Host(prefix, tmp_path)
    eventually(lambda: owner_pid(prefix) == host.popen.pid, 60, "the owner's segment")
    assert host.end(os_signal) == 0, host.log.read_text()
    assert nothing_left(prefix)


def test_up_killed_leaves_stale_segments_that_down_removes(prefix, tmp_path):
    """Kill -9 of the supervisor: the services end by themselves; `down` cleans up after them."""
    host = Host(prefix, tmp_path)
    host.healthy()
    host.end(signal.SIGKILL)
    eventually(lambda: not children_of(prefix), 60, "the services' end")
    assert list_segments(prefix)
    code, out, _ = run("down", "--prefix", prefix)
    assert code == 0
    assert "segments of a dead run" in out
    assert nothing_left(prefix)
    code, out, _ = run("down", "--prefix", prefix)
    assert (code, out) == (0, f"nothing runs with prefix {prefix!r}\n")
    assert run("status", "--prefix", prefix)[0] == 4


def test_down_stops_a_running_host(prefix, tmp_path):
    """`down` asks, waits, and reports."""
    host = Host(prefix, tmp_path)
    eventually(lambda: owner_pid(prefix) == host.popen.pid, 60, "the owner's segment")
    code, out, _ = run("down", "--prefix", prefix)
    assert code == 0
    assert out == f"stopped {prefix!r} (pid {host.popen.pid})\n"
    assert host.end(None) == 0
    assert nothing_left(prefix)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("ingest.captures=[{path='/no/such.gz', format='kraken'}]", "capture /no/such.gz: must exist"),
        ("inference.models_dir='/no/models'", "/no/models/transformer/current"),
        ('ingest.pace="fast"', "`$.ingest"),
        ("unknown.table=1", "unknown table at `$.unknown`"),
    ],
)
def test_up_wrong_configuration_is_one_clear_error(prefix, tmp_path, setting, text):
    """A missing capture, a missing model, a wrong value: named, non-zero exit, nothing left behind."""
    chosen = settings(prefix, tmp_path, 'inference.engine="onnxruntime"', setting)
    code, out, err = run("up", "--config", str(CONFIG), *chosen)
    assert code != 0
    assert text in out + err
    assert "Traceback" not in out + err
    assert (out + err).count("process_restarted") == 0  # what a restart cannot cure is not tried again
    assert nothing_left(prefix)


def test_demo_writes_its_summary_and_leaves_nothing(tmp_path):
    """The demo's JSON has every key; nothing lost; both Binance symbols gave signals; exit 0."""
    file = tmp_path / "demo.json"
    code, out, err = run(
        "demo", "--seconds", "8", "--pace", "x4", "--json", str(file), "--set", 'inference.engine="rule"'
    )
    assert code == 0, err
    summary = json.loads(file.read_text())
    assert set(summary) >= KEYS
    assert set(summary["lost"].values()) == {0}
    assert len(summary["symbols"]) == 12
    assert sum(summary["ticks"].values()) > 20_000
    assert sum(summary["signals"].values()) == summary["signals_seen"]
    for venue in ("binance_usdm", "binance_spot"):
        assert sum(summary["symbols"][f"{venue}:BTCUSDT"]["signals"].values()) > 0
    for values in summary["symbols"].values():
        assert (values["why_no_signal"] is None) == (sum(values["signals"].values()) > 0)
    prefix = out.split("prefix ")[1].split(",")[0]
    assert nothing_left(prefix)


def test_two_demos_at_once_and_ctrl_c_after_the_first_signal(tmp_path):
    """Each has its own prefix; Ctrl-C ends one cleanly with the summary so far, and the other goes on."""
    first = tickwire("demo", "--seconds", "60", "--set", 'inference.engine="rule"')
    second = tickwire("demo", "--seconds", "6", "--json", str(tmp_path / "b.json"), "--set", 'inference.engine="rule"')
    assert first.stdout is not None
    head = first.stdout.readline()
    while "BTCUSDT" not in first.stdout.readline():
        assert first.poll() is None
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=60)
    assert first.returncode == 0
    assert "tick to signal" in out
    assert second.communicate(timeout=120)[1].count("Error") == 0
    assert second.returncode == 0
    assert json.loads((tmp_path / "b.json").read_text())["lost"]["signals"] == 0
    assert nothing_left(head.split("prefix ")[1].split(",")[0])


def test_demo_missing_json_folder_is_refused_before_anything_starts():
    """A result that could not be written is said at once."""
    code, _, err = run("demo", "--json", "/no/folder/x.json")
    assert code == 2
    assert "its folder must exist" in err
