"""The router as a process of its own; the test is inference on one side of it and a strategy on the other."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tickwire.client import Action, Lapped, Signal, SignalKind, SignalReader, SignalReason
from tickwire.records import PREDICTION, Instrument, PredictionKind, SymbolTable
from tickwire.ring import Consumer, Producer, Start
from tickwire.ring.segment import list_segments, unlink
from tickwire.runtime import ServiceState, StatsReader
from tickwire.topology import PREDICTIONS, SIGNALS
from tickwire_router import kill, unkill
from tickwire_router.kill_switch import kill_path
from waiting import eventually

SYMBOLS = SymbolTable(
    Instrument(venue="v", name=name, price_increment="0.5", quantity_increment="0.01") for name in ("A", "B", "C")
)
WATCHDOG_S = 90.0

RUN = """
[run]
prefix = "{prefix}"
state_dir = "state"
closed_loop = {closed_loop}

[router]
enter_probability = 0.6
exit_probability = 0.4
quantity = "0.25"
limit_offset_increments = 3
order_adapter = "log"
max_age_us = 60_000_000

[router.symbols."v:B"]
quantity = "2"
"""
SYMBOL = """
[[symbols]]
venue = "v"
name = "{name}"
price_increment = "0.5"
quantity_increment = "0.01"
"""


class Process:
    """`python -m tickwire_router`, its log lines as they come."""

    def __init__(self, config: Path) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tickwire_router", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._events: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.append(line)
            self._events.put(line)
        self._events.put("")

    def wait_for(self, event: str) -> dict[str, object]:
        """The next log line of an event."""
        deadline_s = time.monotonic() + WATCHDOG_S
        while True:
            line = self._events.get(timeout=max(deadline_s - time.monotonic(), 0.01))
            assert line, f"the process ended: {''.join(self.lines)}"
            if line.startswith("{") and json.loads(line)["event"] == event:
                return dict(json.loads(line))

    def end(self, os_signal: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(os_signal)
        code = self.popen.wait(WATCHDOG_S)
        self._reader.join(WATCHDOG_S)
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return code


class Surroundings:
    """Inference and a strategy of one run."""

    def __init__(self, prefix: str, folder: Path, closed_loop: bool = False) -> None:
        self.prefix = prefix
        self.state_dir = folder / "state"
        self.config = folder / "tickwire.toml"
        symbols = "".join(SYMBOL.format(name=instrument.name) for instrument in SYMBOLS)
        self.config.write_text(RUN.format(prefix=prefix, closed_loop=str(closed_loop).lower()) + symbols)
        self.predictions = Producer.attach(prefix, PREDICTIONS, symbol_table_hash=SYMBOLS.hash)
        self.reader: SignalReader | None = None
        self.processes: list[Process] = []

    def start(self) -> Process:
        process = Process(self.config)
        self.processes.append(process)
        process.wait_for("service_ready")
        if self.reader is None:
            self.reader = SignalReader(self.prefix, start=Start.OLDEST)
        return process

    def publish(self, *symbols: int, up: float = 0.9, down: float = 0.0, kind=PredictionKind.PREDICTION) -> None:
        """One prediction for each of the symbols, as one batch."""
        records = np.zeros(len(symbols), PREDICTION)
        records["symbol_id"], records["kind"] = symbols, kind
        records["probability_up"], records["probability_down"] = up, down
        records["bid_price_units"], records["ask_price_units"] = 100, 102
        records["model"], records["barrier_id"] = b"test@1", 7
        now_ns = time.monotonic_ns()
        for place, name in enumerate(
            ("receive", "tick", "feature", "row", "request", "batch", "engine_start", "engine_end")
        ):
            records[f"{name}_mono_ns"] = now_ns - 800_000 + 100_000 * place
        assert self.predictions.publish(records) == len(symbols)

    def signals(self, count: int) -> list[Signal]:
        """The next so many signals, no more and no less."""
        assert self.reader is not None
        found: list[Signal] = []
        while len(found) < count:
            assert self.reader.wait(WATCHDOG_S), f"{len(found)} of {count} signals came"
            batch = self.reader.poll()
            assert not isinstance(batch, Lapped)
            found += batch
        assert len(found) == count
        return found

    def close(self) -> None:
        for process in self.processes:
            process.end(signal.SIGKILL)
        if self.reader is not None:
            self.reader.close()
        self.predictions.close()


@pytest.fixture
def surroundings(prefix, tmp_path):
    made = Surroundings(prefix, tmp_path)
    yield made
    made.close()


def test_router_process_turns_predictions_into_counted_signals(surroundings):
    """Each prediction is one signal with its own quantity and limit; counters and every stage's histogram say so."""
    process = surroundings.start()
    stats = StatsReader.attach(surroundings.prefix, "router")
    surroundings.publish(0, 1)
    surroundings.publish(2, up=0.1, down=0.7)
    surroundings.publish(0, up=0.5)
    surroundings.publish(0, up=0.2)
    surroundings.publish(1, kind=PredictionKind.INVALIDATED)
    surroundings.publish(1, kind=PredictionKind.INVALIDATED)
    surroundings.publish(1, kind=PredictionKind.EXPIRED)
    signals = surroundings.signals(7)
    assert [(s.symbol, s.kind, s.action, s.reason) for s in signals] == [
        ("v:A", SignalKind.SIGNAL, Action.BUY, SignalReason.MODEL),
        ("v:B", SignalKind.SIGNAL, Action.BUY, SignalReason.MODEL),
        ("v:C", SignalKind.SIGNAL, Action.SELL, SignalReason.MODEL),
        ("v:A", SignalKind.SIGNAL, Action.BUY, SignalReason.MODEL),
        ("v:A", SignalKind.SIGNAL, Action.HOLD, SignalReason.BELOW_THRESHOLD),
        ("v:B", SignalKind.WITHDRAWN, Action.HOLD, SignalReason.BOOK_INVALID),
        ("v:B", SignalKind.SIGNAL, Action.HOLD, SignalReason.EXPIRED),
    ]
    assert [str(s.quantity) for s in signals[:3]] == ["0.25", "2.00", "0.25"]
    assert [str(s.limit_price) for s in signals[:3]] == ["52.5", "52.5", "48.5"]
    eventually(lambda: stats.histogram("tick_to_signal").count == 5, WATCHDOG_S, "the fifth timed signal")
    for name in stats.description.histograms:
        assert stats.histogram(name).count == 5, name
    assert stats.histogram("engine").max_ns == 100_000
    assert stats.histogram("tick_to_signal").max_ns - stats.histogram("tick_to_signal_less_engine").max_ns == 300_000
    assert stats.per_symbol("buy").tolist() == [2, 1, 0]
    assert stats.per_symbol("withdrawn").tolist() == [0, 1, 0]
    assert (stats.counter("predictions"), stats.counter("predictions_invalidated")) == (5, 2)
    assert stats.gauge("turn_max_ns") > 0
    assert process.wait_for("orders_summary")["lost_signals"] == 0
    assert process.end() == 0
    assert stats.state is ServiceState.STOPPED
    stats.close()


