"""Inference without its process: real rings, the real scheduler and engine thread, and an engine that tests control."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tickwire.records import N_FEATURES, PREDICTION, ROW, EngineKind, PredictionKind, RowKind
from tickwire.ring import Consumer, Lapped, Producer, Start, WaitStrategy
from tickwire.ring.kernels import REATTACH
from tickwire.runtime import private_stats
from tickwire.topology import PREDICTIONS, ROWS
from tickwire.windows import WindowReader, WindowWriter
from tickwire_inference.breaker import Breaker
from tickwire_inference.engine_thread import EngineThread
from tickwire_inference.kernels.desk import new_desk
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_OUTPUTS
from tickwire_inference.lineup import Lineup
from tickwire_inference.scheduler import Scheduler
from tickwire_inference.stats import INFERENCE_STATS

WATCHDOG_S = 30.0


class StubEngine:
    """Probabilities are the first three features of the newest row. Held, it blocks in `run` until it is released."""

    kind = EngineKind.RULE
    label = "stub@1"

    def __init__(self, window_rows: int = 4) -> None:
        self.window_rows = window_rows
        self.windows = np.zeros((MAX_BATCH, window_rows, N_FEATURES), np.float32)
        self.probabilities = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)
        self.sizes: list[int] = []
        self.fails: Callable[[int], bool] = lambda _size: False
        self.running = threading.Event()
        self._released = threading.Event()
        self._released.set()

    def run(self, size: int) -> None:
        self.sizes.append(size)
        self.running.set()
        assert self._released.wait(WATCHDOG_S)
        self.running.clear()
        if self.fails(size):
            raise RuntimeError("stub: no results today")
        self.probabilities[:size] = self.windows[:size, -1, :N_OUTPUTS]

    def hold(self) -> None:
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    def warm_up(self) -> tuple[int, ...]:
        return tuple(1_000_000 for _ in BUCKETS)

    def close(self) -> None:
        self.release()


class SilentLog:
    """Remembers what was logged."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def error(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})

    warning = info = error


