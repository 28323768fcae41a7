"""The compose stack for real: builds, becomes healthy, is broken part by part, recovers, leaves nothing. Cases O1, S1.

Drills share one stack: bringing it up is most of their time. Each begins and ends with every part healthy.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from compose_stack import PARTS, PORTS, ComposeStack, engine_missing
from waiting import eventually

REASON = engine_missing()
pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]
HEALTHY_WITHIN_S = 60.0
"""Recovery is bounded here, for any machine; how long it takes where nothing else runs is in docs/measurements.md."""


@pytest.fixture(scope="module")
def stack():
    stack = ComposeStack()
    stack.compose("down", "--volumes", "--remove-orphans")
    stack.compose("build", timeout_s=800)
    stack.compose("up", "--detach", "--wait", "--wait-timeout", "120")
    yield stack
    stack.compose("down", "--volumes", "--remove-orphans")


@pytest.fixture(autouse=True)
def explained(request, stack):
    yield
    if request.session.testsfailed:
        print(stack.compose("logs", "--no-color", "--tail", "15", check=False))


def test_stack_is_healthy_and_its_parts_answer_on_loopback(stack):
    """`up --wait` means: each part READY with data, at the port that compose publishes."""
    for part in PARTS:
        assert stack.container(part).health == "healthy"
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[part]}/readyz", timeout=10) as answer:
            assert answer.status == 200


def test_stack_parts_see_the_same_segments_of_one_user(stack):
    """O1: the same names and inodes in every container, in a /dev/shm of the size that the file says."""
    listings = {name: stack.execute(name, "ls", "-inog", "/dev/shm") for name in ("shm", *PARTS)}
    inodes = {name: {tuple(line.split()[::7]) for line in out.splitlines()[1:]} for name, out in listings.items()}
    assert len({frozenset(each) for each in inodes.values()}) == 1
    assert any(name == "tickwire.signals" for _, name in inodes["shm"])
    size = stack.execute("router", "stat", "--file-system", "--format", "%b %S", "/dev/shm").split()
    assert int(size[0]) * int(size[1]) == 512 << 20


def test_stack_image_compiles_nothing_and_writes_nothing(stack):
    """Kernels come from the image's cache, as a user that is not root, on a root file system that nobody writes."""
    out = stack.execute("features", "tickwire", "compile")
    assert "are compiled in /opt/tickwire/kernels" in out
    assert stack.execute("features", "id", "-u").strip() == "10001"
    refused = stack.execute("features", "touch", "/opt/tickwire/x", check=False)
    assert "Read-only file system" in refused


def test_strategy_of_another_user_reads_signals_and_removes_nothing(stack):
    """S1: a strategy's container comes and goes; the segments stay, and the router still publishes to the next one."""
    before = stack.execute("shm", "ls", "/dev/shm")
    program = (
        "from tickwire.client import SignalReader\n"
        "with SignalReader() as reader:\n"
        "    got = 0\n"
        "    while got < 20 and reader.wait(timeout_s=60.0): got += len(reader.poll().records)\n"
        "print('got', got)"
    )
    for _ in range(2):
        out = stack.compose("run", "--rm", "-T", "strategy", "python", "-c", program)
        assert int(out.split("got")[1]) >= 20
        assert "resource_tracker" not in out
    assert stack.execute("shm", "ls", "/dev/shm") == before


WITNESS = """
import json, signal
from tickwire.client import Lapped, SignalReader
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
seen = {"got": 0, "told": 0, "missing": 0, "stopped": False}
with SignalReader() as reader:
    last = None
    print("reading", flush=True)
    while not ended and not reader.stopped:
        batch = reader.poll() if reader.wait(timeout_s=0.2) else None
        if isinstance(batch, Lapped):
            seen["told"] += batch.lost
            last = None
        elif batch is not None and len(batch.records):
            sequences = batch.records["sequence"].astype("int64").tolist()
            if last is not None:
                seen["missing"] += sequences[-1] - last - len(sequences)
            last = sequences[-1]
            seen["got"] += len(sequences)
    seen["stopped"] = reader.stopped
print(json.dumps(seen))
"""


