"""Prometheus rules and Grafana dashboards: every metric that they name exists; every alert is tested and explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tickwire.runtime.metrics import metric_names
from tickwire_features.stats import FEATURES_STATS
from tickwire_inference.stats import INFERENCE_STATS
from tickwire_ingest.stats import INGEST_STATS
from tickwire_router import ROUTER_STATS

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
SPECS = {
    "ingest": INGEST_STATS,
    "features": FEATURES_STATS,
    "inference": INFERENCE_STATS,
    "router": ROUTER_STATS,
}
TYPES = {name: kind for service, spec in SPECS.items() for name, kind in metric_names(service, spec).items()}
TYPES |= {f"tickwire_{service}_{name}": "gauge" for service in SPECS for name in ("state", "data_age_seconds")}
TYPES |= {f"tickwire_{service}_task_restarts_total": "counter" for service in SPECS}
TYPES["tickwire_build_info"] = "gauge"
# What others serve: Prometheus itself, its client library, NVIDIA's exporter.
FOREIGN = {
    "up", "ALERTS", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE",
    "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "process_start_time_seconds",
}  # fmt: skip
RULES = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
RECORDED = {rule["record"]: rule for group in RULES["groups"] for rule in group["rules"] if "record" in rule}


def samples() -> set[str]:
    """Names of all samples of all metrics."""
    names = set()
    for name, kind in TYPES.items():
        names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return names


def expressions() -> list[tuple[str, str]]:
    found = [(name, rule["expr"]) for name, rule in {**ALERTS, **RECORDED}.items()]
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            found += [(f"{path.stem}: {panel['title']}", target["expr"]) for target in panel["targets"]]
    return found


def named(expression: str) -> set[str]:
    """Metrics that an expression names; a pattern stands for all that it matches, and must match some."""
    names = set()
    for pattern in re.findall(r'__name__=~"([^"]+)"', expression):
        matched = {name for name in samples() if re.fullmatch(pattern, name)}
        assert matched, f"{pattern} matches no metric"
        names |= matched
    bare = re.sub(r'"[^"]*"', "", expression)
    return names | set(re.findall(r"\b(?:tickwire[_:][a-z0-9_:]+|process_[a-z_]+|DCGM_[A-Z_]+|ALERTS|up)\b", bare))


@pytest.mark.parametrize(("where", "expression"), expressions(), ids=lambda value: value[:50])
def test_expression_names_only_metrics_that_exist(where, expression):
    """A metric that is renamed breaks this, not an operator's night."""
    names = named(expression)
    assert names, f"{where}: names no metric"
    assert names <= samples() | FOREIGN | set(RECORDED), where
    for name in names:
        counts = name.endswith(("_total", "_bucket", "_sum", "_count"))
        is_comparison = re.search(rf"{name}(\{{[^}}]*\}})? > 0", expression) is not None
        if counts and name in samples() and not is_comparison:
            inside = rf"(rate|increase)\((\{{__name__|{name}(\{{[^}}]*\}})?)"
            assert re.search(inside, expression), f"{where}: {name} counts; take its rate"


def test_expressions_use_every_loss_and_every_stage():
    """Nothing that is counted as lost, and no stage of the path, is missing from what operators see."""
    used = set().union(*(named(expression) for _, expression in expressions()))
    losses = {name for name in samples() if re.search(r"_(lost|failed|expired|late|gaps|checksum)_?\w*_total$", name)}
    losses -= {name for name in losses if "_symbol_" in name or name.startswith("tickwire_router_predictions_")}
    assert sorted(losses - used) == []
    stages = {f"tickwire_router_{stage}_seconds_bucket" for stage in ROUTER_STATS.histograms}
    assert sorted(stages - used) == []


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_has_a_test_and_a_section_in_the_runbook(alert):
    """Meaning, check and action of each alert; its link leads there; promtool tests it."""
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"]["runbook"] == f"deploy/runbook.md#{alert.lower()}"
    section = (DEPLOY / "runbook.md").read_text().partition(f"## {alert}\n")[2].partition("\n## ")[0]
    assert [word for word in ("**Meaning.**", "**Check.**", "**Action.**") if word not in section] == []
    assert f"alertname: {alert}\n" in (PROMETHEUS / "tests.yml").read_text()


def test_scrape_addresses_are_those_of_the_configuration():
    """Prometheus asks where the services answer."""
    table = tomllib.loads((DEPLOY / "config" / "tickwire.toml").read_text())["run"]["endpoints"]
    jobs = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    asked = {s["labels"]["service"]: s["targets"][0] for job in jobs[:1] for s in job["static_configs"]}
    assert asked == table


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboard_is_well_formed(path):
    """Panels do not overlap, ids are their own, the data source is the provisioned one."""
    board = json.loads(path.read_text())
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["uid"]}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    cells = [
        (x, y)
        for panel in board["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
@pytest.mark.parametrize("command", ["check config prometheus.yml", "test rules tests.yml"])
def test_promtool_accepts(command):
    """Prometheus's own tool reads configuration and rules; the rules fire when they should and not before."""
    done = subprocess.run(["promtool", *command.split()], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
