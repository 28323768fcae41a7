"""S12: rings between users: the writer's group reads, others get a clear error, nobody but the writer writes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tickwire.ring.segment import SHM_FOLDER, list_segments

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become other users")

WRITER, READER, STRANGER = 1000, 1001, 1002
GROUP, OTHER_GROUP = 2000, 2001

# Imports as root, since the interpreter may lie where only root may read; each act is a process of its own that becomes
# another user first.
PROGRAM = """
import json, os, sys, traceback
import numpy as np
from ring_processes import fill, spec_of, torn
from tickwire.errors import RingError
from tickwire.ring import Consumer, Producer, Start
from tickwire.ring.segment import SHM_FOLDER, list_segments, unlink

def act(role, prefix, uid, gid, groups, umask):
    os.umask(umask)
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)
    spec = spec_of("lossless", 16, 64)
    if role == "write":
        with Producer.attach(prefix, spec) as producer:
            records = np.zeros(5, dtype=spec.dtype)
            fill(records, producer.next_sequence)
            return {"published": producer.publish(records)}
    if role == "read":
        with Consumer.attach(prefix, spec, name=f"uid-{uid}", start=Start.OLDEST, timeout_s=1.0) as consumer:
            found = consumer.poll()
            return {"sequences": found["sequence"].tolist(), "torn": torn(found)}
    if role == "overwrite":
        return {"opened": os.open(SHM_FOLDER / f"{prefix}.stress", os.O_RDWR)}
    return {"removed": [name for name in list_segments(prefix) if unlink(name)]}

for line in sys.stdin:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        continue
    try:
        answer = act(*json.loads(line))
    except (RingError, OSError) as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
    os._exit(0)
"""
_process: list[subprocess.Popen[str]] = []


@pytest.fixture(scope="module", autouse=True)
def users():
    """The process that acts as other users."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    _process[:] = [process]
    yield
    process.communicate(timeout=60)
    assert process.returncode == 0


def act(
    role: str, prefix: str, uid: int, gid: int, *, groups: tuple[int, ...] = (), umask: int = 0o077
) -> dict[str, Any]:
    """Return what a role answers that runs as another user."""
    stdin, stdout = _process[0].stdin, _process[0].stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(json.dumps((role, prefix, uid, gid, groups, umask)) + "\n")
    stdin.flush()
    answer: dict[str, Any] = json.loads(stdout.readline())
    return answer


@pytest.fixture
def ring(prefix):
    """A ring with five records, made by the writer under the strictest umask."""
    assert act("write", prefix, WRITER, GROUP) == {"published": 5}
    return prefix


@pytest.mark.parametrize(
    ("gid", "groups"), [(GROUP, ()), (OTHER_GROUP, (GROUP,))], ids=["primary-group", "supplementary-group"]
)
def test_permissions_reader_of_the_group_reads_whatever_the_umask(ring, gid, groups):
    """A strategy's uid needs the writer's group and nothing else."""
    assert act("read", ring, READER, gid, groups=groups) == {"sequences": [0, 1, 2, 3, 4], "torn": 0}


def test_permissions_stranger_is_told_segment_mode_and_uid(ring):
    """Another group gets an error that says which segment, what it needs, and who owns it."""
    assert act("read", ring, STRANGER, OTHER_GROUP) == {
        "error": "RingError",
        "text": f"segment '{ring}.stress': uid {STRANGER} must be allowed to read it, "
        f"found mode -rw-r-----, uid {WRITER}, gid {GROUP}",
    }


def test_permissions_reader_can_neither_write_nor_produce(ring):
    """The data segment is the writer's: the kernel refuses to open it for writing to anybody else."""
    assert act("overwrite", ring, READER, GROUP)["error"] == "PermissionError"
    refused = act("write", ring, READER, GROUP)
    assert refused["error"] == "RingError"
    assert f"uid {READER} must be allowed to read and write it, found mode -rw-r-----" in refused["text"]
    assert act("read", ring, READER, GROUP)["sequences"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_permissions_no_umask_makes_a_segment_writable_by_all(prefix, umask):
    """Modes are those documented, whatever the umask; never world-writable, not even world-readable."""
    act("write", prefix, WRITER, GROUP, umask=umask)
    found = {name: (SHM_FOLDER / name).stat() for name in list_segments(prefix)}
    assert {name: stat.S_IMODE(status.st_mode) for name, status in found.items()} == {
        f"{prefix}.stress": 0o640,
        f"{prefix}.stress.ctl": 0o660,
    }
    assert {(status.st_uid, status.st_gid) for status in found.values()} == {(WRITER, GROUP)}


def test_permissions_second_instance_leaves_the_first_alone(ring):
    """Two prefixes on one host share nothing: one instance runs and is removed, the other stays as it was."""
    second = f"{ring}-b"
    before = {name: (SHM_FOLDER / name).stat().st_ino for name in list_segments(ring)}
    assert act("write", second, STRANGER, OTHER_GROUP) == {"published": 5}
    assert len(act("remove", second, STRANGER, OTHER_GROUP)["removed"]) == 2
    refused = act("remove", ring, STRANGER, OTHER_GROUP)
    assert refused == {
        "error": "RingError",
        "text": f"segment '{ring}.stress': uid {STRANGER} must own it to remove it, does not",
    }
    assert {name: (SHM_FOLDER / name).stat().st_ino for name in list_segments(ring)} == before
    assert act("read", ring, READER, GROUP)["sequences"] == [0, 1, 2, 3, 4]
