"""Stand-ins for the four services, run through the real supervisor: what each does stands in a file of its name.

`install` makes packages `tickwire_ingest` ... that come first on a child's PYTHONPATH. What they do:

    serve       READY, then wait for SIGTERM, note their end in `ended`, exit 0
    stubborn    the same, but only the second SIGTERM ends them
    deaf        READY, and no SIGTERM ends them
    exit N      exit with N, after an error in the log
    exit N ready    the same, after being READY and told to go on (a file `go`)
    killed      SIGKILL themselves
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

SHM = Path("/dev/shm")

SERVICES = ("ingest", "features", "inference", "router")
MAIN = "import sys\nsys.path.insert(0, {tests!r})\nfrom stub_services import main\nmain({service!r})\n"


def install(folder: Path, **behaviour: str) -> str:
    """Make the packages in a folder; return a PYTHONPATH for the supervisor's children."""
    for service in SERVICES:
        _keep_ready_statistics(folder, service)
        package = folder / f"tickwire_{service}"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(MAIN.format(tests=str(Path(__file__).parent), service=service))
        behave(folder, service, behaviour.get(service, "serve"))
    inherited = os.environ.get("PYTHONPATH")
    return f"{folder}{os.pathsep}{inherited}" if inherited else str(folder)


def behave(folder: Path, service: str, behaviour: str) -> None:
    """Say what a service does from its next start on."""
    (folder / service).write_text(behaviour)


def main(service: str) -> None:
    folder = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
    words = (folder / service).read_text().split()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    if words[0] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    ready = words[0] != "exit" or words[-1] == "ready"
    if ready:
        _be_ready(folder, service)
    if words[0] == "exit":
        while ready and not (folder / "go").exists():
            time.sleep(0.005)
        print(f'{{"event":"service_failed","error":"{service} has no fuel"}}')
        print(f'{{"event":"last words of {service}"}}', flush=True)
        sys.exit(int(words[1]))
    for _ in range({"serve": 1, "stubborn": 2, "deaf": 10**6}[words[0]]):
        signal.sigwait({signal.SIGTERM})
    with (folder / "ended").open("a") as ended:
        ended.write(f"{service}\n")


# Imports of ours take a second, which a stand-in need not: it gets its statistics ready-made, all but its pid.
def _keep_ready_statistics(folder: Path, service: str) -> None:
    from tickwire.runtime import ServiceState, Stats, StatsSpec
    from tickwire.runtime.stats import PID_AT

    name = f"test-stub-{os.getpid()}"
    stats = Stats.create(name, service, StatsSpec())
    stats.set_state(ServiceState.READY)
    segment = SHM / f"{name}.stats.{service}"
    content = segment.read_bytes()
    segment.unlink()
    stats.close()
    (folder / f"{service}.before").write_bytes(content[:PID_AT])
    (folder / f"{service}.behind").write_bytes(content[PID_AT + 8 :])


def _be_ready(folder: Path, service: str) -> None:
    (assignment,) = (value for value in sys.argv if value.startswith("run.prefix"))
    prefix = assignment.split('"')[1]
    draft = SHM / f"{prefix}.stats.{service}.{os.getpid()}.tmp"
    before, behind = ((folder / f"{service}.{part}").read_bytes() for part in ("before", "behind"))
    draft.write_bytes(before + os.getpid().to_bytes(8, "little") + behind)
    draft.chmod(0o640)
    draft.replace(SHM / f"{prefix}.stats.{service}")
