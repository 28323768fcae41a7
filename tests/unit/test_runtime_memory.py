"""Locking memory: what the kernel says afterwards, and what the log says where it is not permitted."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys

import pytest
import structlog

from tickwire.runtime import memory
from tickwire.runtime.service import EXIT_OK, run_service
from tiny_service import TinyService

NOBODY = 65534
SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'
LOCK = """
import os, resource
from tickwire.runtime.memory import lock_memory
print(lock_memory())
print(next(line for line in open("/proc/self/status") if line.startswith("VmLck")))
"""
LIMIT = f"""
import os, resource
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
if os.getuid() == 0:
    os.setuid({NOBODY})
"""


def lines_of(program: str) -> list[str]:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_lock_memory_permitted_locks_all_pages():
    """The kernel counts the whole process as locked."""
    reason, locked, *_ = lines_of(LOCK)
    if reason != "None":
        pytest.skip(f"not permitted here: {reason}")
    assert int(locked.split()[1]) > 1024


def test_lock_memory_under_a_finite_limit_names_it_and_locks_nothing():
    """I1: a limit that a later mapping could meet is a reason, with its value."""
    # Everything is imported before the process gives its rights up: it may not be able to read its files then.
    reason, locked, *_ = lines_of("import tickwire.runtime.memory\n" + LIMIT + LOCK)
    assert reason == "RLIMIT_MEMLOCK must be unlimited (or CAP_IPC_LOCK held), was 65536 bytes"
    assert locked.split()[1] == "0"


def test_lock_memory_refused_by_the_kernel_names_the_errno(monkeypatch):
    """What mlockall says reaches the reader."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    monkeypatch.setattr(memory, "_lock_all", lambda: errno.ENOMEM)
    assert memory.lock_memory() == f"mlockall: ENOMEM, {os.strerror(errno.ENOMEM)}"


@pytest.mark.parametrize(("wanted", "level"), [('"auto"', "info"), ("true", "warning"), ("false", None)])
def test_service_memory_not_locked_says_so_once(prefix, tmp_path, monkeypatch, capfd, wanted, level):
    """`auto` tells, `true` warns, `false` does not even try; the service runs all the same."""
    monkeypatch.setattr("tickwire.runtime.service.lock_memory", lambda: "the reason")
    config = tmp_path / "tiny.toml"
    config.write_text(f'[run]\nprefix = "{prefix}"\nlock_memory = {wanted}\n[router]\nmode = "ends"\n{SYMBOL}')
    try:
        assert run_service(TinyService, ["--config", str(config)]) == EXIT_OK
    finally:
        structlog.reset_defaults()
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    told = [(line["level"], line["reason"]) for line in lines if line["event"] == "memory_not_locked"]
    assert told == ([(level, "the reason")] if level else [])
