"""The inference service as a process of its own; the test is features on one side of it and the router on the other."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from onnx_models import last_row_softmax, publish_model
from tickwire.records import N_FEATURES, ROW, EngineKind, Instrument, PredictionKind, RowKind, SymbolTable
from tickwire.records.features import FEATURE_NAMES
from tickwire.ring import Consumer, Lapped, Producer
from tickwire.ring.segment import list_segments, unlink
from tickwire.runtime import ServiceState, StatsReader
from tickwire.topology import PREDICTIONS, ROWS
from tickwire.windows import WindowWriter

T = 20
N_SYMBOLS = 3
SYMBOLS = SymbolTable(
    Instrument(venue="v", name=f"S{i}", price_increment="0.01", quantity_increment="1") for i in range(N_SYMBOLS)
)
WATCHDOG_S = 120.0

RUN = """
[run]
prefix = "{prefix}"
state_dir = "{folder}"

[inference]
model = "test"
models_dir = "{folder}"
budget_us = 5_000_000
"""
SYMBOL = """
[[symbols]]
venue = "v"
name = "S{i}"
price_increment = "0.01"
quantity_increment = "1"
"""


class Process:
    """`python -m tickwire_inference`, its log lines as they come."""

    def __init__(self, config: Path) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tickwire_inference", "--config", str(config)],
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
    """Features and router of one run."""

    def __init__(self, prefix: str, folder: Path) -> None:
        self.prefix = prefix
        self.config = folder / "tickwire.toml"
        symbols = "".join(SYMBOL.format(i=i) for i in range(N_SYMBOLS))
        self.config.write_text(RUN.format(prefix=prefix, folder=folder) + symbols)
        self.store = WindowWriter.attach(prefix, N_SYMBOLS, symbol_table_hash=SYMBOLS.hash)
        self.rows = Producer.attach(prefix, ROWS, symbol_table_hash=SYMBOLS.hash)
        self.predictions: Consumer | None = None
        self.processes: list[Process] = []

    def start(self) -> Process:
        process = Process(self.config)
        self.processes.append(process)
        process.wait_for("service_ready")
        if self.predictions is None:
            self.predictions = Consumer.attach(self.prefix, PREDICTIONS, name="router")
        return process

    def publish(self, symbol: int, features: np.ndarray) -> int:
        """Write a row as features does; return its row_sequence."""
        row = np.zeros(1, ROW)
        row["features"] = features
        row["symbol_id"], row["kind"], row["trading"] = symbol, RowKind.ROW, 1
        row["row_sequence"] = self.store.write(symbol, features)
        row["valid_from"] = self.store.valid_from(symbol)
        row["receive_mono_ns"] = time.monotonic_ns()
        assert self.rows.publish(row) == 1
        return int(row["row_sequence"][0])

    def answer(self) -> np.void:
        """The next prediction record."""
        assert self.predictions is not None
        deadline_s = time.monotonic() + WATCHDOG_S
        while time.monotonic() < deadline_s:
            self.predictions.wait(0.1)
            found = self.predictions.poll(1)
            assert not isinstance(found, Lapped)
            if len(found):
                return found.copy()[0]
        raise AssertionError("no answer")

    def close(self) -> None:
        for process in self.processes:
            process.end(signal.SIGKILL)
        if self.predictions is not None:
            self.predictions.close()
        self.rows.close()
        self.store.close()


@pytest.fixture
def surroundings(prefix, tmp_path):
    made = Surroundings(prefix, tmp_path)
    yield made
    made.close()


def softmax(values):
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def check(answer, sequence, symbol, features, weights):
    assert answer["kind"] == PredictionKind.PREDICTION
    assert (answer["symbol_id"], answer["row_sequence"]) == (symbol, sequence)
    assert (answer["model"], answer["engine"]) == (b"test@1", EngineKind.ONNXRUNTIME)
    found = [answer[f"probability_{name}"] for name in ("down", "flat", "up")]
    np.testing.assert_allclose(found, softmax(features @ weights), atol=1e-6)


def test_inference_killed_and_restarted_serves_with_the_first_row(surroundings, tmp_path):
    """Rows on a real ring are answered by the real process; after kill -9 the next serves from the store at once."""
    graph, weights = last_row_softmax(T)
    publish_model(tmp_path, graph, T)
    rng = np.random.default_rng(11)
    process = surroundings.start()
    stats = StatsReader.attach(surroundings.prefix, "inference")
    assert stats.state is ServiceState.READY
    for symbol in range(N_SYMBOLS):
        for _ in range(T - 1):
            surroundings.publish(symbol, rng.normal(size=N_FEATURES).astype(np.float32))
    for turn in range(5 * N_SYMBOLS):
        features = rng.normal(size=N_FEATURES).astype(np.float32)
        sequence = surroundings.publish(turn % N_SYMBOLS, features)
        check(surroundings.answer(), sequence, turn % N_SYMBOLS, features, weights)
    assert stats.counter("predictions") == stats.counter("requests") == 5 * N_SYMBOLS
    assert stats.gauge("scheduler_turn_max_ns") > 0
    assert stats.per_symbol("predictions").tolist() == [5] * N_SYMBOLS
    assert stats.histogram("row_to_prediction").count == 5 * N_SYMBOLS

    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    unseen = rng.normal(size=N_FEATURES).astype(np.float32)
    surroundings.publish(1, unseen)
    process = surroundings.start()
    features = rng.normal(size=N_FEATURES).astype(np.float32)
    sequence = surroundings.publish(1, features)
    check(surroundings.answer(), sequence, 1, features, weights)
    assert stats.refresh()
    assert stats.counter("requests") == 1
    assert process.end() == 0
    assert stats.state is ServiceState.STOPPED
    stats.close()


def test_inference_os_signal_while_waiting_for_features_ends_it(prefix, tmp_path):
    """SIGTERM is honoured while the rows ring does not exist yet."""
    publish_model(tmp_path, last_row_softmax(T)[0], T)
    made = Surroundings(prefix, tmp_path)
    made.close()
    for name in list_segments(prefix):
        unlink(name)
    process = Process(made.config)
    process.wait_for("engine_loaded")
    assert process.end() == 0


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("missing", "must be readable, was not"),
        ("permuted", "feature_names must be this build's features in this order"),
    ],
)
def test_inference_model_that_cannot_be_used_is_one_error_and_nothing_left(prefix, tmp_path, fault, text):
    """F5: a missing model or one of permuted features: one clear line, exit code 1, no segment left behind."""
    if fault == "permuted":
        publish_model(tmp_path, last_row_softmax(T)[0], T, feature_names=(*FEATURE_NAMES[1:], FEATURE_NAMES[0]))
    config = tmp_path / "tickwire.toml"
    symbols = "".join(SYMBOL.format(i=i) for i in range(N_SYMBOLS))
    config.write_text(RUN.format(prefix=prefix, folder=tmp_path) + symbols)
    ended = subprocess.run(
        [sys.executable, "-m", "tickwire_inference", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        env=os.environ,
        check=False,
    )
    assert ended.returncode == 1
    errors = [json.loads(line) for line in ended.stdout.splitlines() if '"error"' in line]
    assert [error["event"] for error in errors] == ["service_failed"]
    assert text in errors[0]["error"]
    assert str(tmp_path) in errors[0]["error"]
    assert list_segments(prefix) == []


def activate(surroundings: Surroundings, model: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tickwire_ctl", "model", "activate", model, "--config", str(surroundings.config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)


def test_models_swapped_under_load_lose_no_request_and_are_named(surroundings, tmp_path):
    """Case Q7: each request is answered once, by the model it names, whose output it is; bad models are refused."""
    weights = {}
    for version, seed in (("1", 3), ("2", 4)):
        onnx, weights[f"test@{version}".encode()] = last_row_softmax(T, seed=seed)
        publish_model(tmp_path, onnx, T, version=version)
    other, _ = last_row_softmax(2 * T)
    publish_model(tmp_path, other, 2 * T, version="long")
    (tmp_path / "test" / "current").write_text("1\n")
    surroundings.start()
    dice = np.random.default_rng(0)
    served: set[bytes] = set()

    def ask(n: int) -> None:
        for _ in range(n):
            features = dice.normal(0, 1, N_FEATURES).astype(np.float32)
            sequence = surroundings.publish(0, features)
            if sequence < T:
                continue
            answer = surroundings.answer()
            assert (int(answer["row_sequence"]), answer["kind"]) == (sequence, PredictionKind.PREDICTION)
            logits = features @ weights[bytes(answer["model"])]
            expected = np.exp(logits) / np.exp(logits).sum()
            found = [answer["probability_down"], answer["probability_flat"], answer["probability_up"]]
            np.testing.assert_allclose(found, expected, atol=1e-5)
            served.add(bytes(answer["model"]))

    ask(T + 5)
    assert served == {b"test@1"}
    for version in ("2", "1", "2"):
        with ThreadPoolExecutor(1) as pool:
            swap = pool.submit(activate, surroundings, f"test@{version}")
            while not swap.done():
                ask(5)
        assert swap.result().returncode == 0, swap.result().stderr
        served.clear()
        ask(5)
        assert served == {f"test@{version}".encode()}
    (tmp_path / "test" / "1" / "model.onnx").write_bytes(b"")
    for model, reason in (("test@1", "must have"), ("test@9", "must be readable"), ("test@long", "restart inference")):
        refused = activate(surroundings, model)
        assert refused.returncode == 1
        assert reason in refused.stderr
        assert "test@2 serves on" in refused.stderr
    served.clear()
    ask(5)
    assert served == {b"test@2"}
    stats = StatsReader.attach(surroundings.prefix, "inference")
    assert (stats.counter("swaps"), stats.counter("swaps_refused")) == (3, 3)
    stats.close()


def test_missing_model_is_refused_or_degraded_as_configured(surroundings, tmp_path):
    """A configured engine that is not there is an error, or an explicit degraded state: never silent."""
    onnx, _ = last_row_softmax(T)
    publish_model(tmp_path, onnx, T, name="light")
    text = surroundings.config.read_text()
    extra = 'engine_missing = "degrade"\nfallback_models = ["light"]\n'
    surroundings.config.write_text(text.replace("budget_us", extra + "budget_us"))
    process = surroundings.start()
    missing = next(json.loads(line) for line in process.lines if '"engine_missing"' in line)
    assert "must be readable" in missing["reason"]
    for _ in range(T):
        surroundings.publish(0, np.ones(N_FEATURES, np.float32))
    assert surroundings.answer()["model"] == b"light@1"
    stats = StatsReader.attach(surroundings.prefix, "inference")
    assert stats.gauge("degraded") == 1
    stats.close()
