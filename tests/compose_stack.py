"""The stack of docker-compose.yml as tests drive it: through `docker compose`, as an operator does."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PORTS = {"ingest": 9101, "features": 9102, "inference": 9103, "router": 9104}
PARTS = tuple(PORTS)


@dataclass(frozen=True)
class ContainerState:
    """What the engine says of one container."""

    id: str
    status: str
    health: str
    started_at: str
    exit_code: int
    init_pid: int

    @property
    def main_pid(self) -> int:
        """Process id, on this host, of the program: the one child of the container's init process."""
        children = Path(f"/proc/{self.init_pid}/task/{self.init_pid}/children").read_text().split()
        return int(children[0])


class ComposeStack:
    """Commands on the stack and questions about it."""

    def compose(self, *arguments: str, timeout_s: float = 300, check: bool = True) -> str:
        """Standard output and error of `docker compose ...`."""
        return _output(["docker", "compose", *arguments], timeout_s, check)

    def execute(self, service: str, *command: str, check: bool = True) -> str:
        """Output of a command in a running container."""
        return self.compose("exec", "-T", service, *command, check=check)

    def logs(self, service: str, since: str) -> str:
        """What a service wrote."""
        return self.compose("logs", "--no-log-prefix", "--no-color", "--since", since, service)

    def states(self) -> dict[str, ContainerState]:
        """Every container of the stack, stopped ones too, by service."""
        ids = self.compose("ps", "--all", "--quiet").split()
        found = json.loads(_output(["docker", "inspect", *ids], 60, check=True))
        return {each["Config"]["Labels"]["com.docker.compose.service"]: _state(each) for each in found}

    def container(self, service: str) -> ContainerState:
        """One of them."""
        return self.states()[service]

    def recovered(self, service: str, before: ContainerState) -> bool:
        """Whether a service runs anew and is healthy."""
        now = _state(json.loads(_output(["docker", "inspect", before.id], 60, check=True))[0])
        return now.health == "healthy" and now.status == "running" and now.started_at != before.started_at

    def signals_published(self) -> int:
        """How many signals the ring has had."""
        status = json.loads(self.execute("router", "tickwire", "status", "--json", check=False))
        return int(status["rings"]["signals"]["published"])


def engine_missing() -> str | None:
    """Why there is no Docker engine with compose to test on; None if there is."""
    if shutil.which("docker") is None:
        return "no docker command"
    for command in (["docker", "compose", "version"], ["docker", "version", "--format", "{{.Server.Version}}"]):
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=20)
        except (subprocess.SubprocessError, OSError) as error:
            return f"no Docker engine answers: {error}"
    return None


def _state(found: dict) -> ContainerState:
    state = found["State"]
    return ContainerState(
        id=found["Id"],
        status=state["Status"],
        health=state.get("Health", {}).get("Status", "none"),
        started_at=state["StartedAt"],
        exit_code=state["ExitCode"],
        init_pid=state["Pid"],
    )


def _output(command: list[str], timeout_s: float, check: bool) -> str:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)
    assert not check or ended.returncode == 0, f"{' '.join(command)}: {ended.stdout[-2000:]}{ended.stderr[-4000:]}"
    return ended.stdout + (ended.stderr if ended.returncode else "")
