"""Cores: isolation, frequency, sleep states, interrupts."""

from __future__ import annotations

from tickwire_ctl.doctor.finding import Finding, Verdict
from tickwire_ctl.doctor.tree import Tree, cpus_of, listed

CPU = "sys/devices/system/cpu"
DEEP_EXIT_US = 10
"""An idle state that takes longer to leave than this costs a tenth of the path's 100 us."""


def isolation(tree: Tree, cores: set[int]) -> Finding:
    """Are the cores of `run.cores` kept free of everybody else?"""
    why = "on a shared core another process takes the hot loop's turn, for a scheduler tick (1 to 4 ms) and more"
    isolated = cpus_of(tree.text(f"{CPU}/isolated") or "")
    online = cpus_of(tree.text(f"{CPU}/online") or "")
    found = f"isolated: {listed(isolated) or 'none'}; run.cores: {listed(cores) or 'none'}"
    missing = cores - online
    if online and missing:
        found += f"; online: {listed(online)}"
        return Finding("isolated cores", Verdict.BAD, found, "name cores that exist in run.cores", why)
    if not cores:
        remedy = f"boot with {_boot_options('<cores>')}; name the cores in run.cores"
        return Finding("isolated cores", Verdict.ADVICE, found, remedy, why)
    open_cores = cores - isolated
    if open_cores:
        remedy = f"boot with {_boot_options(listed(cores))}"
        return Finding("isolated cores", Verdict.ADVICE, found, remedy, why)
    return Finding("isolated cores", Verdict.GOOD, found, "", why)


def governor(tree: Tree, cores: set[int]) -> Finding:
    """Do the cores run at full speed?"""
    why = "a core that has clocked down takes 10 to 100 us to come back, at the first tick after a pause"
    governors: dict[str, set[int]] = {}
    for path in tree.matches(f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor"):
        cpu = int(path.parts[-3].removeprefix("cpu"))
        if not cores or cpu in cores:
            governors.setdefault(tree.text(str(path)) or "unreadable", set()).add(cpu)
    if not governors:
        return Finding("frequency governor", Verdict.UNKNOWN, "no cpufreq here", "look on the host", why)
    found = "; ".join(f"{name}: {listed(cpus)}" for name, cpus in sorted(governors.items()))
    if set(governors) == {"performance"}:
        return Finding("frequency governor", Verdict.GOOD, found, "", why)
    return Finding("frequency governor", Verdict.ADVICE, found, "cpupower frequency-set -g performance", why)


def idle_states(tree: Tree, cores: set[int]) -> Finding:
    """Can a core fall into a sleep that takes long to leave?"""
    why = "leaving a deep C-state takes 50 to 200 us, which parked threads pay at the tick that wakes them"
    deep: dict[str, int] = {}
    states = tree.matches(f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*")
    for path in states:
        if cores and int(path.parts[-3].removeprefix("cpu")) not in cores:
            continue
        latency_us = int(tree.text(f"{path}/latency") or 0)
        if latency_us > DEEP_EXIT_US and tree.text(f"{path}/disable") != "1":
            deep[tree.text(f"{path}/name") or path.name] = latency_us
    if not states:
        return Finding("C-states", Verdict.UNKNOWN, "no cpuidle here", "look on the host", why)
    if not deep:
        return Finding("C-states", Verdict.GOOD, f"none takes more than {DEEP_EXIT_US} us to leave", "", why)
    found = "enabled: " + ", ".join(f"{name} ({latency_us} us)" for name, latency_us in sorted(deep.items()))
    remedy = f"cpupower idle-set -D {DEEP_EXIT_US}, or boot with processor.max_cstate=1 intel_idle.max_cstate=1"
    return Finding("C-states", Verdict.ADVICE, found, remedy, why)


def interrupts(tree: Tree, cores: set[int]) -> Finding:
    """Do devices interrupt the cores of the hot threads?"""
    why = "an interrupt handler and its softirq take 5 to 50 us from the thread that runs on that core"
    lists = tree.matches("proc/irq/[0-9]*/smp_affinity_list")
    if not lists:
        return Finding("IRQ affinity", Verdict.UNKNOWN, "no /proc/irq here", "look on the host", why)
    if not cores:
        return Finding("IRQ affinity", Verdict.ADVICE, "run.cores names no cores", "name cores in run.cores first", why)
    hitting = []
    for path in lists:
        effective = tree.text(f"{path.parent}/effective_affinity_list") or tree.text(str(path)) or ""
        if cpus_of(effective) & cores:
            hitting.append(path.parts[-2])
    if not hitting:
        return Finding("IRQ affinity", Verdict.GOOD, f"none of {len(lists)} IRQs on {listed(cores)}", "", why)
    shown = ", ".join(hitting[:8]) + (", ..." if len(hitting) > 8 else "")
    others = cpus_of(tree.text(f"{CPU}/online") or "") - cores
    remedy = f"stop irqbalance; echo {listed(others) or '<other cores>'} > /proc/irq/<n>/smp_affinity_list"
    found = f"{len(hitting)} of {len(lists)} IRQs may come to {listed(cores)}: {shown}"
    return Finding("IRQ affinity", Verdict.ADVICE, found, remedy, why)


def _boot_options(cpus: str) -> str:
    return f"isolcpus=managed_irq,domain,{cpus} nohz_full={cpus} rcu_nocbs={cpus}"
