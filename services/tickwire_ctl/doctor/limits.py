"""What this user's processes may: locked memory, real-time priority, open files. And the clock that they read."""

from __future__ import annotations

from tickwire_ctl.doctor.finding import Finding, Verdict
from tickwire_ctl.doctor.tree import Tree

_FILES_NEEDED = 1024
_UNLIMITED = "unlimited"


def locked_memory(tree: Tree) -> Finding:
    """May processes keep their pages in RAM?"""
    why = "a page that was swapped out or reclaimed costs 100 us and more at its next use"
    return _limit(tree, "Max locked memory", "memlock limit", None, "memlock unlimited", "LimitMEMLOCK=infinity", why)


def realtime_priority(tree: Tree, wanted: int | None) -> Finding:
    """May hot threads have SCHED_FIFO?"""
    why = "without it any other process may take the core of a hot thread for some milliseconds"
    need = wanted or 1
    text = f"rtprio {max(need, 50)}"
    found = _limit(tree, "Max realtime priority", "rtprio limit", need, text, f"LimitRTPRIO={max(need, 50)}", why)
    if wanted is not None or found.verdict is not Verdict.BAD:
        return found
    return Finding(found.subject, Verdict.ADVICE, found.found, found.remedy, why)


def open_files(tree: Tree) -> Finding:
    """May processes open enough files and sockets?"""
    why = "a service that cannot open a socket or a segment fails when it is restarted, not before"
    text, unit = "nofile 65536", "LimitNOFILE=65536"
    return _limit(tree, "Max open files", "nofile limit", _FILES_NEEDED, text, unit, why)


def clock_source(tree: Tree) -> Finding:
    """Is reading the clock a matter of nanoseconds?"""
    why = "every record is stamped; with hpet or acpi_pm a stamp costs 1 us and a system call instead of 25 ns"
    folder = "sys/devices/system/clocksource/clocksource0"
    current = tree.text(f"{folder}/current_clocksource")
    if current is None:
        return Finding("clock source", Verdict.UNKNOWN, "none to be seen here", "look on the host", why)
    available = tree.text(f"{folder}/available_clocksource") or current
    found = f"{current} (available: {available})"
    if current in ("tsc", "kvm-clock", "arch_sys_counter"):
        return Finding("clock source", Verdict.GOOD, found, "", why)
    remedy = (
        f"echo tsc > /{folder}/current_clocksource"
        if "tsc" in available.split()
        else "boot with tsc=reliable if the processor's TSC is invariant"
    )
    return Finding("clock source", Verdict.ADVICE, found, remedy, why)


# `needed` None: must be unlimited.
def _limit(tree: Tree, row: str, subject: str, needed: int | None, line: str, unit: str, why: str) -> Finding:
    soft = _soft_limit(tree, row)
    if soft is None:
        return Finding(subject, Verdict.UNKNOWN, "no /proc/self/limits here", "ulimit -a", why)
    enough = soft == _UNLIMITED or (needed is not None and int(soft) >= needed)
    found = soft if soft == _UNLIMITED else f"{int(soft):,}"
    if enough:
        return Finding(subject, Verdict.GOOD, found, "", why)
    remedy = f"/etc/security/limits.d/tickwire.conf: `tickwire - {line}`; systemd: {unit}"
    verdict = Verdict.ADVICE if needed is None else Verdict.BAD
    return Finding(subject, verdict, found, remedy, why)


def _soft_limit(tree: Tree, row: str) -> str | None:
    for line in (tree.text("proc/self/limits") or "").splitlines():
        if line.startswith(row):
            return line.removeprefix(row).split()[0]
    return None
