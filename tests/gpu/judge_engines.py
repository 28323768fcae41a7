"""Build and judge engines on the GPU present: what docs/models.md reports, and what each way round costs and gains.

    python tests/gpu/judge_engines.py --json FILE [--graph NAME=FILE.onnx ...] [--model transformer]

For the model's FP32, FP16 and INT8 graphs, and for each further graph: builds the plan, judges every bucket by the
gates of its precision, times each bucket by plain enqueue. With `--pad` the same once more with bucket 1 run as 2.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tickwire.errors import EngineError
from tickwire.models import ModelRegistry
from tickwire.models.engine_files import EngineFiles
from tickwire.models.precisions import graph_of
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.machine import machine_here
from tickwire_inference.engines.plan import BucketPlan
from tickwire_inference.engines.tensorrt import TensorRtEngine
from tickwire_inference.engines.tensorrt_library import load_library
from tickwire_inference.layouts import BUCKETS
from tickwire_models.building import build, settings_for
from tickwire_models.calibration import draw
from tickwire_models.forms import make_form
from tickwire_models.judging import Judge, describe
from tickwire_models.sessions import rows_of_config

ROOT = Path(__file__).parents[2]
RUNS = 500


def times_us(engine: TensorRtEngine) -> dict[int, dict[str, float]]:
    """Microseconds of each bucket by plain enqueue, full windows copied: p50 and p99."""
    found = {}
    for bucket in BUCKETS:
        taken = np.zeros(RUNS)
        for i in range(RUNS):
            start = time.perf_counter_ns()
            engine.run(bucket)
            taken[i] = (time.perf_counter_ns() - start) / 1000
        found[bucket] = {"p50": float(np.percentile(taken[50:], 50)), "p99": float(np.percentile(taken[50:], 99))}
    return found


def main() -> None:
    """Build, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--model", default="transformer")
    parser.add_argument("--graph", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--levels", default="3")
    parser.add_argument("--pad", action="store_true")
    arguments = parser.parse_args()
    library, cuda = load_library(), CudaContext()
    machine = machine_here(library, cuda)
    results: dict[str, Any] = {"machine": msgspec.to_builtins(machine), "engines": {}}
    with tempfile.TemporaryDirectory() as folder:
        registry = Path(folder) / "models"
        shutil.copytree(ROOT / "deploy" / "models", registry)
        files = ModelRegistry(registry).resolve(arguments.model)
        rows = rows_of_config(ROOT / "deploy" / "config" / "demo.toml", files.manifest.window_rows)
        make_form(files, "fp16", None, Path(folder), print)
        make_form(files, "int8", draw(rows, files.manifest.window_rows), Path(folder), print)
        judge = Judge(files, rows)
        graphs: list[tuple[str, Any, bytes]] = [(p, p, graph_of(files, p)) for p in ("fp32", "fp16", "int8")]  # type: ignore[arg-type]
        graphs += [
            (name, "fp32", Path(path).read_bytes()) for name, _, path in (g.partition("=") for g in arguments.graph)
        ]
        for name, precision, graph in graphs:
            for level in map(int, arguments.levels.split(",")):
                for run_sizes in ({}, {1: 2}) if arguments.pad else ({},):
                    label = f"{name} level {level}{' bucket 1 as 2' if run_sizes else ''}"
                    try:
                        built = build(library, graph, 500, settings_for(graph, level=level), run_sizes=run_sizes)
                        manifest = describe(files, precision, graph, built, machine)
                        report = judge.plan(library, cuda, manifest, built.plan)
                    except EngineError as error:
                        results["engines"][label] = {"error": str(error)}
                        print(label, "ERROR", error, flush=True)
                        continue
                    runs = tuple(BucketPlan(run.bucket, run.profile, run.run_size) for run in built.buckets)
                    engine = TensorRtEngine(files.label, 500, library, cuda, built.plan, runs)
                    EngineFiles(files.folder).write(manifest, built.plan, built.inspector)
                    layers = len(json.loads(built.inspector or "{}", strict=False).get("Layers", []))
                    results["engines"][label] = {
                        "report": report.encoded(),
                        "refusals": [refusal.text() for refusal in report.refusals],
                        "plan_bytes": len(built.plan),
                        "build_s": built.seconds,
                        "layers": layers,
                        "us": times_us(engine),
                        "messages": list(built.messages[:5]),
                    }
                    engine.close()
                    errors = {found.bucket: f"{found.max_error:.1e}" for found in report.buckets}
                    p50 = {bucket: round(t["p50"]) for bucket, t in results["engines"][label]["us"].items()}
                    print(label, "passed" if report.passed else "REFUSED", errors, "us", p50, flush=True)
                    for refusal in report.refusals[:4]:
                        print("   ", refusal.text(), flush=True)
                    arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    cuda.close()


if __name__ == "__main__":
    main()
