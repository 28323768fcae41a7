"""I9: the wake path loses no wake-up, and the measurement that says so sees a missing fence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "stress_park.py"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core reorders nothing that another could see")
def test_park_without_its_fence_loses_wake_ups_and_the_shipped_one_none(tmp_path):
    """I9: publish and park meet very often; only the variant without the fence sleeps through a record."""
    report = tmp_path / "park.json"
    command = [sys.executable, "-W", "error", str(PROGRAM), "--turns", "200000", "--repeats", "1"]
    process = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True, timeout=200)
    assert process.returncode == 0, process.stdout + process.stderr
    total = json.loads(report.read_text())["total"]
    assert total["shipped"]["slept"] > 0
    assert total["shipped"]["lost"] == 0
    assert total["no fence"]["lost"] > 0
