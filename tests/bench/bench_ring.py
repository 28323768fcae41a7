"""How fast is the ring, beside the same protocol in C and beside what else moves records between Python processes?

Question 1: hop latency. Ping-pong over two rings (half a round trip), and one way at a fixed pace (open loop: a record
is sent when it is due, whatever the reader does); two processes, each on a core of its own.
Question 2: throughput, lossless, in batches of 1 and 64, one to four consumers (as many as there are cores for).
Workload: slots of 64, 128, 256 and 320 bytes. Warm-up dropped. Unit: nanoseconds a hop, records a second.
Peers in the same run: the same protocol in C at -O3 on the same segments (the limit); from Python, a record at a time:
this ring's own Python API, iceoryx2, kickmsg, pyzmq (ipc) and multiprocessing.Queue, busy-polled where they can be.

    pip install iceoryx2 kickmsg pyzmq matplotlib       (a peer that is not installed is left out, and named)
    python tests/bench/bench_ring.py [--json FILE] [--plot FILE.png] [--quick]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from ring_peers import PEERS, Queues

from tickwire.records import slot_dtype
from tickwire.ring import Consumer, Lapped, Producer, RingMode, RingSpec, Start, WaitStrategy
from tickwire.ring.segment import list_segments, unlink

SLOTS = (64, 128, 256, 320)
CAPACITY = 4096
PACE_NS = 5_000
MAX_CONSUMERS = 4
READ_BATCH = 256
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["ring_sides", "ring_peers"])  # the loops are compiled once, before the first fork


def spec_of(name: str, slot_bytes: int) -> RingSpec:
    """A lossless ring of plain words."""
    dtype = slot_dtype(slot_bytes, [("words", "<u8", (slot_bytes // 8 - 2,))])
    return RingSpec(name=name, mode=RingMode.LOSSLESS, capacity=CAPACITY, dtype=dtype)


def side_of(kind: str, library: Path) -> Any:
    """The compiled loops of one implementation."""
    from ring_sides import CSide, KernelSide  # compiles: after the run's cache folder is known

    return KernelSide() if kind == "kernel" else CSide(library)


def pin(core: int) -> None:
    """Take one core of those allowed."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


def attach(prefix: str, name: str, slot: int, reader: str) -> Consumer:
    """A spinning consumer from the ring's start."""
    return Consumer.attach(prefix, spec_of(name, slot), name=reader, wait=WaitStrategy.SPIN, start=Start.OLDEST)


def produce_on(prefix: str, name: str, slot: int) -> Producer:
    """A producer that never evicts a reader which the machine has put aside."""
    return Producer.attach(prefix, spec_of(name, slot), stall_timeout_ms=3_600_000)


class Prefix:
    """A prefix of its own, removed at the end."""

    def __enter__(self) -> str:
        """Return a fresh one."""
        self._name = f"bench-{uuid.uuid4().hex[:8]}"
        return self._name

    def __exit__(self, *_: object) -> None:
        """Remove its segments."""
        for name in list_segments(self._name):
            unlink(name)


# The other process of each measurement. `cores` are those of the whole run: a child starts pinned as its parent is.


