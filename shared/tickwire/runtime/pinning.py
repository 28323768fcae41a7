"""Pinning a process to cores, within the set that it was given."""

from __future__ import annotations

import os
from pathlib import Path

from tickwire.errors import ConfigError


def pin(service: str, cores: list[int], path: Path) -> None:
    """Pin this process and its later threads to `cores`.

    Args:
        service: Its name.
        cores: Numbers of the cores.
        path: The TOML file that asks for it, for the message.

    Raises:
        ConfigError: A core is outside the allowed set (the container's cpuset, taskset, or the machine).
    """
    allowed = os.sched_getaffinity(0)
    outside = sorted(set(cores) - allowed)
    if outside or not cores:
        raise ConfigError(
            f"{path}: cores must be among the allowed {_ranges(allowed)}, were {sorted(cores)}"
            f" - at `$.run.cores.{service}`; remove the entry to run unpinned"
        )
    os.sched_setaffinity(0, cores)


def _ranges(cores: set[int]) -> str:
    # 0-3,6 as the kernel writes a cpuset.
    parts: list[str] = []
    ordered = sorted(cores)
    start = 0
    for i, core in enumerate(ordered):
        if i + 1 == len(ordered) or ordered[i + 1] != core + 1:
            first = ordered[start]
            parts.append(str(core) if first == core else f"{first}-{core}")
            start = i + 1
    return ",".join(parts)
