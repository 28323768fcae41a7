"""The strategy's reader on a ring that another process fills."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from signal_processes import SYMBOLS, signals_of
from tickwire.client import Action, Lapped, SignalBatch, SignalKind, SignalReader, SignalReason, Start
from tickwire.errors import RingNotFoundError
from tickwire.records import EngineKind
from tickwire.ring import Producer
from tickwire.ring.segment import list_segments, unlink
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.topology import SIGNALS
from waiting import eventually

ROOT = Path(__file__).parents[2]
WATCHDOG_S = 60.0


class Router:
    """The other process."""

    def __init__(self, prefix: str, count: int, batch: int) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "signal_processes.py"), prefix, str(count), str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.expect("ready")

    def expect(self, line: str) -> None:
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline().strip() == line

    def publish(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def end(self) -> None:
        self.popen.communicate(timeout=WATCHDOG_S)
        assert self.popen.returncode == 0


@contextmanager
def router(prefix: str, count: int, batch: int) -> Iterator[Router]:
    started = Router(prefix, count, batch)
    try:
        yield started
        started.end()
    finally:
        started.popen.kill()
        started.popen.communicate()


def check_numbers(found: list[SignalBatch | Lapped], count: int, lost: int) -> None:
    """Every number once and in order, or within a lap that says how many it swallowed."""
    expected = swallowed = 0
    for item in found:
        if isinstance(item, Lapped):
            expected += item.lost
            swallowed += item.lost
            continue
        numbers = item.records["prediction_sequence"].tolist()
        assert numbers == list(range(expected, expected + len(numbers)))
        assert item.records["receive_mono_ns"].tolist() == [number + 1 for number in numbers]
        expected += len(numbers)
    assert expected == count
    assert swallowed == lost


def test_reader_poll_gives_names_decimals_and_reasons(prefix):
    """A signal shows `venue:name`, exact decimal price and quantity, and typed kind, action and reason."""
    with router(prefix, 9, 9) as other, SignalReader(prefix) as reader:
        other.publish()
        other.expect("done")
        assert reader.wait(WATCHDOG_S)
        batch = reader.poll()
        assert isinstance(batch, SignalBatch)
        assert len(batch) == 9
        second, withdrawn, third = batch[1], batch[7], batch[2:][0]
        assert (second.symbol, second.symbol_id, second.sequence) == ("w:B/USD", 1, 1)
        assert (second.action, second.kind, second.reason) == (Action.SELL, SignalKind.SIGNAL, SignalReason.MODEL)
        assert (second.quantity, second.limit_price) == (Decimal("30"), Decimal("0.5"))
        assert (third.symbol, third.quantity, third.limit_price) == ("v:A", Decimal("0.003"), Decimal("0.02"))
        assert (third.model, third.engine) == ("test@1", EngineKind.NONE)
        assert third.tick_to_signal_ns == third.publish_mono_ns - 3
        assert (withdrawn.kind, withdrawn.action, withdrawn.limit_price) == (
            SignalKind.WITHDRAWN,
            Action.HOLD,
            None,
        )
        assert [signal.symbol for signal in batch] == ["v:A", "w:B/USD"] * 4 + ["v:A"]
        with pytest.raises(AttributeError):
            second.action = Action.BUY  # type: ignore[misc]
        assert not reader.wait(0.0)
        assert len(reader.poll()) == 0
        assert [signal.symbol for signal in batch][-1] == "v:A", "a batch outlives the next poll"
        assert [instrument.label for instrument in reader.symbols] == ["v:A", "w:B/USD"]


def test_reader_lapped_by_another_process_counts_exactly(prefix):
    """I1: a reader that sleeps through laps, then reads while it is lapped again, accounts for every signal."""
    count = 20 * SIGNALS.capacity
    with router(prefix, count, 1000) as other, SignalReader(prefix) as reader:
        found: list[SignalBatch | Lapped] = []
        other.publish()
        seen = 0
        while seen < count:
            assert reader.wait(WATCHDOG_S)
            item = reader.poll(64)
            seen += item.lost if isinstance(item, Lapped) else len(item)
            found.append(item)
        other.expect("done")
        lost = reader.lost
        assert not reader.wait(0.0)
        assert reader.lost == lost
    check_numbers(found, count, lost)


def test_reader_sleeping_through_a_lap_is_told(prefix):
    """I1, I2: the router does not wait for a reader; a lap is one `Lapped` with the exact number."""
    count = 2 * SIGNALS.capacity
    with router(prefix, count, 1000) as other, SignalReader(prefix) as reader:
        other.publish()
        other.expect("done")
        first = reader.poll()
        assert isinstance(first, Lapped)
        assert first.lost == reader.lost == first.resumed_at == count - SIGNALS.capacity // 4 * 3
        found: list[SignalBatch | Lapped] = [first]
        while len(batch := reader.poll()):  # type: ignore[arg-type]
            found.append(batch)
        check_numbers(found, count, reader.lost)


async def test_reader_async_for_delivers_everything_and_ends_at_close(prefix):
    """`async for` yields what poll does without empty batches, leaves the loop running, and ends after `close`."""
    count = 30_000
    with router(prefix, count, 100) as other, SignalReader(prefix) as reader:
        found: list[SignalBatch | Lapped] = []
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turning = asyncio.create_task(turn())
        other.publish()
        async with asyncio.timeout(WATCHDOG_S):
            async for item in reader:
                found.append(item)
                await asyncio.sleep(0)
                if sum(i.lost if isinstance(i, Lapped) else len(i) for i in found) == count:
                    reader.close()
        turning.cancel()
        assert turns > 0
        assert all(isinstance(item, Lapped) or len(item) for item in found)
        check_numbers(found, count, sum(item.lost for item in found if isinstance(item, Lapped)))


async def test_reader_closed_by_another_task_ends_the_iteration(prefix):
    """`close` ends an `async for` that waits for signals, at whatever moment it comes."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash):
        for turns in range(20):
            reader = SignalReader(prefix)

            async def read(reader: SignalReader = reader) -> int:
                return len([batch async for batch in reader])

            reading = asyncio.create_task(read())
            for _ in range(turns):
                await asyncio.sleep(0)
            reader.close()
            async with asyncio.timeout(WATCHDOG_S):
                assert await reading == 0


