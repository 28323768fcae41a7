"""Does the fence of the wake path matter? `python tests/stress_park.py --turns 200000 --json FILE`.

Question: how many wake-ups are lost by the shipped wake path, and by the same one without its seq_cst fence (I9)?
Workload: a producer publishes one record as soon as the last one was taken; the reader asks to be woken, looks once
more and sleeps for at most 5 ms, as `wait` does with its 20 ms. Both pause for a random moment first, so that publish
and request meet. The wake-up was lost when the publish is over, the reader did not see it at its last look, and its
request to be woken still stands: this depends on no clock. The variant is the shipped source less that one line. Unit:
lost wake-ups a million sleeps. Two processes, a core each where there are two.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import sys
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit, uint32, uint64

from ring_processes import spec_of
from stress_ring import machine
from stress_round import watch
from tickwire.ring import Consumer, Producer, Start, WaitStrategy
from tickwire.ring.kernels import commit, poll
from tickwire.ring.kernels import producer as shipped
from tickwire.ring.kernels.consumer import is_ready
from tickwire.ring.kernels.state import C_CONTROL, C_DATA
from tickwire.ring.layout import FUTEX_AT, PARK_REQUEST_AT
from tickwire.ring.segment import list_segments, unlink
from tickwire.ring.words import (
    address_of,
    fence_seq_cst,
    futex_wait,
    load_acquire,
    load_acquire_32,
    pause,
    store_release,
    store_seq_cst_32,
)

# Longest pauses before a publish and before a request, in pause instructions.
PUBLISH_PAUSE = 8
REQUEST_PAUSE = 64
TIMEOUT_S = 300
BOUND_NS = 5_000_000
# Words of the run.
TAKEN, RETURNED, LOST, SLEPT = 0, 8, 16, 17
_OPTIONS = {"nogil": True, "error_model": "numpy"}
_FENCE = "    fence_seq_cst()\n"


@njit("uint64(uint64, uint64)", **_OPTIONS)
def linger(dice, longest):
    """Pause for a random moment; return the next dice."""
    dice ^= dice << uint64(13)
    dice ^= dice >> uint64(7)
    dice ^= dice << uint64(17)
    for _ in range(dice % longest):
        pause()
    return dice


def unfenced_publish() -> Any:
    """Compile the shipped producer kernels from their own source, less the one fence."""
    source = Path(shipped.__file__).read_text()
    if source.count(_FENCE) != 1:
        raise SystemExit(f"{shipped.__file__}: must hold one fence_seq_cst(), holds {source.count(_FENCE)}")
    module = ModuleType("unfenced_producer")
    sys.modules[module.__name__] = module
    exec(compile(source.replace(_FENCE, ""), "unfenced_producer", "exec"), module.__dict__)
    return module.publish


def sender(publish: Any) -> Any:
    """Compile the producer's loop around a `publish`."""

    @njit("void(uint64[::1], uint64[:, ::1], uint64[::1], uint64)", **_OPTIONS)
    def send(p, record, run, turns):
        address = address_of(run)
        dice = uint64(88172645463325252)
        for turn in range(turns):
            while load_acquire(address + uint64(8 * TAKEN)) != turn:
                pause()
            dice = linger(dice, uint64(PUBLISH_PAUSE))
            publish(p, record, 0, 1)
            store_release(address + uint64(8 * RETURNED), uint64(turn + uint64(1)))

    return send


@njit("void(uint64[::1], uint64[:, ::1], uint64[::1], uint64)", **_OPTIONS)
def receive(c, record, run, turns):
    """Take `turns` records; park for each that is not there yet, as `wait` does, and note what was slept through."""
    address = address_of(run)
    word = c[C_DATA] + uint64(FUTEX_AT)
    request = c[C_CONTROL] + uint64(PARK_REQUEST_AT)
    dice = uint64(2463534242)
    for turn in range(turns):
        dice = linger(dice, uint64(REQUEST_PAUSE))
        while not is_ready(c):
            expected = load_acquire_32(word)
            store_seq_cst_32(request, uint32(1))
            fence_seq_cst()
            if is_ready(c):
                break
            futex_wait(word, expected, BOUND_NS)
            run[SLEPT] += uint64(1)
            # The publish is over, it came after the last look, and yet nobody took the request back.
            returned = load_acquire(address + uint64(8 * RETURNED)) == turn + uint64(1)
            if returned and is_ready(c) and load_acquire_32(request) != 0:
                run[LOST] += uint64(1)
        poll(c, record, 1)
        commit(c)
        store_release(address + uint64(8 * TAKEN), uint64(turn + uint64(1)))


def measure(send: Any, turns: int) -> dict[str, int]:
    """Run one variant in two processes."""
    prefix = f"park-{uuid.uuid4().hex[:12]}"
    spec = spec_of("lossless", 64, 64)
    run = np.frombuffer(mmap.mmap(-1, 8 * 32), dtype=np.uint64)
    cores = sorted(os.sched_getaffinity(0))
    try:
        Producer.attach(prefix, spec).close()
        pid = os.fork()
        if pid == 0:
            watch(TIMEOUT_S)
            os.sched_setaffinity(0, {cores[0]})
            with Producer.attach(prefix, spec) as producer:
                send(producer.state, np.zeros((1, 8), dtype=np.uint64), run, turns)
            os._exit(0)
        watch(TIMEOUT_S)
        os.sched_setaffinity(0, {cores[-1]})
        with Consumer.attach(prefix, spec, name="parker", wait=WaitStrategy.PARK, start=Start.OLDEST) as consumer:
            receive(consumer.state, np.zeros((1, 8), dtype=np.uint64), run, turns)
        os.waitpid(pid, 0)
        os.sched_setaffinity(0, cores)
    finally:
        for name in list_segments(prefix):
            unlink(name)
    return {"turns": turns, "slept": int(run[SLEPT]), "lost": int(run[LOST])}


def main() -> int:
    """Measure both variants in turn; return 1 when the shipped one lost a wake-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300_000, help="records a repeat")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    variants = {"shipped": sender(shipped.publish), "no fence": sender(unfenced_publish())}
    found: dict[str, list[dict[str, int]]] = {name: [] for name in variants}
    for _ in range(arguments.repeats):
        for name, send in variants.items():
            row = measure(send, arguments.turns)
            found[name].append(row)
            print(f"{name:9}", " ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    total = {name: {key: sum(row[key] for row in rows) for key in rows[0]} for name, rows in found.items()}
    for name, row in total.items():
        rate = row["lost"] / max(row["slept"], 1) * 1e6
        print(f"total {name:9} slept {row['slept']} lost {row['lost']}, {rate:.1f} a million sleeps")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "total": total, "repeats": found}, indent=1) + "\n")
    return int(total["shipped"]["lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