def test_router_process_killed_and_restarted_answers_nothing_twice(surroundings):
    """After kill -9 the next process goes on behind the newest signal, knows its hysteresis and loses nothing."""
    process = surroundings.start()
    surroundings.publish(0, 1, 2)
    assert [s.action for s in surroundings.signals(3)] == [Action.BUY] * 3
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    # What a process leaves that died between publishing and committing: its signals are out, its cursor is not.
    surroundings.publish(0, up=0.5)
    surroundings.publish(1, kind=PredictionKind.INVALIDATED)
    with Consumer.attach(surroundings.prefix, SIGNALS, name="before", start=Start.OLDEST) as before:
        published = before.poll().copy()
    with Producer.attach(surroundings.prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as signals:
        again = published[:1]
        again["prediction_sequence"], again["prediction_mono_ns"] = 3, time.monotonic_ns()
        signals.publish(again)
    surroundings.start()
    first, second = surroundings.signals(2)
    assert (first.symbol, first.action) == ("v:A", Action.BUY), "the dead process's last signal"
    assert (second.symbol, second.kind) == ("v:B", SignalKind.WITHDRAWN)
    surroundings.publish(2, up=0.5)
    assert [(s.symbol, s.action) for s in surroundings.signals(1)] == [("v:C", Action.BUY)], "0.5 goes on, not enters"
    stats = StatsReader.attach(surroundings.prefix, "router")
    assert stats.counter("predictions_skipped") == 1
    stats.close()


def test_router_process_kill_switch_withdraws_holds_and_survives_a_restart(surroundings):
    """A kill withdraws each standing signal once, then holds; the gauge confirms; a restarted router obeys too."""
    process = surroundings.start()
    stats = StatsReader.attach(surroundings.prefix, "router")

    def confirmed(generation: int) -> None:
        eventually(lambda: stats.gauge("kill_generation") == generation, WATCHDOG_S, f"generation {generation}")

    surroundings.publish(0, 1)
    assert [s.action for s in surroundings.signals(2)] == [Action.BUY] * 2
    confirmed(kill(surroundings.state_dir, ["v:B"], who="ann", why="test").generation)
    (withdrawn,) = surroundings.signals(1)
    assert (withdrawn.symbol, withdrawn.kind) == ("v:B", SignalKind.WITHDRAWN)
    assert withdrawn.reason is SignalReason.KILLED_SYMBOL
    assert (stats.gauge("killed_everything"), stats.per_symbol("killed").tolist()) == (0, [0, 1, 0])
    surroundings.publish(0, 1)
    assert [(s.action, s.reason) for s in surroundings.signals(2)] == [
        (Action.BUY, SignalReason.MODEL),
        (Action.HOLD, SignalReason.KILLED_SYMBOL),
    ]
    kill_path(surroundings.state_dir).write_bytes(b"not a kill switch")
    confirmed(-1)
    assert [(s.symbol, s.reason) for s in surroundings.signals(1)] == [("v:A", SignalReason.KILLED_GLOBAL)]
    confirmed(kill(surroundings.state_dir, None, who="ann", why="test").generation)
    assert stats.gauge("killed_everything") == 1

    assert process.end() == 0
    surroundings.publish(0, 1)
    surroundings.start()
    assert stats.refresh()
    assert [(s.kind, s.reason) for s in surroundings.signals(2)] == [
        (SignalKind.SIGNAL, SignalReason.KILLED_GLOBAL),
        (SignalKind.SIGNAL, SignalReason.KILLED_GLOBAL),
    ]
    confirmed(unkill(surroundings.state_dir, None, who="ann", why="test").generation)
    surroundings.publish(0)
    assert [s.action for s in surroundings.signals(1)] == [Action.BUY]
    stats.close()


def test_router_process_closed_loop_forwards_barriers_in_order(prefix, tmp_path):
    """In closed loop a barrier follows the signals of all earlier predictions, and nothing is stale."""
    made = Surroundings(prefix, tmp_path, closed_loop=True)
    try:
        made.start()
        with Consumer.attach(prefix, SIGNALS, name="ingest", start=Start.OLDEST) as barriers:
            records = np.zeros(3, PREDICTION)
            records["kind"] = [PredictionKind.PREDICTION, PredictionKind.FAILED, PredictionKind.BARRIER]
            records["probability_up"], records["barrier_id"] = 0.9, 41
            records["bid_price_units"], records["ask_price_units"] = 100, 102
            records["receive_mono_ns"] = 1
            made.predictions.publish(records)
            found = np.zeros(0, SIGNALS.dtype)
            while len(found) < 3:
                assert barriers.wait(WATCHDOG_S)
                found = np.concatenate([found, barriers.poll()])
            assert found["kind"].tolist() == [SignalKind.SIGNAL, SignalKind.WITHDRAWN, SignalKind.BARRIER]
            assert found["action"].tolist() == [Action.BUY, Action.HOLD, Action.HOLD]
            assert found["barrier_id"][2] == 41
    finally:
        made.close()


def test_router_process_drains_what_is_on_the_ring(surroundings):
    """SIGTERM ends the process after every prediction that was published has its signal."""
    process = surroundings.start()
    for _ in range(20):
        surroundings.publish(*[0] * 200)
    assert process.end() == 0
    assert len(surroundings.signals(4000)) == 4000


def test_router_process_predictions_ring_replaced_withdraws_and_goes_over(surroundings):
    """When inference's ring is made anew, standing signals are withdrawn and the new ring is read from its start."""
    surroundings.start()
    surroundings.publish(0, 0)
    surroundings.signals(2)
    surroundings.predictions.close()
    for name in list_segments(surroundings.prefix):
        if "predictions" in name:
            unlink(name)
    surroundings.predictions = Producer.attach(surroundings.prefix, PREDICTIONS, symbol_table_hash=SYMBOLS.hash)
    surroundings.publish(1)
    withdrawn, fresh = surroundings.signals(2)
    assert (withdrawn.symbol, withdrawn.kind, withdrawn.reason) == (
        "v:A",
        SignalKind.WITHDRAWN,
        SignalReason.BOOK_INVALID,
    )
    assert (fresh.symbol, fresh.action) == ("v:B", Action.BUY)


def test_router_process_os_signal_while_waiting_for_inference_ends_it(prefix, tmp_path):
    """SIGTERM is honoured while the predictions ring does not exist yet."""
    made = Surroundings(prefix, tmp_path)
    made.close()
    for name in list_segments(prefix):
        unlink(name)
    process = Process(made.config)
    eventually(lambda: any(name.endswith("signals") for name in list_segments(prefix)), WATCHDOG_S, "the signals ring")
    assert process.end() == 0