class Rig:
    """Inference of one run. Use as a context manager; `rows` publishes, `answers` collects."""

    def __init__(
        self,
        prefix: str,
        n_symbols: int,
        engine: Any,
        *,
        budget_ms: float = 10_000.0,
        handicaps_ns: list[int] | None = None,
        closed_loop: bool = False,
        autostart: bool = True,
        fallbacks: tuple[Any, ...] = (),
    ) -> None:
        self._fallbacks = fallbacks
        self.n_symbols = n_symbols
        self._prefix = prefix
        self._settings = ([int(budget_ms * 1e6)] * n_symbols, handicaps_ns or [0] * n_symbols, closed_loop)
        self._autostart = autostart
        self.sequences = [0] * n_symbols
        self.valid_from = [1] * n_symbols
        self._answers: list[np.void] = []
        self.store = WindowWriter.attach(prefix, n_symbols)
        self.row_producer = Producer.attach(prefix, ROWS)
        self.attach(engine)
        self.prediction_consumer = Consumer.attach(prefix, PREDICTIONS, name="router")

    def attach(self, engine: Any) -> None:
        """Make what a new process of inference makes."""
        budgets_ns, handicaps_ns, closed_loop = self._settings
        self.engine = engine
        self.log = SilentLog()
        self.stats = private_stats(INFERENCE_STATS, self.n_symbols)
        self.desk = new_desk(budgets_ns, handicaps_ns, engine.window_rows, closed_loop, self.stats)
        self.row_consumer = Consumer.attach(self._prefix, ROWS, name="inference", start=Start.HEAD)
        self.prediction_producer = Producer.attach(self._prefix, PREDICTIONS, stall_timeout_ms=60_000)
        self.scheduler = Scheduler(
            self.desk,
            self.row_consumer,
            self.prediction_producer,
            WindowReader.attach(self._prefix),
            lambda: WindowReader.attach(self._prefix),
        )
        self.scheduler.expect(engine.warm_up())
        self.lineup = Lineup(engine, self._fallbacks, Breaker(10, 5_000_000_000))
        self._stop = np.zeros(1, np.uint64)
        engine_thread = EngineThread(self.desk, self.lineup, self.log, WaitStrategy.SPIN_PARK)
        self._threads = [
            threading.Thread(target=body, args=(self._stop.ctypes.data,), daemon=True)
            for body in (self._schedule, engine_thread.body)
        ]

    def __enter__(self) -> Rig:
        if self._autostart:
            self.start()
        return self

    def start(self) -> None:
        """Start scheduler and engine thread."""
        for thread in self._threads:
            thread.start()

    def detach(self) -> None:
        """Stop inference as a killed process stops: no drain."""
        self.engine.close()
        self._stop[0] = 1
        for thread in self._threads:
            thread.join(WATCHDOG_S)
            assert not thread.is_alive()
        self.scheduler.close()
        self.row_consumer.close()
        self.prediction_producer.close()

    def __exit__(self, *_error: object) -> None:
        self.detach()
        self.row_producer.close()
        self.prediction_consumer.close()
        self.store.close()

    def _schedule(self, stop_address: int) -> None:
        while self.scheduler.body(stop_address) == REATTACH:
            self.scheduler.reattach()

    def row(self, symbol: int, features: Any = (0.2, 0.3, 0.5), *, trading: int = 1) -> np.ndarray:
        """The symbol's next row, its first features given and the others 0."""
        self.sequences[symbol] += 1
        row = np.zeros(1, ROW)
        row["symbol_id"] = symbol
        row["kind"] = RowKind.ROW
        row["trading"] = trading
        row["row_sequence"] = self.sequences[symbol]
        row["valid_from"] = self.valid_from[symbol]
        row["receive_time_ns"] = row["receive_mono_ns"] = time.monotonic_ns()
        row["bid_price_units"] = 1000 + symbol
        row["ask_price_units"] = 1001 + symbol
        row["features"][0, : len(features)] = features
        return row

    def publish(self, *rows: np.ndarray) -> None:
        """Write rows to the store and publish them as one batch, as features does."""
        for (row,) in rows:
            if row["kind"] == RowKind.ROW:
                usable = bool(row["valid_from"] <= row["row_sequence"])
                written = self.store.write(int(row["symbol_id"]), row["features"], usable=usable)
                assert written == row["row_sequence"]
        assert self.row_producer.publish(np.concatenate(rows)) == len(rows)

    def fill(self, *symbols: int) -> None:
        """Publish so many rows of each symbol that the next one makes a request."""
        self.fill_unseen(*symbols)
        self.wait_until(lambda: all(self.desk.newest[symbol] == self.sequences[symbol] for symbol in symbols))

    def fill_unseen(self, *symbols: int) -> None:
        """The same without waiting for the scheduler."""
        for symbol in symbols:
            self.publish(*(self.row(symbol) for _ in range(self.engine.window_rows - 1)))

    def invalidate(self, symbol: int) -> None:
        """Publish what features publishes when the symbol's book becomes void."""
        self.valid_from[symbol] = self.store.invalidate(symbol)
        record = np.zeros(1, ROW)
        record["symbol_id"] = symbol
        record["kind"] = RowKind.INVALIDATED
        record["row_sequence"] = self.sequences[symbol]
        record["valid_from"] = self.valid_from[symbol]
        self.publish(record)

    def barrier(self, barrier_id: int) -> None:
        """Publish a barrier."""
        record = np.zeros(1, ROW)
        record["kind"] = RowKind.BARRIER
        record["barrier_id"] = barrier_id
        self.publish(record)

    def answers(self, count: int) -> np.ndarray:
        """The next `count` answers."""
        deadline_s = time.monotonic() + WATCHDOG_S
        while len(self._answers) < count:
            assert time.monotonic() < deadline_s, f"only {len(self._answers)} of {count} answers came"
            self.prediction_consumer.wait(0.1)
            found = self.prediction_consumer.poll()
            assert not isinstance(found, Lapped)
            self._answers.extend(found.copy())
        taken, self._answers = self._answers[:count], self._answers[count:]
        return np.array(taken, PREDICTION)

    def no_more_answers(self) -> bool:
        """Whether everything that was answered has been collected."""
        found = self.prediction_consumer.poll()
        return not isinstance(found, Lapped) and not len(found) and not self._answers

    def count(self, name: str) -> int:
        """A counter."""
        return int(self.stats.counters[INFERENCE_STATS.counter(name)])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that another thread brings about."""
        deadline_s = time.monotonic() + WATCHDOG_S
        while not condition():
            assert time.monotonic() < deadline_s, "it never happened"
            time.sleep(0.0002)

    def requests_are_accounted_for(self) -> bool:
        """Every request was answered exactly once, replaced by a newer one, or still waits."""
        failed = sum(self.count(f"failed_{cause}") for cause in ("input", "output", "overrun", "engine"))
        ended = failed + sum(self.count(name) for name in ("conflated", "predictions", "expired", "withdrawn"))
        flying = sum(int(size) for size in self.desk.slots["size"][: int(self.desk.state["in_flight"][0])])
        return self.count("requests") == ended + int(self.desk.state["waiting"][0]) + flying


def kinds(answers: np.ndarray) -> list[str]:
    """Names of the answers' kinds."""
    return [PredictionKind(int(kind)).name for kind in answers["kind"]]
