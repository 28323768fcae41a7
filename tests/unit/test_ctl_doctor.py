"""`tickwire doctor` on hosts that exist only as folders: what is found, what is to be done."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tickwire.ring.segment import list_segments, segment_name
from tickwire_ctl.doctor import doctor
from tickwire_ctl.doctor.examination import segment_bytes
from tickwire_ctl.doctor.gpu import gpu
from tickwire_ctl.doctor.memory import shared_memory
from tickwire_ctl.doctor.tree import Tree, cpus_of, listed
from tickwire_ctl.segments import PrefixOwner

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
PAGES = "sys/kernel/mm/transparent_hugepage"
CLOCK = "sys/devices/system/clocksource/clocksource0"
LIMITS = "proc/self/limits"


def limits(files: str = "65536", memory: str = "unlimited", priority: str = "50") -> str:
    """A process's limits as the kernel writes them."""
    return (
        "Limit                     Soft Limit           Hard Limit           Units\n"
        f"Max open files            {files:20} 65536                files\n"
        f"Max locked memory         {memory:20} unlimited            bytes\n"
        f"Max realtime priority     {priority:20} 50\n"
    )


SYMBOL = '[[symbols]]\nvenue = "v"\nname = "A"\nprice_increment = "1"\nquantity_increment = "1"\n'
TUNED = {
    f"{CPU}/online": "0-3",
    f"{CPU}/isolated": "2-3",
    f"{CPU}/cpu2/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu3/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",  # not a core of ours
    f"{CPU}/cpu2/cpuidle/state0/name": "POLL",
    f"{CPU}/cpu2/cpuidle/state0/latency": "0",
    f"{CPU}/cpu2/cpuidle/state3/name": "C6",
    f"{CPU}/cpu2/cpuidle/state3/latency": "133",
    f"{CPU}/cpu2/cpuidle/state3/disable": "1",
    "proc/irq/24/smp_affinity_list": "0-3",
    "proc/irq/24/effective_affinity_list": "0",
    f"{NODE}/node0/cpulist": "0,2-3",
    f"{NODE}/node1/cpulist": "1",
    f"{PAGES}/enabled": "always [madvise] never",
    f"{PAGES}/shmem_enabled": "always within_size advise [never] deny force",
    f"{CLOCK}/current_clocksource": "tsc",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm",
    LIMITS: limits(),
    "dev/shm/.keep": "",
}
SUBJECTS = [
    "isolated cores",
    "frequency governor",
    "C-states",
    "IRQ affinity",
    "NUMA",
    "huge pages",
    "/dev/shm",
    "clock source",
    "memlock limit",
    "rtprio limit",
    "nofile limit",
    "GPU",
]


def host(folder: Path, changes: dict[str, str | None]) -> Path:
    """A host's files: the tuned one's, with changes; None leaves a file out."""
    for path, text in {**TUNED, **changes}.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"{text}\n")
    return folder


def examined(root: Path, tmp_path: Path, run: str = "", *options: str) -> tuple[int, dict[str, dict]]:
    config = tmp_path / "host.toml"
    config.write_text(f"[run]\n{run}\n{SYMBOL}")
    result = CliRunner().invoke(doctor, ["--config", str(config), "--root", str(root), "--json", *options])
    return result.exit_code, {finding["subject"]: finding for finding in json.loads(result.output)}


