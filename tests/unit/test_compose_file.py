"""docker-compose.yml and the images, read as files: shared memory, limits, users, ports, logs. Needs no engine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
PARTS = ("ingest", "features", "inference", "inference-gpu", "router")
MEMBERS = (*PARTS, "strategy")
CONFIG = tomllib.loads((ROOT / "deploy" / "config" / "compose.toml").read_text())
every_service = pytest.mark.parametrize("name", sorted(SERVICES))
every_part = pytest.mark.parametrize("name", PARTS)


def test_compose_shared_memory_is_the_anchors_with_an_explicit_size():
    """O1: one shareable IPC namespace with its size said; every user of a ring joins it, none has its own."""
    assert SERVICES["shm"]["ipc"] == "shareable"
    assert re.fullmatch(r"\d+[mg]", SERVICES["shm"]["shm_size"])
    for name in MEMBERS:
        assert SERVICES[name]["ipc"] == "service:shm", name
        assert "shm_size" not in SERVICES[name], name
    assert CONFIG["run"]["follow_owner"] is True


@every_part
def test_compose_part_starts_after_a_healthy_anchor_and_restarts_with_it(name):
    """O1: a part joins a namespace that exists, and a restart of the anchor by compose restarts it."""
    assert SERVICES[name]["depends_on"]["shm"] == {"condition": "service_healthy", "restart": True}


def test_compose_start_order_is_from_the_end_of_the_path_by_health():
    """Each part waits until the one behind it is ready; stopping goes the other way."""
    assert all(
        each["condition"] == "service_healthy" for name in PARTS for each in SERVICES[name]["depends_on"].values()
    )
    assert set(SERVICES["ingest"]["depends_on"]) == {"shm", "features"}
    assert set(SERVICES["features"]["depends_on"]) == {"shm", "inference", "inference-gpu"}
    assert set(SERVICES["inference"]["depends_on"]) == {"shm", "router"}
    assert set(SERVICES["router"]["depends_on"]) == {"shm"}


def test_compose_gpu_is_reserved_for_inference_alone():
    """O3: driver, count and the capability gpu, in the one service of the profile gpu; none in the default profile."""
    reserving = {
        name: each["deploy"]["resources"]["reservations"] for name, each in SERVICES.items() if "deploy" in each
    }
    assert reserving == {"inference-gpu": {"devices": [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]}}
    assert SERVICES["inference-gpu"]["profiles"] == ["gpu"]
    assert SERVICES["inference"]["profiles"] == ["cpu"]
    assert "COMPOSE_PROFILES=cpu" in (ROOT / ".env").read_text().splitlines()
    assert not any("gpus" in each or "runtime" in each for each in SERVICES.values())


@every_service
def test_compose_service_bounds_its_logs(name):
    """O9: size and number of log files are limited for every service."""
    logging = SERVICES[name]["logging"]
    assert logging["driver"] == "json-file"
    assert re.fullmatch(r"\d+m", logging["options"]["max-size"])
    assert 1 <= int(logging["options"]["max-file"]) <= 10


@every_service
def test_compose_service_is_confined(name):
    """A fixed user that is not root, a root file system that nobody writes, no capabilities, no way to gain any."""
    service = SERVICES[name]
    uid, gid = (int(part) for part in service["user"].split(":"))
    assert uid > 0
    assert gid > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert "cap_add" not in service


@every_service
def test_compose_service_publishes_on_loopback_only(name):
    """No port can be reached from another host."""
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in SERVICES[name].get("ports", []))
    assert SERVICES[name].get("network_mode", "none") == "none"


@every_service
def test_compose_service_restarts_and_has_time_to_drain(name):
    """Whatever dies comes back, except a strategy that somebody runs by hand; ten seconds to end."""
    assert SERVICES[name]["restart"] == ("no" if name == "strategy" else "unless-stopped")
    assert SERVICES[name]["stop_grace_period"] == "10s"
    assert CONFIG["run"]["drain_timeout_s"] < 10


@every_part
def test_compose_part_is_checked_on_its_endpoint(name):
    """The health check asks /readyz at the port that the configuration gives the part, and that is published."""
    part = name.removesuffix("-gpu")
    port = CONFIG["run"]["endpoints"][part].rpartition(":")[2]
    service = SERVICES[name]
    assert service["healthcheck"]["test"][-2:] == ["/opt/tickwire/deploy/ready.py", port]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert service["command"][:3] == ["python", "-m", f"tickwire_{part}"]
    assert service["ulimits"] == {"memlock": -1, "rtprio": 50, "nofile": 65536}
    assert service["cpuset"] == f"${{TICKWIRE_CPUS_{part.upper()}:-}}"


def test_compose_segments_belong_to_one_user_and_strategies_share_his_group():
    """S1, O1: parts run as the image's user, which owns the segments; a strategy as another one of the group."""
    owner = SERVICES["shm"]["user"]
    assert {SERVICES[name]["user"] for name in PARTS} == {owner}
    assert SERVICES["strategy"]["user"] != owner
    assert SERVICES["strategy"]["user"].split(":")[1] == owner.split(":")[1]


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.gpu"])
def test_image_is_made_in_stages_and_runs_as_a_fixed_user(name):
    """The last stage copies what the first built, kernels among it, and has a numeric user that compose names."""
    text = (ROOT / "deploy" / name).read_text()
    assert len(re.findall(r"^FROM ", text, re.MULTILINE)) == 2
    first, last = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    assert "tickwire compile --cache /opt/tickwire/kernels" in first
    assert "COPY --from=build /opt/tickwire /opt/tickwire" in last
    assert "TICKWIRE_KERNEL_CACHE=/opt/tickwire/kernels" in last
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == [SERVICES["shm"]["user"]]
    for processor in (r"NUMBA_CPU_NAME=(\S+)",):  # compiled and run for the same one, or the cache is not used
        assert len(set(re.findall(r"^ARG " + processor, text, re.MULTILINE))) == 1


def test_compose_scrape_configuration_names_the_parts_of_the_network():
    """The Prometheus of the profile monitoring scrapes each part at its endpoint's port."""
    scrape = yaml.safe_load((ROOT / "deploy" / "prometheus" / "compose.yml").read_text())["scrape_configs"][0]
    found = {each["labels"]["service"]: each["targets"] for each in scrape["static_configs"]}
    ports = {part: address.rpartition(":")[2] for part, address in CONFIG["run"]["endpoints"].items()}
    assert found == {part: [f"{part}:{port}"] for part, port in ports.items()}
