"""S3 and S9: readers that wait while their ring is replaced, while they are told to end, while others die parked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ring_processes import fill, spec_of
from tickwire.ring import Producer, RingSpec, layout
from tickwire.ring.kernels.state import P_WAKES
from tickwire.ring.segment import Segment, unlink
from waiting import eventually
from waiting_readers import CAPACITY

PROGRAM = Path(__file__).parents[1] / "waiting_readers.py"
NEW_GENERATION = 1_000_000  # its payloads are those of other sequences


@pytest.fixture
def reader(prefix) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts readers; whatever is left of them at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(client: str, mode: str, name: str, hold_after: int = 0) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", str(PROGRAM), client, prefix, mode, name, str(hold_after)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The reader's next line; pytest's own timeout is the watchdog."""
    assert process.stdout is not None
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def take(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    """The reader's next batches, until they hold `count` records."""
    batches: list[dict[str, Any]] = []
    while sum(len(batch["sequences"]) for batch in batches) < count:
        batches.append(said(process))
    return batches


def send(producer: Producer, count: int, first_payload: int) -> None:
    records = np.zeros(count, dtype=producer.spec.dtype)
    fill(records, first_payload)
    assert producer.publish(records) == count


def park_request(control: Segment) -> int:
    return int(control.array(np.uint32, layout.PARK_REQUEST_AT, 1)[0])


def open_control(prefix: str, spec: RingSpec) -> Segment:
    return Segment.open(f"{prefix}.{spec.name}.ctl", writable=False)


@pytest.mark.parametrize(
    ("mode", "client", "held"),
    [
        ("lossless", "consumer", False),
        ("lossless", "async", True),
        ("lossy", "async", False),
        ("lossy", "consumer", True),
    ],
    ids=["lossless-consumer-waiting", "lossless-async-behind", "lossy-async-waiting", "lossy-consumer-behind"],
)
def test_reattach_replaced_ring_once_and_without_old_records(prefix, reader, mode, client, held):
    """S3, I7: one re-attach within one bounded wait (a quarter of a second); nothing of the old generation comes."""
    spec = spec_of(mode, CAPACITY, 64)
    with Producer.attach(prefix, spec) as producer:
        process = reader(client, mode, "a", 20 if held else 0)
        send(producer, 20, 0)
        assert sum(batch["foreign"] for batch in take(process, 20)) == 0
        if held:  # records that the reader has not seen when their ring goes
            send(producer, 5, 20)
    for name in (f"{prefix}.{spec.name}", f"{prefix}.{spec.name}.ctl"):
        unlink(name)
    with Producer.attach(prefix, spec) as producer:
        send(producer, 7, NEW_GENERATION)
        replaced_ns = time.monotonic_ns()
        if held:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        new = take(process, 7)
        producer.stop_consumers()
        end = said(process)
    assert [sequence for batch in new for sequence in batch["sequences"]] == list(range(7))
    assert sum(batch["foreign"] for batch in new) == 7
    assert end["reattaches"] == 1
    assert len([begin for begin in end["waits"] if replaced_ns < begin < end["moved"][0]]) <= 1


@pytest.mark.parametrize("client", ["long-wait", "async"])
def test_sigterm_ends_a_reader_that_waits(prefix, reader, client):
    """S9: a handler of SIGTERM runs while the reader waits for an hour, or for its event loop."""
    spec = spec_of("lossless", CAPACITY, 64)
    with Producer.attach(prefix, spec):
        process = reader(client, "lossless", "a")
        control = open_control(prefix, spec)
        eventually(lambda: park_request(control), what="the reader's request to park")
        process.send_signal(signal.SIGTERM)
        assert said(process)["reattaches"] == 0
        assert process.wait(timeout=60) == 0
        control.close()


@pytest.mark.parametrize("mode", ["lossless", "lossy"])
def test_dead_parker_costs_one_wake_up_and_nothing_lasting(prefix, reader, mode):
    """S9, I9: of two parked readers one is killed; the producer goes on, the request is gone, the other one wakes."""
    spec = spec_of(mode, CAPACITY, 64)
    turns = 3 * CAPACITY
    with Producer.attach(prefix, spec, stall_timeout_ms=0) as producer:
        victim = reader("consumer", mode, "victim")
        control = open_control(prefix, spec)
        eventually(lambda: park_request(control), what="the victim's request to park")
        victim.kill()
        victim.wait()
        assert park_request(control) == 1
        send(producer, 1, 0)
        assert park_request(control) == 0
        assert int(producer.state[P_WAKES]) == 1
        send(producer, 1, 1)
        assert int(producer.state[P_WAKES]) == 1  # nobody asks: no system call
        other = reader("consumer", mode, "other")
        take(other, 2)
        for turn in range(turns):
            eventually(lambda: park_request(control), what="the other reader's request to park")
            send(producer, 1, 2 + turn)
            assert said(other) == {"sequences": [2 + turn], "foreign": 0}
        assert int(producer.state[P_WAKES]) == 1 + turns
        assert producer.evictions == (1 if mode == "lossless" else 0)
        control.close()
