"""The ring's long stress run: `python tests/stress_ring.py --restarts 500 --json FILE`.

Rounds of one producer and one to eight readers, lossless and lossy, every slot size, tiny and normal capacities, first
sequences just below 2^31, 2^32 and 2^63; processes are stopped, continued and killed at random moments. Prints a line a
round and a total; ends with 1 on any violation. `--seed` repeats a run's plan, though not its moments.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

from ring_processes import spec_of
from stress_round import Plan, Round

SLOT_BYTES = (64, 128, 256, 320, 512)
CAPACITIES = (4, 16, 1024)
EDGES = (0, 2**31, 2**32, 2**63 - 1)


def plans(rounds: int, restarts: int, seed: int) -> list[Plan]:
    """Return the rounds' plans: every combination once before any comes twice, in random order."""
    dice = random.Random(seed)
    every = list(itertools.product(("lossless", "lossy"), SLOT_BYTES, CAPACITIES, EDGES))
    chosen: list[Plan] = []
    while len(chosen) < rounds:
        dice.shuffle(every)
        for mode, slot_bytes, capacity, edge in every[: rounds - len(chosen)]:
            done = len(chosen)
            chosen.append(
                Plan(
                    mode=mode,
                    slot_bytes=slot_bytes,
                    capacity=capacity,
                    first_sequence=max(0, edge - _margin(mode, capacity, edge)),
                    readers=dice.randint(1, 8),
                    evicts=mode == "lossless" and dice.random() < 0.3,
                    restarts=restarts * (done + 1) // rounds - restarts * done // rounds,
                    seed=dice.getrandbits(32),
                    edge=edge,
                    end_sequence=2**63 - 1,
                )
            )
    return chosen


# How far before its edge a ring starts: near enough to get there in a round, and at the last sequence, where the
# producer has to end, far enough to be disturbed on the way.
def _margin(mode: str, capacity: int, edge: int) -> int:
    if edge == EDGES[-1]:
        return 400 * capacity if mode == "lossless" else 1_000_000
    return 100 * capacity if mode == "lossless" else 50_000


def check_refused() -> None:
    """A ring that would start at 2^63 is refused; there is no other side to preset."""
    try:
        spec_of("lossy", 4, 64, 2**63)
    except ValueError as error:
        print(f"first_sequence 2^63 is refused: {error}")
    else:
        raise SystemExit("first_sequence 2^63 must be refused, was not")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    names = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
    }


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=500, help="processes killed and restarted, over all rounds")
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    check_refused()
    begin = time.monotonic()
    rows: list[dict[str, Any]] = []
    for number, plan in enumerate(plans(arguments.rounds, arguments.restarts, arguments.seed)):
        row = Round(f"stress-{os.getpid()}-{number}", plan).run()
        rows.append(row)
        figures = " ".join(f"{key} {value}" for key, value in row.items() if key not in ("plan", "mode", "violations"))
        print(f"{number + 1:4}/{arguments.rounds} {row['plan']}: {figures}", flush=True)
        for text in row["violations"]:
            print(f"VIOLATION {text}", flush=True)
    total: dict[str, Any] = {
        key: sum(row[key] for row in rows) for key in rows[0] if key not in ("plan", "mode", "violations", "seconds")
    }
    total["violations"] = sum(len(row["violations"]) for row in rows)
    total["rounds"] = len(rows)
    total["seconds"] = round(time.monotonic() - begin, 1)
    print("total:", " ".join(f"{key} {value}" for key, value in total.items()))
    if arguments.json:
        report = {"seed": arguments.seed, "machine": machine(), "total": total, "rounds": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(total["violations"] > 0)


if __name__ == "__main__":
    sys.exit(main())
