"""How long does a batch take in the ONNX Runtime engine, on one core?

Question: engine time of batches of 1 to 16 symbols, and of the gathering of their windows before it.
Workload: a model of deploy/models, one thread pinned to one core, closed loop, warm-up of 20 runs dropped.
Unit: microseconds. Target: batch 1 at most 1,000 with the reference model.

    python tests/bench/bench_onnxruntime.py [--model transformer] [--runs 300] [--core 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from tickwire.models import ModelRegistry
from tickwire.records import N_FEATURES, WINDOW_ROWS
from tickwire_inference.engines import OnnxRuntimeEngine
from tickwire_inference.kernels.windows import gather
from tickwire_inference.layouts import MAX_BATCH

ROOT = Path(__file__).parents[2]
WARM_RUNS = 20


def measure(run: Callable[[], None], runs: int) -> dict[str, float]:
    """Quantiles of `runs` runs in microseconds."""
    times = np.empty(runs + WARM_RUNS)
    for i in range(len(times)):
        start = time.perf_counter_ns()
        run()
        times[i] = (time.perf_counter_ns() - start) / 1000
    kept = times[WARM_RUNS:]
    names = ("p50", "p99", "p99.9", "max")
    return {name: round(float(np.quantile(kept, q)), 1) for name, q in zip(names, (0.5, 0.99, 0.999, 1), strict=True)}


def main() -> None:
    """Measure and print a table, or write one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT / "deploy" / "models")
    parser.add_argument("--model", default="transformer")
    parser.add_argument("--version")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.core})
    engine = OnnxRuntimeEngine(ModelRegistry(arguments.models).resolve(arguments.model, arguments.version))
    engine.warm_up()
    rng = np.random.default_rng(1)
    engine.windows[:] = rng.normal(size=engine.windows.shape)
    results = {}
    for size in range(1, MAX_BATCH + 1):
        results[str(size)] = measure(lambda size=size: engine.run(size), arguments.runs)
        print(f"batch {size:2d}  " + "  ".join(f"{name} {value:9.1f}" for name, value in results[str(size)].items()))
    gathering = measure(gather_sixteen(engine), arguments.runs)
    print("gather 16 " + "  ".join(f"{name} {value:9.1f}" for name, value in gathering.items()))
    if arguments.json:
        report = {
            "bench": "onnxruntime",
            "unit": "us",
            "model": engine.label,
            "window_rows": engine.window_rows,
            "runs": arguments.runs,
            "core": arguments.core,
            "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
            "onnxruntime": onnxruntime.__version__,
            "commit": subprocess.run(
                ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
            ).stdout.strip(),
            "engine": results,
            "gather_16": gathering,
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def gather_sixteen(engine: OnnxRuntimeEngine) -> Callable[[], None]:
    """The gathering of sixteen windows into the engine's input."""
    bits = np.random.default_rng(2).normal(size=(MAX_BATCH, WINDOW_ROWS, N_FEATURES)).astype(np.float32).view(np.uint32)
    newest = np.full(MAX_BATCH, WINDOW_ROWS, np.uint64)
    staging = engine.windows.view(np.uint32)

    def run() -> None:
        for symbol in range(MAX_BATCH):
            gather(bits, newest, symbol, WINDOW_ROWS, staging, symbol)

    return run


if __name__ == "__main__":
    main()
