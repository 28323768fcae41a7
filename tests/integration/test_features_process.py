"""The features service as a process of its own; the test is ingest on one side of it and inference on the other."""

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

from tick_tape import TickTape
from tickwire.records import GapReason, Instrument, RecordArray, RowKind, Side, SymbolTable, TradingStatus
from tickwire.ring import BackPressure, Consumer, Lapped, Producer, Start
from tickwire.ring.segment import list_segments, segment_name, unlink
from tickwire.runtime import ServiceState, StatsReader
from tickwire.topology import ROWS, TICKS
from tickwire.windows import WindowFault, WindowReader, WindowRows
from tickwire_features.offline import rows_from_ticks
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.offline import read_ticks
from tickwire_models.dataset import Session, read_session, rows_of, to_rows

N_SYMBOLS = 3
SYMBOLS = SymbolTable(
    Instrument(venue="v", name=f"S{i}", price_increment="0.01", quantity_increment="1") for i in range(N_SYMBOLS)
)
CAPTURES = Path(__file__).parents[2] / "deploy" / "captures"
WATCHDOG_S = 120.0
STAMPS = ("sequence", "publish_mono_ns", "tick_mono_ns", "feature_mono_ns")
"""Fields that say when this run did it; the last three of them monotonic."""


class Process:
    """`python -m tickwire_features`, its log lines as they come."""

    def __init__(self, config: Path) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tickwire_features", "--config", str(config)],
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

    def end(self, os_signal: signal.Signals | None = signal.SIGTERM) -> int:
        """Send a signal, or none, and return the exit code."""
        if os_signal is not None and self.popen.poll() is None:
            self.popen.send_signal(os_signal)
        code = self.popen.wait(WATCHDOG_S)
        self._reader.join(WATCHDOG_S)
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return code


