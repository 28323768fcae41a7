"""/livez, /readyz and /metrics of a real process over real sockets. Case A1."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tickwire.ring.segment import Segment, segment_name
from tickwire.runtime import ServiceState, StatsReader
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.stats import views
from tiny_service import TINY_STATS
from waiting import eventually

PROGRAM = Path(__file__).parents[1] / "tiny_service.py"
SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Tiny:
    """A tiny service with an endpoint."""

    def __init__(self, prefix: str, tmp_path: Path, mode: str = "good", port: int = 0, fresh_s: float = 1000.0) -> None:
        self.prefix = prefix
        self.port = port or free_port()
        self.config = tmp_path / "tiny.toml"
        self.config.write_text(
            f'[run]\nprefix = "{prefix}"\nlock_memory = false\ndata_fresh_s = {fresh_s}\n'
            f'endpoints = {{ router = "127.0.0.1:{self.port}" }}\n[router]\nmode = "{mode}"\n{SYMBOL}'
        )
        self.popen = subprocess.Popen(
            [sys.executable, str(PROGRAM), "--config", str(self.config)], stdout=subprocess.PIPE, text=True
        )

    def until(self, path: str, status: int) -> str:
        """The first answer with that status."""

        def answered():
            assert self.popen.poll() is None or status == 0
            found, text = get(self.port, path)
            return text or True if found == status else None

        return eventually(answered, 60, f"{path} {status}")

    def samples(self) -> dict:
        status, text = get(self.port, "/metrics")
        assert status == 200
        return {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(text) for s in f.samples}

    def end(self) -> list[dict]:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        out, _ = self.popen.communicate(timeout=60)
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def tiny(prefix, tmp_path):
    """Starts tiny services; ends what is left."""
    started = []

    def start(**options) -> Tiny:
        started.append(Tiny(prefix, tmp_path, **options))
        return started[-1]

    yield start
    for service in started:
        if service.popen.returncode is None:
            service.popen.kill()
            service.popen.communicate()


class Words:
    """The words of a live service's statistics, to write what its hot thread would."""

    def __init__(self, prefix: str) -> None:
        reader = StatsReader.attach(prefix, "router")
        self._segment = Segment.open(segment_name(prefix, "stats.router"), writable=True)
        self.arrays = views(self._segment, reader.description)
        reader.close()

    def turned(self, age_s: float) -> None:
        self.arrays.gauges[TINY_STATS.gauge("worker_turn_mono_ns")] = np.uint64(monotonic_ns() - int(age_s * 1e9))

    def close(self) -> None:
        self.arrays = None
        self._segment.close()


def test_endpoints_ready_service_answers_and_ends_cleanly(tiny):
    """READY: 200 and 200; metrics carry state, build and process; SIGTERM still ends it at once with exit code 0."""
    service = tiny()
    assert service.until("/readyz", 200) == "ok\n"
    assert get(service.port, "/livez") == (200, "ok\n")
    assert get(service.port, "/nothing")[0] == 404
    samples = service.samples()
    assert {state.name: samples["tickwire_router_state", state.name] for state in ServiceState} == {
        "STARTING": 0,
        "READY": 1,
        "DRAINING": 0,
        "STOPPED": 0,
        "FAILED": 0,
    }
    assert samples["process_resident_memory_bytes",] > 1e6
    assert samples["tickwire_router_task_restarts_total",] == 0
    assert samples["tickwire_router_symbol_ticks_total", "v:A"] == 0
    assert any(name == "tickwire_build_info" and labels[-1] for name, *labels in samples)
    lines = service.end()
    assert service.popen.returncode == 0
    assert lines[-1]["event"] == "service_stopped"


def test_endpoints_starting_service_lives_and_is_not_ready(tiny):
    """Before READY: alive, so that nobody restarts it, and not ready, with the reason."""
    service = tiny(mode="never_starts")
    assert service.until("/readyz", 503) == "service 'router': must be READY, is STARTING\n"
    assert get(service.port, "/livez") == (200, "ok\n")
    service.end()
    assert service.popen.returncode == 0


def test_livez_hanging_thread_is_503_and_named(tiny, prefix):
    """A1: a hot thread that does not turn is seen while the event loop still answers; it is named; it may come back."""
    service = tiny()
    service.until("/readyz", 200)
    words = Words(prefix)
    words.turned(age_s=100.0)
    status, text = get(service.port, "/livez")
    assert status == 503
    assert text.startswith("hot thread 'worker': must turn within 5 s, last did 100")
    assert get(service.port, "/readyz")[0] == 503
    words.turned(age_s=0.0)
    assert get(service.port, "/livez")[0] == 200
    words.close()


def test_readyz_without_data_is_503_until_data_comes(tiny, prefix):
    """Alive but silent is not ready: the reason says for how long; the next datum makes it ready again."""
    service = tiny(fresh_s=0.2)
    assert "data: must have come within 0.2 s, no turns for " in service.until("/readyz", 503)
    assert get(service.port, "/livez")[0] == 200
    words = Words(prefix)

    def fed() -> bool:
        words.arrays.counters[0] += np.uint64(1)
        return get(service.port, "/readyz")[0] == 200

    eventually(fed, 30, "ready again")
    words.close()


def test_livez_stopped_process_does_not_answer(tiny):
    """SIGSTOP: the probe gets no answer in its own time; after SIGCONT it does."""
    service = tiny()
    service.until("/readyz", 200)
    service.popen.send_signal(signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"http://127.0.0.1:{service.port}/livez", timeout=0.3)
    service.popen.send_signal(signal.SIGCONT)
    assert service.until("/livez", 200) == "ok\n"


def test_endpoint_taken_port_fails_the_service_and_names_the_place(tiny):
    """Nobody runs without the health that was asked for: exit code 1 with file, address and place."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        service = tiny(port=port)
        out, _ = service.popen.communicate(timeout=60)
        lines = [json.loads(line) for line in out.splitlines()]
    assert service.popen.returncode == 1
    assert lines[-1]["event"] == "service_failed"
    assert f"tiny.toml: endpoint '127.0.0.1:{port}' must be free" in lines[-1]["error"]
    assert "`$.run.endpoints.router`" in lines[-1]["error"]


def test_endpoint_after_kill_9_is_open_again_on_the_same_port(tiny, prefix):
    """A restart on the same port works at once: after kill -9 too."""
    service = tiny()
    service.until("/readyz", 200)
    service.popen.kill()
    service.popen.communicate()
    again = tiny(port=service.port)
    again.until("/readyz", 200)
