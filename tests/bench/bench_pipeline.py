"""What does the whole pipeline do on this machine: throughput, and tick to signal at the capture's own rate?

Question 1, throughput: ticks a second from JSON text to rows, ingest and features as two processes, pace `max`.
Workload: the full Binance USD-M recording if it lies beside the checkout, else the shipped minute. Unit: ticks a second
between the first tick and the last row, by the processes' own counters, watched every millisecond. Target: 200,000.

Question 2, latency: tick to signal (socket receive to signal publish) in real time, all four processes on ONNX Runtime,
shared cores, nothing pinned; open loop, since the capture's clock decides when a frame is sent. Unit: microseconds.
Target on two cores: median under 300 us without engine and engine queue.

    python tests/bench/bench_pipeline.py [--rounds 5] [--seconds 30] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tickwire.errors import RingNotFoundError
from tickwire.runtime import StatsReader
from tickwire.runtime.config import load_run
from tickwire_ctl.child import Child
from tickwire_ctl.segments import PrefixOwner

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "config" / "demo.toml"
RECORDING = ROOT.parent / "shared" / "data" / "binance" / "usdm_btcusdt_20240808.gz"
SHIPPED = ROOT / "deploy" / "captures" / "usdm_btcusdt_20240808_first60s.gz"


def throughput(folder: Path) -> dict[str, float]:
    """One run of ingest and features over one capture, as fast as possible."""
    capture = RECORDING if RECORDING.is_file() else SHIPPED
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    overrides = (
        f'run.prefix = "{prefix}"',
        f"run.state_dir = '{folder}'",
        'ingest.pace = "max"',
        'ingest.wait_for = ["features"]',
        "ingest.linger = true",
        f"ingest.captures = [{{ path = '{capture}', format = 'binance_usdm' }}]",
    )
    run = load_run(CONFIG, overrides=overrides)
    owner = PrefixOwner(prefix)
    children = [Child(service, CONFIG, overrides, folder / f"{service}.log") for service in ("features", "ingest")]
    try:
        owner.create(run.symbols)
        for child in children:
            child.start()
        ingest, features = (_attach(prefix, service) for service in ("ingest", "features"))
        while not ingest.counter("deltas"):
            time.sleep(0.0005)
        started = time.perf_counter()
        skipped = features.counter("ticks")
        while not ingest.gauge("finished") or features.counter("ticks") < ingest.counter("ticks"):
            time.sleep(0.001)
        seconds = time.perf_counter() - started
        return {
            "capture": capture.name,
            "ticks": features.counter("ticks") - skipped,
            "rows": features.counter("rows"),
            "lost": features.counter("lost_ticks"),
            "seconds": seconds,
            "ticks_per_s": (features.counter("ticks") - skipped) / seconds,
        }
    finally:
        for child in reversed(children):
            child.terminate()
            child.join(15)
        owner.release()


def latency(folder: Path, seconds: float) -> dict[str, object]:
    """The demo in real time; its summary."""
    file = folder / "demo.json"
    command = ["-m", "tickwire_ctl", "demo", "--seconds", str(seconds), "--json", str(file)]
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def _attach(prefix: str, service: str) -> StatsReader:
    while True:
        try:
            return StatsReader.attach(prefix, service)
        except RingNotFoundError:
            time.sleep(0.002)


def main() -> None:
    """Run both and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rounds = [throughput(folder) for _ in range(arguments.rounds)]
        demo = latency(folder, arguments.seconds)
    rates = [result["ticks_per_s"] for result in rounds]
    print(
        f"JSON text to rows: median {statistics.median(rates):,.0f} ticks/s of {len(rates)} rounds "
        f"(worst {min(rates):,.0f}, best {max(rates):,.0f}); {rounds[0]['ticks']:,} ticks a round, "
        f"lost {sum(result['lost'] for result in rounds)}"
    )
    for title, key in (("tick to signal", "tick_to_signal_us"), ("less engine", "tick_to_signal_less_engine_us")):
        values = demo[key]
        print(f"{title}: " + ", ".join(f"{q} {values[q]:,.1f}" for q in ("p50", "p99", "p99.9", "max")) + " us")
    print(f"lost {demo['lost']}, signals {demo['signals']}, batches {demo['batches']}")
    if arguments.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False)
        record = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.release()}",
            "commit": commit.stdout.strip(),
            "pinning": "none",
            "throughput": rounds,
            "latency": demo,
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
