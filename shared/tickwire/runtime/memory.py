"""Memory that is never paged out: every page of the process, now and later, stays in RAM.

Called once by the runner, before a service maps anything; segments are touched when they are attached in any case.

I1  Memory is locked only where no limit applies: under a finite RLIMIT_MEMLOCK the lock would make some later mapping
    fail, in the middle of the day.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from pathlib import Path

_MCL_CURRENT = 1  # mlockall(2)
_MCL_FUTURE = 2
_CAP_IPC_LOCK = 14  # capabilities(7)
_STATUS = Path("/proc/self/status")


def lock_memory() -> str | None:
    """Lock all pages of this process; return None, or the reason why they are not locked (I1)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY and not _may_lock_without_limit():
        return f"RLIMIT_MEMLOCK must be unlimited (or CAP_IPC_LOCK held), was {limit} bytes"
    error = _lock_all()
    if error != 0:
        return f"mlockall: {errno.errorcode.get(error, error)}, {os.strerror(error)}"
    return None


def _may_lock_without_limit() -> bool:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_IPC_LOCK & 1)
    return False


def _lock_all() -> int:
    # Returns 0 or the errno.
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) == 0 else ctypes.get_errno()
