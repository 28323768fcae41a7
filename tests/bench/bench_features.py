"""How many ticks a second does the features process turn into rows, on one core?

Question: the hot loop alone, with its rings and the windows store, and the kernels without them.
Workload: the first 65,536 ticks of the shipped Binance captures (perpetual and spot: deltas, quotes, trades), again and
again; the ticks ring is filled, then emptied by one call of the loop, batches of 256. Two rounds of warm-up dropped.
Unit: ticks a second, and nanoseconds a tick. Target: well over 400,000 ticks a second.

    python tests/bench/bench_features.py [--rounds 30] [--core 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
import uuid
from pathlib import Path

import numpy as np

from tickwire.records import Instrument, RecordArray, SymbolTable
from tickwire.ring import BackPressure, Consumer, Producer, WaitStrategy
from tickwire.ring.segment import list_segments, unlink
from tickwire.runtime import private_stats
from tickwire.topology import ROWS, TICKS
from tickwire.windows import WindowWriter
from tickwire_features.kernels.desk import new_desk
from tickwire_features.kernels.loop import run
from tickwire_features.kernels.ticks import take_ticks
from tickwire_features.stats import FEATURES_STATS
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.offline import read_ticks

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "deploy" / "captures"
SYMBOLS = SymbolTable(
    Instrument(venue=venue, name="BTCUSDT", price_increment="0.01", quantity_increment="0.00000001")
    for venue in ("binance_usdm", "binance_spot")
)
N_TICKS = TICKS.capacity
BATCH_TICKS = 256
WARM_ROUNDS = 2


def workload() -> RecordArray:
    """The ticks, shape (65536,)."""
    captures = [
        CaptureConfig(path="usdm_btcusdt_20240808_first60s.gz", format="binance_usdm"),
        CaptureConfig(path="spot_btcusdt_20240808_first60s.gz", format="binance_spot"),
    ]
    return np.concatenate(list(read_ticks(captures, SYMBOLS, folder=CAPTURES, align="start")))[:N_TICKS]


def loop_rounds(prefix: str, ticks: RecordArray, rounds: int) -> tuple[list[float], int]:
    """Seconds of each round of the whole loop, and rows of all."""
    stop = np.ones(1, dtype=np.uint64)  # the loop ends once it has emptied the ring
    stats = private_stats(FEATURES_STATS, len(SYMBOLS))
    with (
        Producer.attach(prefix, TICKS) as producer,
        Producer.attach(prefix, ROWS) as rows,
        Consumer.attach(prefix, TICKS, name="features", wait=WaitStrategy.PARK) as consumer,
        WindowWriter.attach(prefix, len(SYMBOLS)) as windows,
    ):
        desk = new_desk(len(SYMBOLS), BATCH_TICKS, windows.state)
        seconds = []
        for _ in range(rounds + WARM_ROUNDS):
            for first in range(0, len(ticks), TICKS.max_batch):
                assert not isinstance(producer.publish(ticks[first : first + TICKS.max_batch]), BackPressure)
            start = time.perf_counter()
            run(desk, consumer.state, rows.state, stats, stop.ctypes.data)
            seconds.append(time.perf_counter() - start)
        return seconds[WARM_ROUNDS:], rows.next_sequence


def kernel_rounds(prefix: str, ticks: RecordArray, rounds: int) -> list[float]:
    """Seconds of each round of the kernels alone."""
    with WindowWriter.attach(prefix, len(SYMBOLS)) as windows:
        desk = new_desk(len(SYMBOLS), BATCH_TICKS, windows.state)
        seconds = []
        for _ in range(rounds + WARM_ROUNDS):
            spent = 0.0
            for first in range(0, len(ticks), BATCH_TICKS):
                batch = ticks[first : first + BATCH_TICKS]
                desk.ticks[: len(batch)] = batch
                desk.work["records"] = 0
                start = time.perf_counter()
                take_ticks(desk, len(batch))
                spent += time.perf_counter() - start
            seconds.append(spent)
        return seconds[WARM_ROUNDS:]


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and worst round."""
    median, worst = float(np.median(seconds)), max(seconds)
    return {
        "ticks_per_second_p50": round(N_TICKS / median),
        "ticks_per_second_worst": round(N_TICKS / worst),
        "ns_per_tick_p50": round(median / N_TICKS * 1e9, 1),
    }


def main() -> None:
    """Measure and print, or write one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.core})
    ticks = workload()
    prefix = f"bench-{uuid.uuid4().hex[:12]}"
    try:
        loop_seconds, rows = loop_rounds(prefix, ticks, arguments.rounds)
        kernel_seconds = kernel_rounds(prefix, ticks, arguments.rounds)
    finally:
        for segment in list_segments(prefix):
            unlink(segment)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    result = {
        "bench": "features",
        "loop": summary(loop_seconds),
        "kernels": summary(kernel_seconds),
        "rows_per_tick": round(rows / (N_TICKS * (arguments.rounds + WARM_ROUNDS)), 4),
        "n": arguments.rounds,
        "batch_ticks": BATCH_TICKS,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "core": arguments.core,
        "commit": commit.stdout.strip(),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
