"""Is there a GPU that the GPU engine can use?"""

from __future__ import annotations

import shutil
import subprocess

from tickwire_ctl.doctor.finding import Finding, Verdict
from tickwire_ctl.doctor.tree import Tree

_QUERY = ("--query-gpu=name,driver_version,persistence_mode,memory.total", "--format=csv,noheader")
_TIMEOUT_S = 10.0
_WHY = "models run on the CPU without one; without persistence mode the first call after a pause waits for the driver"


def gpu(tree: Tree, command: str = "nvidia-smi") -> Finding:
    """Look for NVIDIA's device files and ask `nvidia-smi`.

    Args:
        tree: The host's files.
        command: What to ask.
    """
    devices = [path.name for path in tree.matches("dev/nvidia[0-9]*")]
    program = shutil.which(command)
    if not devices and program is None:
        return Finding("GPU", Verdict.GOOD, "none: the CPU engine serves", "", _WHY)
    if program is None:
        remedy = "install the driver's tools; in a container: --gpus all, with NVIDIA's container toolkit"
        return Finding("GPU", Verdict.ADVICE, f"{', '.join(devices)} without {command}", remedy, _WHY)
    try:
        asked = subprocess.run(  # noqa: S603 - the program that `which` found, fixed arguments
            [program, *_QUERY], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        remedy = "look at dmesg for Xid lines; reload the driver"
        return Finding("GPU", Verdict.BAD, f"{command}: {error}", remedy, _WHY)
    if asked.returncode != 0:
        said = (asked.stderr or asked.stdout).strip().splitlines() or ["no output"]
        remedy = "make the driver's kernel module and its libraries the same release; look at dmesg for Xid lines"
        return Finding("GPU", Verdict.BAD, f"{command} exits with {asked.returncode}: {said[0]}", remedy, _WHY)
    found = "; ".join(line.strip() for line in asked.stdout.splitlines() if line.strip())
    if "Disabled" in found:
        return Finding("GPU", Verdict.ADVICE, found, "nvidia-smi -pm 1", _WHY)
    return Finding("GPU", Verdict.GOOD, found, "", _WHY)