class Surroundings:
    """Ingest and inference of one run."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix = prefix
        self.config = folder / "tickwire.toml"
        self.write_config(wait_for_ticks_s=30.0)
        self.ticks = self.attach_ticks()
        self.rows: Consumer | None = None
        self.processes: list[Process] = []

    def write_config(self, wait_for_ticks_s: float) -> None:
        symbols = "".join(
            f'[[symbols]]\nvenue = "v"\nname = "S{i}"\nprice_increment = "0.01"\nquantity_increment = "1"\n'
            for i in range(N_SYMBOLS)
        )
        self.config.write_text(
            f'[run]\nprefix = "{self.prefix}"\n[features]\nwait_for_ticks_s = {wait_for_ticks_s}\n{symbols}'
        )

    def attach_ticks(self) -> Producer:
        return Producer.attach(self.prefix, TICKS, symbol_table_hash=SYMBOLS.hash, stall_timeout_ms=100)

    def start(self) -> Process:
        """A ready process, whose first records, one invalidation a symbol, are taken."""
        process = self.launch()
        process.wait_for("service_ready")
        if self.rows is None:
            self.rows = Consumer.attach(self.prefix, ROWS, name="inference", start=Start.OLDEST)
        first = self.take(N_SYMBOLS)
        assert (first["kind"] == RowKind.INVALIDATED).all()
        assert (first["reason"] == GapReason.START).all()
        return process

    def launch(self) -> Process:
        process = Process(self.config)
        self.processes.append(process)
        return process

    def publish(self, ticks: RecordArray) -> None:
        while isinstance(self.ticks.publish(ticks), BackPressure):
            time.sleep(0.0005)

    def take(self, count: int) -> RecordArray:
        """The next `count` records."""
        assert self.rows is not None
        found: list[RecordArray] = []
        deadline_s = time.monotonic() + WATCHDOG_S
        while (missing := count - sum(map(len, found))) > 0:
            assert time.monotonic() < deadline_s, f"{missing} of {count} records did not come"
            self.rows.wait(0.1)
            records = self.rows.poll(missing)
            assert not isinstance(records, Lapped)
            found.append(records.copy())
        return np.concatenate(found)

    def close(self) -> None:
        for process in self.processes:
            process.end(signal.SIGKILL)
        if self.rows is not None:
            self.rows.close()
        self.ticks.close()


@pytest.fixture
def surroundings(prefix, tmp_path):
    made = Surroundings(prefix, tmp_path)
    yield made
    made.close()


def day() -> RecordArray:
    """Three symbols with deltas, quotes and trades; a gap, a halt, and a symbol that appears at noon."""
    random = np.random.default_rng(5)
    tape = TickTape()
    book = [(100 - i, 10 + i) for i in range(12)], [(102 + i, 9 + i) for i in range(12)]
    tape.snapshot(0, *book).snapshot(1, *book)
    symbols = 2
    for turn in range(3_000):
        symbol = int(random.integers(symbols))
        tape.wait(int(random.integers(0, 40_000_000)))
        what = random.random()
        if what < 0.3:
            tape.trade(symbol, Side(int(random.integers(1, 3))), 101, int(random.integers(1, 20)))
        elif what < 0.5:
            bid = 99 + int(random.integers(2))
            tape.quote(symbol, (bid, int(random.integers(1, 9))), (bid + 2, int(random.integers(1, 9))))
        else:
            away = random.integers(0, 12, 3)
            tape.deltas(symbol, *((Side.BID, 100 - int(i), int(random.integers(0, 30))) for i in away))
            tape.deltas(symbol, *((Side.ASK, 102 + int(i), int(random.integers(0, 30))) for i in away))
        if turn == 800:
            tape.gap(0).wait(5_000_000).snapshot(0, *book)
        elif turn == 1_200:
            tape.status(1, TradingStatus.HALTED)
        elif turn == 1_400:
            tape.status(1, TradingStatus.TRADING)
        elif turn == 1_500:
            tape.snapshot(2, *book)
            symbols = 3
    return tape.barrier(3).ticks


def without_stamps(records: RecordArray) -> RecordArray:
    plain = records.copy()
    for name in STAMPS:
        plain[name] = 0
    return plain


def test_online_rows_equal_offline_rows_bit_for_bit(surroundings):
    """F5: one day through the process and through the builder, with a gap, a halt and a symbol from noon on."""
    ticks = day()
    expected = np.concatenate(list(rows_from_ticks(np.array_split(ticks, 7), N_SYMBOLS)))
    process = surroundings.start()
    stats = StatsReader.attach(surroundings.prefix, "features")
    random = np.random.default_rng(6)
    first = 0
    while first < len(ticks):
        size = int(random.integers(1, 700))
        surroundings.publish(ticks[first : first + size])
        first += size
    records = surroundings.take(len(expected))
    assert without_stamps(records).tobytes() == without_stamps(expected).tobytes()
    assert (records["feature_mono_ns"] <= records["publish_mono_ns"]).all()
    assert (records["tick_mono_ns"] <= records["feature_mono_ns"]).all()

    rows = records[records["kind"] == RowKind.ROW]
    with WindowReader.attach(surroundings.prefix, symbol_table_hash=SYMBOLS.hash) as windows:
        for symbol in range(N_SYMBOLS):
            window = windows.read(symbol, 500)
            assert isinstance(window, WindowRows)
            mine = rows[rows["symbol_id"] == symbol]
            assert window.newest == mine["row_sequence"][-1]
            assert (window.features == mine["features"][-500:]).all()
    assert process.end() == 0
    assert stats.state is ServiceState.STOPPED
    assert (stats.counter("ticks"), stats.counter("rows")) == (len(ticks), len(rows))
    assert stats.counter("barriers") == 1
    assert stats.gauge("turn_max_ns") > 0
    assert stats.per_symbol("rows").tolist() == [int((rows["symbol_id"] == i).sum()) for i in range(N_SYMBOLS)]
    assert stats.histogram("tick_to_row").count == len(rows)
    stats.close()


def test_online_rows_of_a_whole_capture_are_those_a_model_is_trained_on(surroundings):
    """F5: every row of a recording through the process equals the one of the training set: features, mid, run, time."""
    instrument = Instrument(venue="binance_usdm", name="BTCUSDT", price_increment="0.1", quantity_increment="0.001")
    capture = CaptureConfig(path="usdm_btcusdt_20240808_first60s.gz", format="binance_usdm")
    session = Session(instrument, (capture,))
    trained = read_session(session, CAPTURES, 500)
    ticks = np.concatenate(list(read_ticks(session.captures, SymbolTable([session.instrument]), folder=CAPTURES)))
    chunks = [ticks[first : first + 2_000] for first in range(0, len(ticks), 2_000)]
    taken: list[int] = []  # numbers of the chunks that the offline builder has asked for
    counts = [0] * len(chunks)
    for offline in rows_from_ticks((taken.append(i) or chunk for i, chunk in enumerate(chunks)), N_SYMBOLS):
        counts[taken[-1]] += len(offline)
    process = surroundings.start()
    online = []
    for chunk, count in zip(chunks, counts, strict=True):
        surroundings.publish(chunk)
        if count:
            online.append(surroundings.take(count))  # as it comes: the rows ring is lossy
    found = to_rows(trained.label, rows_of(np.concatenate(online)), 500)
    assert len(found.mid) == len(trained.mid) > 10_000
    assert found.features.tobytes() == trained.features.tobytes()
    assert (found.mid == trained.mid).all()
    assert (found.receive_time_ns == trained.receive_time_ns).all()
    assert (found.usable == trained.usable).all()
    # A started process has one invalidation a symbol behind it: its runs have the same borders, not the same numbers.
    assert ((np.diff(found.run) != 0) == (np.diff(trained.run) != 0)).all()
    assert process.end() == 0


def test_killed_process_restarts_windows_and_goes_on_behind_head(surroundings):
    """After kill -9 row numbers go on, no window reaches over the restart, and no row comes before a new snapshot."""
    tape = TickTape().snapshot(0, [(100, 5)], [(102, 5)])
    for _ in range(20):
        tape.trade(0, Side.BID, 102, 1)
    process = surroundings.start()
    surroundings.publish(tape.ticks)
    assert surroundings.take(20)["row_sequence"].tolist() == list(range(1, 21))
    assert process.end(signal.SIGKILL) == -signal.SIGKILL

    attaches = surroundings.ticks.consumer_attaches
    surroundings.publish(TickTape().trade(0, Side.BID, 102, 1).ticks)  # nobody is there
    surroundings.start()
    assert surroundings.ticks.consumer_attaches == attaches + 1
    again = TickTape().gap(0, GapReason.RESYNC).snapshot(0, [(100, 5)], [(102, 5)]).trade(0, Side.BID, 102, 1)
    surroundings.publish(again.ticks)
    gap, row = surroundings.take(2)
    assert (gap["kind"], gap["reason"]) == (RowKind.INVALIDATED, GapReason.RESYNC)
    assert (row["kind"], row["row_sequence"], row["valid_from"]) == (RowKind.ROW, 21, 21)
    with WindowReader.attach(surroundings.prefix) as windows:
        assert windows.read(0, 2) is WindowFault.TOO_SHORT
        assert isinstance(windows.read(0, 1), WindowRows)


def test_evicted_process_trusts_no_book_until_its_snapshot(surroundings):
    """I5: what was lost is counted exactly, every symbol is invalidated, and the next snapshot makes it right again."""
    process = surroundings.start()
    surroundings.publish(TickTape().snapshot(0, [(100, 5)], [(102, 5)]).trade(0, Side.BID, 102, 1).ticks)
    surroundings.take(1)
    process.popen.send_signal(signal.SIGSTOP)
    flood = np.resize(TickTape().order(0, 6, Side.BID, 1, 1).ticks, 8_192)
    while surroundings.ticks.evictions == 0:
        surroundings.publish(flood)
    for _ in range(TICKS.capacity // len(flood)):
        surroundings.publish(flood)
    process.popen.send_signal(signal.SIGCONT)
    invalidated = surroundings.take(N_SYMBOLS)
    assert (invalidated["kind"] == RowKind.INVALIDATED).all()
    assert invalidated["symbol_id"].tolist() == list(range(N_SYMBOLS))
    assert (invalidated["reason"] == GapReason.RESYNC).all()
    surroundings.publish(TickTape().trade(0, Side.BID, 102, 1).ticks)
    surroundings.publish(TickTape().snapshot(0, [(100, 5)], [(102, 5)]).trade(0, Side.BID, 102, 1).ticks)
    (row,) = surroundings.take(1)
    assert (row["kind"], row["row_sequence"], row["valid_from"]) == (RowKind.ROW, 2, 2)
    stats = StatsReader.attach(surroundings.prefix, "features")
    assert process.end() == 0
    assert stats.counter("laps") == 1
    assert stats.counter("lost_ticks") + stats.counter("ticks") == surroundings.ticks.next_sequence
    assert stats.counter("ticks_without_book") == 1
    stats.close()


def test_replaced_ring_is_joined_and_no_book_of_the_old_one_lives_on(surroundings):
    """I7: a new ticks ring is found within the generation check, and starts from nothing."""
    surroundings.start()
    surroundings.publish(TickTape().snapshot(0, [(100, 5)], [(102, 5)]).trade(0, Side.BID, 102, 1).ticks)
    surroundings.take(1)
    surroundings.ticks.close()
    for name in (TICKS.name, f"{TICKS.name}.ctl"):
        unlink(segment_name(surroundings.prefix, name))
    surroundings.ticks = surroundings.attach_ticks()
    invalidated = surroundings.take(N_SYMBOLS)
    assert (invalidated["reason"] == GapReason.RESYNC).all()
    surroundings.publish(TickTape().trade(0, Side.BID, 102, 1).ticks)
    surroundings.publish(TickTape().snapshot(1, [(7, 5)], [(9, 5)]).trade(1, Side.BID, 9, 1).ticks)
    (row,) = surroundings.take(1)
    assert (row["symbol_id"], row["row_sequence"]) == (1, 1)


def test_stop_finishes_the_ticks_that_are_there(surroundings):
    """A drain loses nothing: every tick on the ring has its row before the process ends with code 0."""
    process = surroundings.start()
    tape = TickTape().snapshot(0, [(100, 5)], [(102, 5)])
    for _ in range(500):
        tape.trade(0, Side.BID, 102, 1)
    ticks = tape.ticks
    process.popen.send_signal(signal.SIGSTOP)
    surroundings.publish(ticks)
    process.popen.send_signal(signal.SIGTERM)
    process.popen.send_signal(signal.SIGCONT)
    assert process.end(None) == 0
    assert len(surroundings.take(500)) == 500


def test_second_process_is_refused(surroundings):
    """Two writers of one store and ring cannot be; the second says why and leaves the first alone."""
    surroundings.start()
    second = surroundings.launch()
    assert second.end(None) == 1
    failure = json.loads(second.lines[-1])
    assert failure["event"] == "service_failed"
    assert "must have one writer" in failure["error"]
    surroundings.publish(TickTape().snapshot(0, [(100, 5)], [(102, 5)]).trade(0, Side.BID, 102, 1).ticks)
    assert surroundings.take(1)["kind"] == RowKind.ROW


@pytest.mark.parametrize("stopped", [False, True])
def test_missing_ticks_ring_is_one_clear_error_or_a_clean_stop(surroundings, stopped):
    """Without ingest, features gives up after its time with one error; a stop before that is no fault."""
    surroundings.ticks.close()
    for name in (TICKS.name, f"{TICKS.name}.ctl"):
        unlink(segment_name(surroundings.prefix, name))
    surroundings.write_config(wait_for_ticks_s=600.0 if stopped else 0.05)
    process = surroundings.launch()
    while stopped and segment_name(surroundings.prefix, ROWS.name) not in list_segments(surroundings.prefix):
        assert process.popen.poll() is None
    assert process.end(signal.SIGTERM if stopped else None) == (0 if stopped else 1)
    if not stopped:
        assert "the ticks ring of ingest must appear within 0.05 s, did not" in json.loads(process.lines[-1])["error"]
