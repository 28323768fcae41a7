"""The endpoints of the four services of a real run: what operators and a Prometheus server see."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tickwire.ring.segment import list_segments, unlink
from tickwire.runtime.config import load_run
from tickwire.runtime.health import LIVE_WITHIN_S
from tickwire.runtime.metrics import metric_names
from tickwire_ctl.host import ORDER
from tickwire_ctl.options import DEMO_CONFIG, PROJECT
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


class Run:
    """A run of the demo's captures in real time, with endpoints."""

    def __init__(self, folder: Path) -> None:
        self.prefix = f"test-{uuid.uuid4().hex[:12]}"
        self.ports = dict(zip(ORDER, free_ports(len(ORDER)), strict=True))
        self.log = folder / "host.log"
        assignments = [f'run.prefix="{self.prefix}"', f'run.state_dir="{folder}"', 'inference.engine="rule"']
        assignments += [f'run.endpoints.{service}="127.0.0.1:{port}"' for service, port in self.ports.items()]
        command = [sys.executable, "-m", "tickwire_ctl", "up", "--config", str(DEMO_CONFIG)]
        for assignment in (*assignments, "ingest.repeat=true"):
            command += ["--set", assignment]
        with self.log.open("w") as log:
            self.host = subprocess.Popen(command, stdout=log, stderr=subprocess.DEVNULL)

    def ready(self) -> bool:
        assert self.host.poll() is None
        return all(get(port, "/readyz")[0] == 200 for port in self.ports.values())

    def lines(self) -> list[dict]:
        """The log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four ready services; stopped with SIGTERM, which must go well."""
    run = Run(tmp_path_factory.mktemp("host"))
    try:
        eventually(run.ready, 120, "four ready services")
        yield run
        run.host.send_signal(signal.SIGTERM)
        assert run.host.wait(60) == 0
    finally:
        if run.host.poll() is None:
            run.host.kill()
            run.host.wait()
        for name in list_segments(run.prefix):
            unlink(name)


def samples_of(port: int) -> tuple[dict[str, str], dict[tuple[str, ...], float]]:
    status, text = get(port, "/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text))
    types = {f"{f.name}_total" if f.type == "counter" else f.name: f.type for f in families}
    return types, {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_host_every_service_serves_its_metrics_and_counters_only_grow(run):
    """All metrics of the specs are there; data moves through all four; nothing that counts goes backwards."""
    for service, port in run.ports.items():
        assert get(port, "/livez") == (200, "ok\n")
        types, first = samples_of(port)
        runner = {"state": "gauge", "data_age_seconds": "gauge", "task_restarts_total": "counter"}
        assert {f"tickwire_{service}_{name}": kind for name, kind in runner.items()}.items() <= types.items()
        assert types["tickwire_build_info"] == "gauge"
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
        ages = {name: age for (name, *_), age in second.items() if name.endswith("turn_age_seconds")}
        assert len(ages) == (2 if service == "inference" else 1)
        assert max(ages.values()) < LIVE_WITHIN_S
    _, router = samples_of(run.ports["router"])
    buckets = {
        float(label): value
        for (name, *labels), value in router.items()
        if name == "tickwire_router_tick_to_signal_seconds_bucket"
        for label in labels
    }
    assert sum(0 < value < buckets[float("inf")] for value in buckets.values()) >= 1  # not all of it in one bucket


def test_host_log_has_a_line_a_second_and_none_per_message(run):
    """O9: what a service logs does not grow with the market: one summary a second and at most a warning a kind."""
    counting = ("ticks_published", "features_summary", "inference_summary", "router_summary")

    def summaries() -> dict[str, list[dict]]:
        return {event: [line for line in run.lines() if line["event"] == event] for event in counting}

    eventually(lambda: all(len(lines) >= 5 for lines in summaries().values()), 60, "five summaries of each service")
    lines = run.lines()
    begin = max(place for place, line in enumerate(lines) if line["event"] in ("service_ready", "replay_started"))
    seconds = Counter((line["service"], line["timestamp"][:19]) for line in lines[begin + 1 :])
    assert max(seconds.values()) <= 8
    events = sum(line["events"] for line in summaries()["ticks_published"])
    assert events > 20 * sum(seconds.values())


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="the Debian package prometheus is not installed")
def test_prometheus_scrapes_and_answers_every_panel(run, tmp_path):
    """A real server reads all four services with the shipped rules; it can evaluate what each panel asks."""
    config = yaml.safe_load((PROJECT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"].update(scrape_interval="1s", scrape_timeout="1s", evaluation_interval="1s")
    config["rule_files"] = [str(PROJECT / "deploy/prometheus/rules.yml")]
    for target in config["scrape_configs"][0]["static_configs"]:
        target["targets"] = [f"127.0.0.1:{run.ports[target['labels']['service']]}"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]

    def ask(expression: str) -> list[dict]:
        status, text = get(port, f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        assert status in (0, 200, 503), f"{expression}: {text}"
        return json.loads(text)["data"]["result"] if status == 200 else []

    with (tmp_path / "prometheus.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: len(ask('up{job="tickwire"} == 1')) == len(ORDER), 60, "four scraped services")
        eventually(lambda: ask("tickwire:tick_to_signal_seconds:p99 > 0"), 60, "a recorded p99")
        boards = sorted((PROJECT / "deploy/grafana/dashboards").glob("*.json"))
        panels = [panel for board in boards for panel in json.loads(board.read_text())["panels"]]
        assert len(panels) > 40
        for panel in panels:
            for target in panel["targets"]:
                ask(target["expr"])
        rules = json.loads(get(port, "/api/v1/rules")[1])["data"]["groups"]
        assert [rule["lastError"] for group in rules for rule in group["rules"] if rule["health"] == "err"] == []
    finally:
        server.terminate()
        server.wait(30)
