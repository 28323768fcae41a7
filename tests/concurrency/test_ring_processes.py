"""The ring between real processes: order, exact loss, torn reads, kill -9, SIGSTOP, wake-ups, who removes what."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import uvloop

from ring_processes import fill, result_of, spec_of, start, torn
from tickwire.errors import RingError
from tickwire.ring import AsyncConsumer, BackPressure, Consumer, Lapped, Producer, Start, WaitStrategy
from tickwire.ring.segment import list_segments
from tickwire.ring.spec import RingSpec


def arguments(spec: RingSpec, prefix: str) -> tuple[object, ...]:
    return (prefix, spec.mode.name.lower(), spec.capacity, spec.slot_bytes, spec.first_sequence)


@pytest.mark.parametrize("slot_bytes", [64, 128, 256, 320, 512])
@pytest.mark.parametrize("mode", ["lossless", "lossy"])
def test_two_consumers_any_slot_size_exact_order_and_loss(prefix, mode, slot_bytes):
    """I1-I5: order exact, nothing torn, received + lost = published; a lossless ring loses nothing."""
    spec = spec_of(mode, 64, slot_bytes)
    count = 20_000
    Producer.attach(prefix, spec).close()
    readers = [
        start("consume", *arguments(spec, prefix), name, count, wait, 48)
        for name, wait in (("a", "spin_park"), ("b", "park"))
    ]
    writer = start("produce", *arguments(spec, prefix), count, 32)
    assert result_of(writer)["next"] == count
    for reader in readers:
        result = result_of(reader)
        assert (result["torn"], result["disorder"], result["end"]) == (0, 0, count)
        assert result["received"] + result["lost"] == count
        assert result["counted_lost"] == result["lost"]
        if mode == "lossless":
            assert result["lost"] == 0


def test_lossy_stopped_reader_of_a_tiny_ring_reads_nothing_torn(prefix):
    """S5: 4 slots, a free-running writer, the reader stopped and continued at random: every overrun is reported."""
    spec = spec_of("lossy", 4, 128)
    count = 60_000
    Producer.attach(prefix, spec).close()
    reader = start("consume", *arguments(spec, prefix), "a", count, "spin_park", 8)
    writer = start("produce", *arguments(spec, prefix), count, 2)
    dice = random.Random(7)
    done = threading.Event()

    def disturb() -> None:
        while not done.wait(dice.uniform(0.0005, 0.005)):
            os.kill(reader.pid, signal.SIGSTOP)
            done.wait(dice.uniform(0.0, 0.003))
            os.kill(reader.pid, signal.SIGCONT)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        writer_result = result_of(writer)
    finally:
        done.set()
        thread.join()
    result = result_of(reader)
    assert writer_result["next"] == count
    assert (result["torn"], result["disorder"]) == (0, 0)
    assert result["received"] + result["lost"] == count
    assert result["laps"] > 0


def test_killed_producers_and_consumers_lose_and_tear_nothing(prefix):
    """I6: kill -9 of either side at random moments; a lossless ring delivers every sequence, at least once, unmixed."""
    spec = spec_of("lossless", 64, 64)
    dice = random.Random(3)
    count = 2**62
    Producer.attach(prefix, spec).close()
    watcher = Consumer.attach(prefix, spec, name="watcher", start=Start.OLDEST)
    expected = 0

    def read(rounds: int) -> int:
        nonlocal expected
        for _ in range(rounds):
            records = watcher.poll(64)
            assert not isinstance(records, Lapped)
            assert torn(records) == 0
            assert records["sequence"].tolist() == list(range(expected, expected + len(records)))
            expected += len(records)
            watcher.wait(0.002)
        return expected

    for turn in range(12):
        writer = start("produce", *arguments(spec, prefix), count, 32)
        reader = start("consume", *arguments(spec, prefix), "victim", count, "park", 16)
        before = expected
        while read(dice.randint(1, 20)) == before:
            pass
        for process in (writer, reader) if turn % 2 else (reader, writer):
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stderr.close()
    read(3)
    with Producer.attach(prefix, spec) as producer:
        assert producer.next_sequence == expected
    watcher.close()


def test_attacher_exit_removes_nothing_and_says_nothing(prefix):
    """S1: readers that end normally and by SIGTERM leave the segments, the writer and stderr alone."""
    spec = spec_of("lossy", 64, 64)
    with Producer.attach(prefix, spec) as producer:
        records = np.zeros(4, dtype=spec.dtype)
        first = start("consume", *arguments(spec, prefix), "first", 4, "park", 8)
        second = start("consume", *arguments(spec, prefix), "second", 10**9, "park", 8)
        fill(records, 0)
        producer.publish(records)
        assert result_of(first)["received"] == 4
        second.send_signal(signal.SIGTERM)
        assert second.communicate(timeout=30) == ("", "")
        assert second.returncode == 0
        assert list_segments(prefix) == [f"{prefix}.stress", f"{prefix}.stress.ctl"]
        third = start("consume", *arguments(spec, prefix), "third", 8, "park", 8)
        fill(records, 4)
        producer.publish(records)
        assert result_of(third)["received"] == 8  # from the oldest record on


def test_producer_of_a_dead_process_can_be_succeeded(prefix):
    """I8: the lock dies with its process; a live one keeps it."""
    spec = spec_of("lossless", 64, 64)
    writer = start("produce", *arguments(spec, prefix), 2**62, 1)
    with pytest.raises(RingError, match=f"pid {writer.pid} is alive"):
        Producer.attach(prefix, spec)
    with Consumer.attach(prefix, spec, name="witness", start=Start.OLDEST) as witness:
        assert witness.wait(60.0)  # it has published
    writer.kill()
    writer.communicate()
    with Producer.attach(prefix, spec) as producer:
        assert producer.next_sequence > 0


def test_park_every_publish_wakes_the_sleeper(prefix):
    """I9: one record at a time to a parked consumer of another process; a lost wake-up would cost its whole bound."""
    spec = spec_of("lossless", 64, 64)
    back = RingSpec(name="back", mode=spec.mode, capacity=64, dtype=spec.dtype)
    program = (
        "import sys\n"
        "from ring_processes import spec_of\n"
        "from tickwire.ring import *\n"
        "prefix, n = sys.argv[1], int(sys.argv[2])\n"
        "spec = spec_of('lossless', 64, 64)\n"
        "back = RingSpec(name='back', mode=spec.mode, capacity=64, dtype=spec.dtype)\n"
        "consumer = Consumer.attach(prefix, spec, name='echo', wait=WaitStrategy.PARK)\n"
        "producer = Producer.attach(prefix, back)\n"
        "print('ready', flush=True)\n"
        "while n:\n"
        "    assert consumer.wait(30.0), 'a wake-up was lost'\n"
        "    records = consumer.poll()\n"
        "    n -= len(records)\n"
        "    producer.publish(records)\n"
    )
    turns = 3_000
    with Producer.attach(prefix, spec) as producer:
        echo = subprocess.Popen(
            [sys.executable, "-c", program, prefix, str(turns)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        assert echo.stdout is not None
        assert echo.stdout.readline() == "ready\n"
        consumer = Consumer.attach(prefix, back, name="a", wait=WaitStrategy.PARK)
        parks = consumer.state[13]
        record = np.zeros(1, dtype=spec.dtype)
        for _ in range(turns):
            assert producer.publish(record) == 1
            # Sleeps are cut into slices of 20 ms: a lost wake-up shows as a second park in one wait.
            assert consumer.wait(30.0)
            assert len(consumer.poll()) == 1
        assert consumer.state[13] - parks < turns + 50
        assert echo.wait(timeout=30) == 0
        echo.stdout.close()
        consumer.close()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_async_consumer_two_readers_both_get_everything(prefix, factory):
    """Two awaitable readers of one ring wake up for every batch and end when the owner stops the ring."""
    spec = spec_of("lossless", 64, 64)
    producer = Producer.attach(prefix, spec)
    consumers = [Consumer.attach(prefix, spec, name=name) for name in ("a", "b")]

    async def read(consumer: Consumer) -> list[int]:
        seen: list[int] = []
        waiter = AsyncConsumer(consumer)
        async for batch in waiter:
            assert not isinstance(batch, Lapped)
            seen += batch["sequence"].tolist()
        waiter.close()
        return seen

    async def write() -> None:
        record = np.zeros(3, dtype=spec.dtype)
        for _ in range(200):
            await asyncio.sleep(0)
            published = producer.publish(record)
            while isinstance(published, BackPressure):
                await asyncio.sleep(0)
                published = producer.publish(record)
        producer.stop_consumers()

    async def main() -> list[list[int]]:
        results = await asyncio.gather(*(read(consumer) for consumer in consumers), write())
        return [result for result in results if result is not None]

    loop = factory()
    try:
        assert loop.run_until_complete(main()) == [list(range(600))] * 2
    finally:
        loop.close()
    for consumer in consumers:
        consumer.close()
    producer.close()


def test_async_consumer_cancelled_task_leaves_the_consumer_usable(prefix):
    """Cancelling an `async for` neither hangs nor loses what comes later."""
    spec = spec_of("lossless", 64, 64)

    async def main() -> None:
        with Producer.attach(prefix, spec) as producer, Consumer.attach(prefix, spec, name="a") as consumer:
            waiter = AsyncConsumer(consumer)

            async def forever() -> None:
                async for _ in waiter:
                    pass

            task = asyncio.create_task(forever())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            producer.publish(np.zeros(2, dtype=spec.dtype))
            async for batch in waiter:
                assert not isinstance(batch, Lapped)
                assert batch["sequence"].tolist() == [0, 1]
                break
            waiter.close()

    asyncio.run(main())
