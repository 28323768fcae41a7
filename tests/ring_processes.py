"""Real processes for ring tests: `python tests/ring_processes.py ROLE ARGUMENTS`.

Each record's payload is a function of its sequence in every word, so that any mixture of two records shows. Roles print
one JSON object at their end and `ready` once they are attached.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tickwire.records import as_words, slot_dtype
from tickwire.ring import BackPressure, Consumer, Lapped, Producer, RingMode, RingSpec, Start, WaitStrategy

_PRIME = np.uint64(0x9E3779B97F4A7C15)


def spec_of(mode: str, capacity: int, slot_bytes: int, first_sequence: int = 0) -> RingSpec:
    """A ring whose payload is plain words."""
    words = slot_bytes // 8 - 2
    return RingSpec(
        name="stress",
        mode=RingMode[mode.upper()],
        capacity=capacity,
        dtype=slot_dtype(slot_bytes, [("words", "<u8", (words,))]),
        first_sequence=first_sequence,
    )


def fill(records: np.ndarray, first_sequence: int) -> None:
    """Write the payload of the sequences from `first_sequence` on."""
    words = as_words(records)
    sequences = np.arange(first_sequence, first_sequence + len(records), dtype=np.uint64)[:, None]
    words[:, 2:] = (sequences + np.uint64(1)) * _PRIME + np.arange(2, words.shape[1], dtype=np.uint64)[None, :]


def torn(records: np.ndarray) -> int:
    """Count records whose payload is not that of their sequence."""
    words = as_words(records)
    expected = (words[:, :1] + np.uint64(1)) * _PRIME + np.arange(2, words.shape[1], dtype=np.uint64)[None, :]
    return int((words[:, 2:] != expected).any(axis=1).sum())


def produce(prefix: str, spec: RingSpec, count: int, batch: int) -> dict[str, Any]:
    """Publish `count` records in batches of 1 to `batch`, retrying on back-pressure."""
    producer = Producer.attach(prefix, spec, stall_timeout_ms=60_000)
    _ready()
    sizes = np.random.default_rng(1).integers(1, batch + 1, size=4096)
    start = producer.next_sequence
    end = spec.first_sequence + count
    records = np.zeros(batch, dtype=spec.dtype)
    turn = 0
    while producer.next_sequence < end:
        size = min(int(sizes[turn % len(sizes)]), end - producer.next_sequence)
        turn += 1
        fill(records[:size], producer.next_sequence)
        while isinstance(producer.publish(records[:size]), BackPressure):
            time.sleep(0.0002)
    return {"start": start, "next": producer.next_sequence, "back_pressure": producer.back_pressure}


def consume(prefix: str, spec: RingSpec, name: str, end: int, wait: str, batch: int) -> dict[str, Any]:
    """Read up to sequence `end`; check order and every payload."""
    consumer = Consumer.attach(prefix, spec, name=name, wait=WaitStrategy[wait.upper()], start=Start.OLDEST)
    _ready()
    result = {"start": consumer.cursor, "received": 0, "lost": 0, "torn": 0, "disorder": 0, "laps": 0}
    expected = consumer.cursor
    while expected < end:
        records = consumer.poll(batch)
        if isinstance(records, Lapped):
            result["laps"] += 1
            result["lost"] += records.lost
            expected = records.resumed_at
        elif len(records):
            sequences = records["sequence"]
            result["disorder"] += int((sequences != np.arange(expected, expected + len(records))).sum())
            result["torn"] += torn(records)
            result["received"] += len(records)
            expected += len(records)
        else:
            consumer.wait(1.0)
    consumer.commit()
    result["end"] = expected
    result["counted_lost"] = consumer.lost
    return result


def start(role: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a role in a process of its own and wait until it is attached."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(Path(__file__)), role, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if line != "ready\n":
        raise AssertionError(f"{role}: {line}{process.communicate()[1]}")
    return process


def result_of(process: subprocess.Popen[str], timeout_s: float = 60.0) -> dict[str, Any]:
    """Return what a role printed at its end; its stderr must be empty."""
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, err
    assert err == ""
    answer: dict[str, Any] = json.loads(out)
    return answer


def _ready() -> None:
    print("ready", flush=True)


def _main(role: str, prefix: str, mode: str, capacity: str, slot_bytes: str, first: str, *rest: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    spec = spec_of(mode, int(capacity), int(slot_bytes), int(first))
    if role == "produce":
        print(json.dumps(produce(prefix, spec, int(rest[0]), int(rest[1]))))
    elif role == "consume":
        print(json.dumps(consume(prefix, spec, rest[0], int(rest[1]), rest[2], int(rest[3]))))
    else:
        raise SystemExit(f"unknown role {role!r}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
