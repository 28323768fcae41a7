"""A quick cut of the ring's long stress run, `python tests/stress_ring.py`, and that its checks find what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stress_round import Plan, Round

PROGRAM = Path(__file__).parents[1] / "stress_ring.py"
PLAN = Plan(mode="lossless", slot_bytes=64, capacity=4, first_sequence=10, readers=1, evicts=False, restarts=0, seed=1)


def test_stress_of_a_few_rounds_violates_nothing(tmp_path):
    """S5, S7, S9: kills and stops of each side; nothing torn, out of order or unaccounted for, and no hang."""
    report = tmp_path / "stress.json"
    command = [sys.executable, "-W", "error", str(PROGRAM)]
    process = subprocess.run(
        [*command, "--rounds", "12", "--restarts", "120", "--seed", "4", "--json", str(report)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stderr == ""
    rounds = json.loads(report.read_text())["rounds"]
    assert sum(row["restarts"] for row in rounds) == 120
    assert sum(row["torn"] + row["disorder"] + len(row["violations"]) for row in rounds) == 0
    assert {row["mode"] for row in rounds} == {"lossless", "lossy"}
    assert sum(row["laps"] for row in rounds) > 0
    assert sum(row["evictions"] for row in rounds) > 0


def life(**changes: int) -> dict[str, int]:
    """A reader's last report: ten records from sequence 10 on."""
    whole = {
        "position": 20,
        "committed": 16,
        "received": 10,
        "lost": 0,
        "torn": 0,
        "disorder": 0,
        "laps": 0,
        "start": 10,
    }
    return {**whole, **changes}


@pytest.mark.parametrize(
    ("lives", "rule"),
    [
        ([life(torn=1)], "I1"),
        ([life(disorder=1)], "I1"),
        ([life(received=9)], "I2"),
        ([life(position=19, received=9)], "I2"),
        ([life(start=11, received=9)], "I2"),
        ([life(), life(start=15, received=5)], "I3"),
        ([life(), life(start=21, received=-1)], "I3"),
        ([life(received=8, lost=2)], "I4"),
        ([], "I2"),
    ],
)
def test_stress_check_finds_each_violation(lives, rule):
    """A report that breaks one rule is a violation of that rule."""
    checked = Round("unused", PLAN)
    checked.readers[0].incarnations = lives
    checked.check_reader(checked.readers[0], 20)
    assert any(f": {rule} " in text for text in checked.violations)


def test_stress_check_accepts_what_came_again():
    """What was reported and not committed may come again to a restarted reader, and counts once."""
    checked = Round("unused", PLAN)
    checked.readers[0].incarnations = [life(), life(start=17, position=30, received=13)]
    checked.check_reader(checked.readers[0], 30)
    assert checked.violations == []
    assert checked.readers[0].repeated() == 3


def test_stress_hung_process_is_ended_and_says_where():
    """The watchdog ends a process that hangs, with the stack of where it was."""
    program = "import stress_round, threading; stress_round.watch(1); threading.Event().wait()"
    hung = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), os.environ.get("PYTHONPATH", "")])},
    )
    assert hung.returncode != 0
    assert "in wait" in hung.stderr