def run_echo(kind: str, library: Path, prefix: str, slot: int, n: int, cores: set[int], ready: Any) -> None:
    """Send back what comes."""
    os.sched_setaffinity(0, cores)
    pin(1)
    consumer, producer = attach(prefix, "a", slot, "echo"), produce_on(prefix, "b", slot)
    if kind == "python":
        ready.release()
        for _ in range(n):
            producer.publish(receive_one(consumer))
        return
    side, words = side_of(kind, library), np.ones((1, slot // 8), np.uint64)
    p, c = side.producer(producer), side.consumer(consumer)
    ready.release()
    side.echo(p, c, words, n)


def run_receiver(
    kind: str, library: Path, prefix: str, slot: int, n: int, cores: set[int], ready: Any, out: Any
) -> None:
    """Note how long each record was under way."""
    os.sched_setaffinity(0, cores)
    pin(1)
    side, words, taken = side_of(kind, library), np.ones((1, slot // 8), np.uint64), np.zeros(n, np.int64)
    consumer = attach(prefix, "a", slot, "reader")  # kept: its mapping ends with it
    c = side.consumer(consumer)
    ready.release()
    side.receive_paced(c, words, n, taken)
    out.put(taken)


def run_consumer(
    kind: str, library: Path, prefix: str, slot: int, n: int, cores: set[int], core: int, ready: Any
) -> None:
    """Read everything."""
    os.sched_setaffinity(0, cores)
    pin(core)
    side, words = side_of(kind, library), np.ones((READ_BATCH, slot // 8), np.uint64)
    consumer = attach(prefix, "a", slot, f"reader-{core}")
    c = side.consumer(consumer)
    ready.release()
    side.consume(c, words, n, READ_BATCH)


def run_peer(peer: str, name: Any, size: int, n: int, cores: set[int], ready: Any) -> None:
    """Send back what comes, through a peer."""
    os.sched_setaffinity(0, cores)
    pin(1)
    end = PEERS[peer](name, 1, size)
    ready.release()
    for _ in range(n):
        while not end.receive():
            pass
        end.send()
    ready.acquire()  # the last message has arrived: a forked process does not wait for what it has sent


def receive_one(consumer: Consumer) -> np.ndarray:
    """Busy-poll through the Python API."""
    while True:
        batch = consumer.poll(1)
        if not isinstance(batch, Lapped) and len(batch):
            return batch


class Bench:
    """The measurements of one run."""

    def __init__(self, library: Path, cores: set[int]) -> None:
        """Remember the C library and the cores."""
        self._library = library
        self._cores = cores

    def ping_pong(self, kind: str, slot: int, n: int) -> np.ndarray:
        """Nanoseconds of n hops."""
        with Prefix() as prefix:
            producer = produce_on(prefix, "a", slot)
            produce_on(prefix, "b", slot).close()
            consumer = attach(prefix, "b", slot, "ping")
            taken, ready = np.zeros(n, np.int64), PROCESSES.Semaphore(0)
            process = self._start(run_echo, kind, self._library, prefix, slot, n, self._cores, ready)
            ready.acquire()
            if kind == "python":
                record = np.zeros(1, producer.spec.dtype)
                for i in range(n):
                    start = time.perf_counter_ns()
                    producer.publish(record)
                    receive_one(consumer)
                    taken[i] = time.perf_counter_ns() - start
            else:
                side, words = side_of(kind, self._library), np.ones((1, slot // 8), np.uint64)
                side.ping(side.producer(producer), side.consumer(consumer), words, n, taken)
            process.join()
            return taken[n // 10 :] / 2

    def one_way(self, kind: str, slot: int, n: int) -> np.ndarray:
        """Nanoseconds from publish stamp to reader, one record every PACE_NS."""
        with Prefix() as prefix:
            producer = produce_on(prefix, "a", slot)
            ready, out = PROCESSES.Semaphore(0), PROCESSES.Queue()
            process = self._start(run_receiver, kind, self._library, prefix, slot, n, self._cores, ready, out)
            ready.acquire()
            side, words = side_of(kind, self._library), np.ones((1, slot // 8), np.uint64)
            side.send_paced(side.producer(producer), words, n, PACE_NS)
            taken: np.ndarray = out.get(timeout=60)
            process.join()
            return taken[n // 10 :]

    def throughput(self, kind: str, slot: int, n: int, batch: int, consumers: int) -> float:
        """Records a second."""
        with Prefix() as prefix:
            producer = produce_on(prefix, "a", slot)
            ready = PROCESSES.Semaphore(0)
            processes = [
                self._start(run_consumer, kind, self._library, prefix, slot, n, self._cores, core, ready)
                for core in range(1, consumers + 1)
            ]
            for _ in processes:
                ready.acquire()
            side, words = side_of(kind, self._library), np.ones((batch, slot // 8), np.uint64)
            taken_ns = side.produce(side.producer(producer), words, n, batch)
            for process in processes:
                process.join()
            return n / (taken_ns * 1e-9)

    def peer_hops(self, peer: str, size: int, n: int) -> np.ndarray:
        """Nanoseconds of n hops of a peer, a record at a time from Python."""
        name: Any = f"bench-{uuid.uuid4().hex[:8]}"
        if PEERS[peer] is Queues:
            name = (PROCESSES.Queue(), PROCESSES.Queue())
        end, ready = PEERS[peer](name, 0, size), PROCESSES.Semaphore(0)
        process = self._start(run_peer, peer, name, size, n, self._cores, ready)
        ready.acquire()
        taken = np.zeros(n, np.int64)
        for i in range(n):
            start = time.perf_counter_ns()
            end.send()
            while not end.receive():
                pass
            taken[i] = time.perf_counter_ns() - start
        ready.release()
        process.join()
        return taken[n // 10 :] / 2

    def _start(self, target: Any, *arguments: Any) -> Any:
        process = PROCESSES.Process(target=target, args=arguments)
        process.start()
        return process


def quantiles(taken: np.ndarray) -> dict[str, float]:
    """p50, p99, p99.9, max, n."""
    levels = {"p50": 50, "p99": 99, "p99.9": 99.9}
    found = {name: float(np.percentile(taken, level)) for name, level in levels.items()}
    return {**found, "max": float(taken.max()), "n": len(taken)}


def measure(bench: Bench, n_cores: int, quick: bool) -> dict[str, Any]:
    """Everything, interleaved so that both sides of a ratio see the same machine."""
    scale = 10 if quick else 1
    start_s = time.monotonic()
    hops, paced, rates = 200_000 // scale, 100_000 // scale, 4_000_000 // scale
    result: dict[str, Any] = {"hop_ns": {}, "one_way_ns": {}, "records_per_s": {}, "python_hop_ns": {}, "left_out": []}
    for slot in SLOTS:
        for kind in ("kernel", "c"):
            runs = [bench.ping_pong(kind, slot, hops) for _ in range(3)]
            result["hop_ns"][f"{kind} {slot}"] = quantiles(min(runs, key=np.median))
            result["one_way_ns"][f"{kind} {slot}"] = quantiles(bench.one_way(kind, slot, paced))
        for batch in (1, 64):
            for consumers in range(1, min(MAX_CONSUMERS, n_cores - 1) + 1):
                label = f"{slot} batch {batch} consumers {consumers}"
                both: dict[str, list[float]] = {"kernel": [], "c": []}
                for _ in range(3 if consumers == 1 else 1):
                    for kind, rates_seen in both.items():
                        rates_seen.append(bench.throughput(kind, slot, rates, batch, consumers))
                for kind, rates_seen in both.items():
                    result["records_per_s"][f"{kind} {label}"] = float(np.median(rates_seen))
        result["python_hop_ns"][f"tickwire {slot}"] = quantiles(bench.ping_pong("python", slot, 20_000 // scale))
        for peer, make in PEERS.items():
            if importlib.util.find_spec(make.package) is None:
                result["left_out"].append(peer)
                continue
            result["python_hop_ns"][f"{peer} {slot}"] = quantiles(bench.peer_hops(peer, slot, 10_000 // scale))
        print(f"measured {slot} bytes after {time.monotonic() - start_s:.0f} s", flush=True)
    return result


def report(result: dict[str, Any]) -> None:
    """Print medians and the ratios that count."""
    for slot in SLOTS:
        for title, key in (("hop", "hop_ns"), ("one way", "one_way_ns")):
            kernel, c = result[key][f"kernel {slot}"], result[key][f"c {slot}"]
            ratio = kernel["p50"] / c["p50"]
            print(
                f"{slot:3d} bytes, {title}: p50 {kernel['p50']:.0f} ns, p99 {kernel['p99']:.0f} "
                f"(C {c['p50']:.0f}, {c['p99']:.0f}; ratio of p50 {ratio:.2f})"
            )
    for key, rate in result["records_per_s"].items():
        if key.startswith("kernel"):
            label = key.removeprefix("kernel ")
            c_rate = result["records_per_s"][f"c {label}"]
            print(f"{label}: {rate / 1e6:.1f} M/s (C {c_rate / 1e6:.1f}, ratio {rate / c_rate:.2f})")
    for key, values in result["python_hop_ns"].items():
        kernel = result["hop_ns"][f"kernel {key.rsplit(' ', 1)[1]}"]["p50"]
        times = values["p50"] / kernel
        print(f"{key} bytes, from Python: hop p50 {values['p50']:,.0f} ns, {times:,.0f} times the kernel's")
    if result["left_out"]:
        print(f"left out, not installed: {', '.join(sorted(set(result['left_out'])))}")


def plot(result: dict[str, Any], path: Path) -> None:
    """Median hops on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    bars = {
        "kernel to kernel": result["hop_ns"]["kernel 128"]["p50"],
        "the same in C": result["hop_ns"]["c 128"]["p50"],
    }
    for key, values in result["python_hop_ns"].items():
        name, slot = key.rsplit(" ", 1)
        if slot == "128":
            bars["Python API, a record at a time" if name == "tickwire" else name] = values["p50"]
    names, values_ns = list(bars)[::-1], list(bars.values())[::-1]
    figure, axis = pyplot.subplots(figsize=(8, 3.2))
    axis.barh(names, values_ns, color=["#8a8a8a"] * (len(bars) - 1) + ["#1f77b4"])
    axis.set_xscale("log")
    axis.set_xlim(right=max(values_ns) * 4)
    axis.set_xlabel("hop between two processes, 128 bytes, median, nanoseconds")
    for i, value in enumerate(values_ns):
        axis.text(value, i, f" {value:,.0f}", va="center")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def build_peer(folder: str) -> Path:
    """Compile ring_peer.c; return the library's path."""
    path = Path(folder) / "ring_peer.so"
    source = Path(__file__).with_name("ring_peer.c")
    subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return path


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    arguments = parser.parse_args()
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TICKWIRE_BENCH_CACHE"] = folder
        # The server that forks the other processes looks for what it loads first before it knows this one's sys.path.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path[1:]])
        bench = Bench(build_peer(folder), cores)
        pin(0)
        try:
            result = measure(bench, len(cores), arguments.quick)
        finally:
            os.sched_setaffinity(0, cores)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    result["machine"] = f"{platform.machine()}, {len(cores)} cores, Linux {platform.release()}"
    result["commit"] = commit.stdout.strip()
    result["pinning"] = "producer on the first core, consumers on the next ones"
    report(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    if arguments.plot:
        plot(result, arguments.plot)


if __name__ == "__main__":
    main()
