"""How long does a scrape of /metrics take, and how long does it keep the interpreter from the hot threads?

Question: the whole HTTP request as Prometheus sees it, from another process; and the pieces of its text,
each of which is a time that the event loop holds the GIL.
Workload: the statistics of features (8 values a symbol, the most of all services) with 500 symbols, over loopback.
Unit: milliseconds a scrape, microseconds a piece. Target: below 20 ms a scrape.

    python tests/bench/bench_endpoints.py [--symbols 500] [--scrapes 200] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np

from tickwire.ring.segment import list_segments, unlink
from tickwire.runtime.clock import monotonic_ns
from tickwire.runtime.config import load_run
from tickwire.runtime.context import ServiceContext
from tickwire.runtime.endpoints import open_endpoints
from tickwire.runtime.metrics import StatsMetrics
from tickwire_features.stats import FEATURES_STATS

WARM_SCRAPES = 5
CLIENT = """
import http.client, json, sys, time
port, scrapes = int(sys.argv[1]), int(sys.argv[2])
connection = http.client.HTTPConnection("127.0.0.1", port)
found = []
for _ in range(scrapes):
    begin = time.perf_counter_ns()
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    body = answer.read()
    found.append(time.perf_counter_ns() - begin)
    assert answer.status == 200, answer.status
print(json.dumps({"ns": found, "bytes": len(body)}))
"""


def configuration(folder: Path, prefix: str, symbols: int, port: int) -> Path:
    """A TOML with so many symbols and an endpoint of features."""
    lines = [f'[run]\nprefix = "{prefix}"\nendpoints.features = "127.0.0.1:{port}"']
    lines += [
        f'[[symbols]]\nvenue = "venue"\nname = "SYMBOL{i}"\nprice_increment = "1"\nquantity_increment = "1"'
        for i in range(symbols)
    ]
    path = folder / "bench.toml"
    path.write_text("\n".join(lines))
    return path


async def measure(config: Path, port: int, scrapes: int) -> tuple[list[float], list[float], int]:
    """Milliseconds of each scrape, microseconds of each piece, bytes of the text."""
    context: ServiceContext = ServiceContext("features", load_run(config), None)
    stats = context.create_stats(FEATURES_STATS)
    for array in stats.arrays:
        array[...] = np.arange(array.size, dtype=np.uint64).reshape(array.shape) + np.uint64(10**12)
    endpoints = await open_endpoints(context)
    assert endpoints is not None
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, str(port), str(scrapes + WARM_SCRAPES), stdout=subprocess.PIPE
    )
    out, _ = await client.communicate()
    found = json.loads(out)
    metrics = StatsMetrics("features", FEATURES_STATS, tuple(instrument.label for instrument in context.symbols))
    pieces = []
    for _ in range(scrapes):
        begin = time.perf_counter_ns()
        for _piece in metrics.pieces(stats.arrays, monotonic_ns()):
            now = time.perf_counter_ns()
            pieces.append((now - begin) / 1e3)
            begin = now
    await endpoints.close()
    await context.tasks.stop()
    context.close()
    return [ns / 1e6 for ns in found["ns"][WARM_SCRAPES:]], pieces, found["bytes"]


def quantiles(values: list[float]) -> dict[str, float]:
    """p50, p99, maximum."""
    return {"p50": float(np.quantile(values, 0.5)), "p99": float(np.quantile(values, 0.99)), "max": max(values)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=int, default=500)
    parser.add_argument("--scrapes", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = configuration(Path(folder), prefix, arguments.symbols, port)
            scrapes_ms, pieces_us, size = asyncio.run(measure(config, port, arguments.scrapes))
    finally:
        for name in list_segments(prefix):
            unlink(name)
    result = {
        "machine": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "symbols": arguments.symbols,
        "scrapes": arguments.scrapes,
        "bytes": size,
        "scrape_ms": quantiles(scrapes_ms),
        "piece_us": quantiles(pieces_us),
    }
    print(json.dumps(result, indent=1))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
