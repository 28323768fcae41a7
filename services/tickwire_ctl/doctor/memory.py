"""Memory: huge pages, /dev/shm, NUMA nodes."""

from __future__ import annotations

import os

from tickwire.ring.segment import SHM_FOLDER
from tickwire_ctl.doctor.finding import Finding, Verdict
from tickwire_ctl.doctor.tree import Tree, cpus_of, listed

MIB = 1 << 20
_SHM = str(SHM_FOLDER)


def huge_pages(tree: Tree) -> Finding:
    """Does the kernel rearrange memory behind a running process?"""
    why = "with `always`, compaction stalls page faults for milliseconds, in processes that never asked for it"
    text = tree.text("sys/kernel/mm/transparent_hugepage/enabled")
    if text is None:
        return Finding("huge pages", Verdict.UNKNOWN, "no transparent_hugepage here", "look on the host", why)
    chosen = _chosen(text)
    shared = _chosen(tree.text("sys/kernel/mm/transparent_hugepage/shmem_enabled") or "[never]")
    found = f"transparent_hugepage: {chosen}; shared memory: {shared}"
    if chosen == "always":
        return Finding(
            "huge pages",
            Verdict.ADVICE,
            found,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            why,
        )
    return Finding("huge pages", Verdict.GOOD, found, "", why)


def shared_memory(tree: Tree, needed_bytes: int) -> Finding:
    """Is there room for the run's segments in /dev/shm?"""
    why = "a full /dev/shm refuses rings at the start, or kills a process with SIGBUS later"
    try:
        stat = os.statvfs(tree.root / _SHM.lstrip("/"))
    except OSError:
        return Finding(_SHM, Verdict.BAD, "there is none", "mount a tmpfs on /dev/shm", why)
    size, free = stat.f_frsize * stat.f_blocks, stat.f_frsize * stat.f_bavail
    found = f"{size // MIB:,} MiB, {free // MIB:,} MiB free; a run takes {-(-needed_bytes // MIB):,} MiB"
    if free >= needed_bytes:
        return Finding(_SHM, Verdict.GOOD, found, "", why)
    size_mib = -(-(needed_bytes * 2) // MIB)
    remedy = f"mount -o remount,size={size_mib}m /dev/shm; in a container: --shm-size={size_mib}m; tickwire ring rm"
    return Finding(_SHM, Verdict.BAD, found, remedy, why)


def numa(tree: Tree, cores: set[int]) -> Finding:
    """Do all services stand on one NUMA node?"""
    why = "a cache line from the other node costs 100 ns and more, at every hop of a tick"
    nodes = {
        path.parts[-2]: cpus_of(tree.text(str(path)) or "")
        for path in tree.matches("sys/devices/system/node/node[0-9]*/cpulist")
    }
    if len(nodes) <= 1:
        return Finding("NUMA", Verdict.GOOD, f"{max(len(nodes), 1)} node", "", why)
    found = "; ".join(f"{node}: {listed(cpus)}" for node, cpus in sorted(nodes.items()))
    if not cores:
        remedy = "name cores of one node in run.cores, the one of network card and GPU"
        return Finding("NUMA", Verdict.ADVICE, found, remedy, why)
    if any(cores <= cpus for cpus in nodes.values()):
        return Finding("NUMA", Verdict.GOOD, f"{found}; run.cores {listed(cores)} on one", "", why)
    remedy = "choose run.cores from one node, the one of network card and GPU"
    return Finding("NUMA", Verdict.ADVICE, f"{found}; run.cores {listed(cores)} on several", remedy, why)


# The chosen word of a kernel's list, such as `always [madvise] never`.
def _chosen(text: str) -> str:
    return text.partition("[")[2].partition("]")[0] or text