def test_reader_barriers_are_not_delivered(prefix):
    """A replay's barriers are no signals."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        records = signals_of(1, 3)
        records["kind"][1] = SignalKind.BARRIER
        producer.publish(records)
        with SignalReader(prefix, start=Start.OLDEST) as reader:
            batch = reader.poll()
            assert isinstance(batch, SignalBatch)
            assert batch.records["prediction_sequence"].tolist() == [1, 3]


def test_reader_ring_replaced_goes_over_to_the_new_one(prefix):
    """When the segments are made anew, a waiting reader moves over and gets what the new ring holds."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        reader = SignalReader(prefix)
        producer.publish(signals_of(1, 2))
        assert len(reader.poll()) == 2
    for name in list_segments(prefix):
        if "signals" in name:
            unlink(name)
    with reader, Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        producer.publish(signals_of(100, 5))
        numbers: list[int] = []
        while len(numbers) < 5:
            assert reader.wait(WATCHDOG_S)
            batch = reader.poll()
            assert isinstance(batch, SignalBatch)
            numbers += batch.records["prediction_sequence"].tolist()
        assert numbers == list(np.arange(100, 105))
        assert reader.lost == 0


def test_reader_after_close_is_refused(prefix):
    """A closed reader raises instead of touching memory that is no longer mapped; closing twice is harmless."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash), SignalReader(prefix) as reader:
        reader.close()
        for use in (reader.poll, lambda: reader.wait(0.0)):
            with pytest.raises(ValueError, match="must not be used after close"):
                use()


def test_reader_without_a_router_says_so(prefix):
    """A missing ring is one error that names the ring and the remedy."""
    with pytest.raises(RingNotFoundError, match=rf"{prefix}\.signals.*tickwire up"):
        SignalReader(prefix, timeout_s=0.0)


def test_example_strategy_runs_as_it_stands(prefix):
    """examples/strategy.py prints orders of a running router; it is shown in the documentation."""
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        example = subprocess.Popen(
            [sys.executable, "-u", str(ROOT / "examples" / "strategy.py"), prefix], stdout=subprocess.PIPE, text=True
        )
        try:
            eventually(lambda: producer.consumer_attaches, WATCHDOG_S, "the example's attaching")
            producer.publish(signals_of(0, 3))
            assert example.stdout is not None
            assert example.stdout.readline() == "w:B/USD SELL 30 0.5\n"
            assert example.stdout.readline() == "v:A BUY 0.003 0.02\n"
        finally:
            example.kill()
            example.communicate()
