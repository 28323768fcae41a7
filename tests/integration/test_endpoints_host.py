"""The endpoints of the four services of a real run: what operators and a Prometheus server see."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tickwire.runtime.config import load_run
from tickwire.runtime.metrics import metric_names
from tickwire_ctl.host import ORDER
from tickwire_ctl.options import DEMO_CONFIG
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router import ROUTER_STATS
from waiting import eventually

SPECS = {
    "ingest": INGEST_STATS,
    "features": FEATURES_STATS,
    "inference": INFERENCE_STATS,
    "router": ROUTER_STATS,
}


def free_ports(n: int) -> list[int]:
    probes = [socket.socket() for _ in range(n)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.fixture
def ports(prefix, tmp_path):
    """A run of the demo's captures in real time, with endpoints; its ports by service."""
    ports = dict(zip(ORDER, free_ports(len(ORDER)), strict=True))
    assignments = [f'run.prefix="{prefix}"', f'run.state_dir="{tmp_path}"', 'inference.engine="rule"']
    assignments += [f'run.endpoints.{service}="127.0.0.1:{port}"' for service, port in ports.items()]
    command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(DEMO_CONFIG)]
    for assignment in assignments:
        command += ["--set", assignment]
    host = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready() -> bool:
        assert host.poll() is None
        return all(get(port, "/readyz")[0] == 200 for port in ports.values())

    eventually(ready, 120, "four ready services")
    yield ports
    host.send_signal(signal.SIGTERM)
    assert host.wait(60) == 0


def samples_of(port: int) -> tuple[dict[str, str], dict[tuple[str, ...], float]]:
    status, text = get(port, "/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text))
    types = {f"{f.name}_total" if f.type == "counter" else f.name: f.type for f in families}
    return types, {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_host_every_service_serves_its_metrics_and_counters_only_grow(ports):
    """All metrics of the specs are there; data moves through all four; nothing that counts goes backwards."""
    for service, port in ports.items():
        assert get(port, "/livez") == (200, "ok\n")
        types, first = samples_of(port)
        assert metric_names(service, SPECS[service]).items() <= types.items()
        moving = f"tickwire_{service}_{SPECS[service].data_counter}_total"
        eventually(lambda: samples_of(port)[1][moving,] > first[moving,], 60, moving)  # noqa: B023 - called at once
        _, second = samples_of(port)
        counting = {
            key
            for key in first
            if key[0].endswith(("_total", "_bucket", "_count", "_sum")) and not key[0].startswith("process_")
        }
        assert [key for key in counting if second[key] < first[key]] == []
        labels = {instrument.label for instrument in load_run(DEMO_CONFIG).symbols}
        assert {key[1] for key in second if "_symbol_" in key[0]} <= labels
    _, router = samples_of(ports["router"])
    buckets = {
        float(label): value
        for (name, *labels), value in router.items()
        if name == "tickwire_router_tick_to_signal_seconds_bucket"
        for label in labels
    }
    assert sum(0 < value < buckets[float("inf")] for value in buckets.values()) >= 1  # not all of it in one bucket
