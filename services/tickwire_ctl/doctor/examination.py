"""All examinations of a host for one configuration."""

from __future__ import annotations

from tickwire.ring.layout import CONTROL_BYTES
from tickwire.runtime import HISTOGRAM_WORDS, RunConfig
from tickwire.topology import RINGS
from tickwire.windows.layout import window_bytes
from tickwire_ctl.doctor import cpus, limits, memory
from tickwire_ctl.doctor.finding import Finding
from tickwire_ctl.doctor.gpu import gpu
from tickwire_ctl.doctor.tree import Tree

_STATS_BYTES = 8 * (32 * HISTOGRAM_WORDS + 1024)
"""More than the statistics of all services take, but for those of each symbol."""
_STATS_BYTES_A_SYMBOL = 8 * 32


def examine(tree: Tree, run: RunConfig) -> list[Finding]:
    """Look at everything that decides about latency or about being able to start.

    Args:
        tree: The host's files.
        run: What all services share.
    """
    cores = {core for service in run.table.cores.values() for core in service}
    priority = max(run.table.fifo_priority.values(), default=None)
    return [
        cpus.isolation(tree, cores),
        cpus.governor(tree, cores),
        cpus.idle_states(tree, cores),
        cpus.interrupts(tree, cores),
        memory.numa(tree, cores),
        memory.huge_pages(tree),
        memory.shared_memory(tree, segment_bytes(len(run.symbols))),
        limits.clock_source(tree),
        limits.locked_memory(tree),
        limits.realtime_priority(tree, priority),
        limits.open_files(tree),
        gpu(tree),
    ]


def segment_bytes(n_symbols: int) -> int:
    """Return how much of /dev/shm a run takes at most, in bytes."""
    rings = sum(spec.data_bytes + CONTROL_BYTES for spec in RINGS)
    return rings + window_bytes(n_symbols) + _STATS_BYTES + n_symbols * _STATS_BYTES_A_SYMBOL