@pytest.fixture
def witness(stack):
    """A strategy that reads all along; ended, it says what it saw."""
    name = "tickwire-witness"
    stack.compose("run", "--detach", "--name", name, "strategy", "python", "-c", WITNESS)
    eventually(lambda: "reading" in docker("logs", name), HEALTHY_WITHIN_S, "the strategy reads")

    def ended() -> dict:
        docker("stop", name)
        return json.loads(docker("logs", name).splitlines()[-1])

    yield ended
    docker("rm", "--force", name)


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("part", PARTS)
def test_part_killed_comes_back_healthy_and_the_others_go_on(stack, witness, part):
    """Killed with SIGKILL, a part is followed by a new one, healthy; no other part restarts; signals flow again.

    A strategy that reads all along keeps its place in the ring, and no signal is missing without being told.
    """
    before = stack.states()
    os.kill(before[part].main_pid, signal.SIGKILL)
    eventually(lambda: stack.recovered(part, before[part]), HEALTHY_WITHIN_S, f"{part} healthy again")
    after = stack.states()
    for name in before:
        changed = after[name].started_at != before[name].started_at
        assert changed == (name == part), name
    published = stack.signals_published()
    eventually(lambda: stack.signals_published() > published, HEALTHY_WITHIN_S, "signals published again")
    seen = witness()
    assert seen["got"] > 0
    assert (seen["missing"], seen["told"], seen["stopped"]) == (0, 0, False)


@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_anchor_gone_takes_the_parts_along_into_its_new_memory(stack, how):
    """O1: whether the anchor dies or is restarted alone, all parts end up healthy in the one new /dev/shm."""
    before = stack.states()
    if how == "killed":
        os.kill(before["shm"].main_pid, signal.SIGKILL)
    else:
        docker("restart", before["shm"].id)
    for part in ("shm", *PARTS):
        eventually(lambda part=part: stack.recovered(part, before[part]), HEALTHY_WITHIN_S, f"{part} healthy again")
    test_stack_parts_see_the_same_segments_of_one_user(stack)
    published = stack.signals_published()
    eventually(lambda: stack.signals_published() > published, HEALTHY_WITHIN_S, "signals published again")


def test_part_outside_the_shared_memory_says_so_and_ends(stack):
    """O1: without the anchor's IPC namespace a part ends with the reason and the remedy instead of waiting for ever."""
    command = ["docker", "run", "--rm", "tickwire:cpu", "python", "-m", "tickwire_router"]
    command += ["--config", "/opt/tickwire/deploy/config/compose.toml"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    error = next(line for line in map(json.loads, ended.stdout.splitlines()) if line["event"] == "service_failed")
    assert "ipc: service:shm" in error["error"]


def test_stack_logs_stay_far_within_their_limits(stack):
    """O9: at info level no part writes a line a message; a day's logs fit many times into what is kept."""
    lines = {part: len(stack.logs(part, "10s").splitlines()) for part in PARTS}
    assert all(count <= 30 for count in lines.values()), lines


def test_stack_down_leaves_nothing(stack):
    """Each part drains and ends by itself within the time it has; no container, network or shared memory stays."""
    ids = [state.id for state in stack.states().values()]
    stack.compose("stop", timeout_s=120)
    codes = {name: state.exit_code for name, state in stack.states().items()}
    assert codes == dict.fromkeys(codes, 0)
    assert '"event":"segments_removed"' in stack.logs("shm", "60s")
    assert not any(each in Path("/proc/self/mounts").read_text() for each in ids)
    stack.compose("down", "--volumes")
    assert stack.compose("ps", "--all", "--quiet").strip() == ""
    assert "tickwire" not in docker("network", "ls")