@pytest.fixture(autouse=True)
def _no_gpu_tools(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")


OURS = "cores = { features = [2], router = [3] }\nfifo_priority = { features = 50 }"


def test_doctor_tuned_host_is_good_throughout(tmp_path):
    """Nothing to do, and `--strict` agrees; every finding says why it was looked at."""
    code, found = examined(host(tmp_path / "host", {}), tmp_path, OURS, "--strict")
    assert {subject: finding["verdict"] for subject, finding in found.items()} == dict.fromkeys(SUBJECTS, "good")
    assert all(finding["remedy"] == "" and len(finding["why"]) > 20 for finding in found.values())
    assert code == 0


UNTUNED = [
    ("isolated cores", {f"{CPU}/isolated": ""}, "advice", "nohz_full=2-3"),
    ("isolated cores", {f"{CPU}/online": "0-2"}, "bad", "cores that exist"),
    ("frequency governor", {f"{CPU}/cpu3/cpufreq/scaling_governor": "schedutil"}, "advice", "performance"),
    ("C-states", {f"{CPU}/cpu2/cpuidle/state3/disable": "0"}, "advice", "idle-set -D 10"),
    ("IRQ affinity", {"proc/irq/24/effective_affinity_list": "3"}, "advice", "echo 0-1 > /proc/irq"),
    ("NUMA", {f"{NODE}/node0/cpulist": "0,2", f"{NODE}/node1/cpulist": "1,3"}, "advice", "one node"),
    ("huge pages", {f"{PAGES}/enabled": "[always] madvise never"}, "advice", "echo madvise"),
    ("/dev/shm", {"dev/shm/.keep": None}, "bad", "mount a tmpfs"),
    ("clock source", {f"{CLOCK}/current_clocksource": "hpet"}, "advice", "echo tsc"),
    ("memlock limit", {LIMITS: limits(memory="8388608")}, "advice", "LimitMEMLOCK=infinity"),
    ("rtprio limit", {LIMITS: limits(priority="0")}, "bad", "LimitRTPRIO=50"),
    ("nofile limit", {LIMITS: limits(files="256")}, "bad", "LimitNOFILE"),
    ("GPU", {"dev/nvidia0": ""}, "advice", "--gpus all"),
]


@pytest.mark.parametrize(("subject", "changes", "verdict", "remedy"), UNTUNED, ids=lambda value: str(value)[:20])
def test_doctor_untuned_host_names_the_one_thing(tmp_path, subject, changes, verdict, remedy):
    """Each thing out of tune is found alone, with what to do; exit code 0, and 1 with `--strict`."""
    root = host(tmp_path / "host", changes)
    code, found = examined(root, tmp_path, OURS)
    assert {name for name, finding in found.items() if finding["verdict"] != "good"} == {subject}
    assert found[subject]["verdict"] == verdict
    assert remedy in found[subject]["remedy"]
    assert code == 0
    assert examined(root, tmp_path, OURS, "--strict")[0] == 1


def test_doctor_bare_container_knows_what_it_does_not_know(tmp_path):
    """Without /sys and /proc nothing is called good that was not seen, and nothing fails."""
    root = tmp_path / "host"
    (root / "dev" / "shm").mkdir(parents=True)
    code, found = examined(root, tmp_path)
    assert list(found) == SUBJECTS
    assert {name for name, finding in found.items() if finding["verdict"] == "unknown"} == {
        "frequency governor", "C-states", "IRQ affinity", "huge pages", "clock source",
        "memlock limit", "rtprio limit", "nofile limit",
    }  # fmt: skip
    assert code == 0


def test_doctor_small_shm_says_how_large_it_must_be(tmp_path):
    """Less room than a run takes: a start would fail; the remedy names a size."""
    finding = shared_memory(Tree(Path("/")), 1 << 60)
    assert finding.verdict == "bad"
    assert "remount,size=" in finding.remedy


def test_segment_bytes_cover_a_real_run(prefix):
    """What doctor says a run takes is not less than what its rings and windows take."""
    from tickwire.records import Instrument, SymbolTable

    symbols = SymbolTable(
        Instrument(venue="v", name=f"S{i}", price_increment="1", quantity_increment="1") for i in range(3)
    )
    owner = PrefixOwner(prefix)
    owner.create(symbols)
    sizes = [(Path("/dev/shm") / name).stat().st_size for name in list_segments(prefix)]
    assert segment_name(prefix, "ticks") in list_segments(prefix)
    owner.release()
    assert sum(sizes) <= segment_bytes(len(symbols)) < 1.2 * sum(sizes)


@pytest.mark.parametrize(
    ("script", "verdict", "found"),
    [
        ("echo 'NVIDIA X, 570.1, Enabled, 143771 MiB'", "good", "NVIDIA X, 570.1, Enabled, 143771 MiB"),
        ("echo 'NVIDIA X, 570.1, Disabled, 143771 MiB'", "advice", "Disabled"),
        ("echo 'Driver/library version mismatch'; exit 18", "bad", "exits with 18: Driver/library version mismatch"),
    ],
)
def test_doctor_gpu_reports_what_nvidia_smi_says(tmp_path, script, verdict, found):
    """Present, present without persistence mode, present and broken."""
    program = tmp_path / "fake-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    finding = gpu(Tree(tmp_path), str(program))
    assert (finding.verdict, found in finding.found) == (verdict, True)


def test_cpu_lists_round_trip():
    """The kernel's notation, read and written."""
    for text in ("", "0", "0-3,8", "1,3,5-6"):
        assert listed(cpus_of(text)) == text
