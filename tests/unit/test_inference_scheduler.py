"""The scheduler and the engine thread on real rings, with an engine that the test holds and releases."""

from __future__ import annotations

import numpy as np
import pytest

from inference_rig import Rig, StubEngine, kinds
from tickwire.records import EngineKind, FlushReason, PredictionKind
from tickwire_inference.layouts import MAX_BATCH


def test_scheduler_full_window_answers_with_the_whole_trace(prefix):
    """A row with T valid rows behind it is answered by the model, with its identity, prices and stamps."""
    with Rig(prefix, 3, StubEngine()) as rig:
        rig.fill(2)
        rig.publish(rig.row(2, (0.1, 0.2, 0.7)))
        (answer,) = rig.answers(1)
        assert answer["kind"] == PredictionKind.PREDICTION
        assert answer["symbol_id"] == 2
        assert answer["row_sequence"] == 4
        assert answer["model"] == b"stub@1"
        assert answer["engine"] == EngineKind.RULE
        assert answer["flush_reason"] == FlushReason.IDLE
        assert (answer["batch_size"], answer["batch_sequence"], answer["conflated"]) == (1, 1, 0)
        assert (answer["bid_price_units"], answer["ask_price_units"]) == (1002, 1003)
        probabilities = [answer[f"probability_{name}"] for name in ("down", "flat", "up")]
        assert probabilities == [np.float32(0.1), np.float32(0.2), np.float32(0.7)]
        stamps = [
            answer[name]
            for name in (
                "receive_mono_ns",
                "row_mono_ns",
                "request_mono_ns",
                "batch_mono_ns",
                "engine_start_mono_ns",
                "engine_end_mono_ns",
                "publish_mono_ns",
                "deadline_mono_ns",
            )
        ]
        assert stamps == sorted(stamps)


def test_scheduler_short_or_idle_window_makes_no_request(prefix):
    """Rows I1: no request before T rows of a valid book, none outside continuous trading."""
    with Rig(prefix, 2, StubEngine()) as rig:
        rig.fill(0)
        rig.invalidate(0)
        assert kinds(rig.answers(1)) == ["INVALIDATED"]
        rig.fill(0, 1)
        rig.publish(rig.row(1, trading=0))
        rig.publish(rig.row(0))
        answers = rig.answers(1)
        assert answers["symbol_id"].tolist() == [0]
        assert rig.count("requests") == 1
        assert rig.no_more_answers()


def test_scheduler_requests_behind_a_running_batch_go_together(prefix):
    """Q5: ten requests that were queued while a batch ran make one batch of ten."""
    with Rig(prefix, 11, StubEngine(), budget_ms=500) as rig:
        rig.fill(*range(11))
        rig.engine.hold()
        rig.publish(rig.row(10))
        assert rig.engine.running.wait(10)
        rig.publish(*(rig.row(symbol) for symbol in range(10)))
        rig.wait_until(lambda: rig.count("requests") == 11)
        rig.engine.release()
        answers = rig.answers(11)
        assert answers["batch_size"].tolist() == [1] + [10] * 10
        assert rig.count("batch_size_10") == 1
        assert rig.engine.sizes == [1, 10]
        assert rig.requests_are_accounted_for()


def test_scheduler_deadline_passes_behind_a_running_batch_expires_at_once(prefix):
    """Q1: with a 50 ms engine and a 1 ms budget the second request is answered EXPIRED while the first still runs."""
    engine = StubEngine()
    with Rig(prefix, 3, engine, budget_ms=60_000) as rig:
        rig.fill(0, 1, 2)
        engine.hold()
        rig.publish(rig.row(0))
        assert engine.running.wait(10)
        rig.publish(rig.row(1))
        rig.wait_until(lambda: rig.count("requests") == 2)
        rig.desk.p99_ns[:] = 0  # no DEADLINE close: the queue behind the running batch is what is looked at
        rig.desk.budget_ns[:] = 1_000_000
        rig.publish(rig.row(1))
        (answer,) = rig.answers(1)
        assert answer["kind"] == PredictionKind.EXPIRED
        assert (answer["symbol_id"], answer["conflated"], answer["engine_start_mono_ns"]) == (1, 1, 0)
        assert engine.running.is_set(), "it was told only after the running batch"
        engine.release()
        assert rig.answers(1)["symbol_id"].tolist() == [0]
        assert rig.count("expired") == 1
        assert rig.no_more_answers(), "the late result came out after all"


def test_scheduler_newer_row_of_a_waiting_symbol_replaces_the_request(prefix):
    """Queue I2: one answer for the newest row, which says how many it stands for."""
    with Rig(prefix, 2, StubEngine()) as rig:
        rig.fill(0, 1)
        rig.engine.hold()
        rig.publish(rig.row(0))
        assert rig.engine.running.wait(10)
        for _ in range(3):
            rig.publish(rig.row(1))
        rig.wait_until(lambda: rig.count("requests") == 4)
        rig.engine.release()
        answers = rig.answers(2)
        assert answers["conflated"].tolist() == [0, 2]
        assert answers["row_sequence"].tolist() == [4, 6]
        assert rig.count("conflated") == 2


def test_scheduler_bad_rows_in_a_batch_fail_alone(prefix):
    """Q3, F11: of sixteen only the symbols with a NaN in or out fail; partners and later rows are answered."""
    with Rig(prefix, MAX_BATCH + 1, StubEngine()) as rig:
        rig.fill(*range(MAX_BATCH + 1))
        rig.engine.hold()
        rig.publish(rig.row(MAX_BATCH))
        assert rig.engine.running.wait(10)
        values = [(0.5, 0.25, symbol / 64) for symbol in range(MAX_BATCH)]
        values[3] = (np.nan, 0.5, 0.5)
        rows = [rig.row(symbol, values[symbol]) for symbol in range(MAX_BATCH)]
        rows[5]["features"][0, 40] = np.inf
        rig.publish(*rows)
        failed = rig.answers(2)
        assert kinds(failed) == ["FAILED", "FAILED"]
        assert sorted(failed["symbol_id"].tolist()) == [3, 5]
        rig.engine.release()
        answers = rig.answers(1 + MAX_BATCH - 2)[1:]
        assert set(kinds(answers)) == {"PREDICTION"}
        assert [float(p) for p in answers["probability_up"]] == [symbol / 64 for symbol in answers["symbol_id"]]
        assert rig.count("failed_input") == 2
        rig.publish(rig.row(0))
        assert kinds(rig.answers(1)) == ["PREDICTION"]
        assert rig.requests_are_accounted_for()


def test_scheduler_output_not_finite_fails_that_row_alone(prefix):
    """Q3: what an engine leaves unwritten or returns as NaN is no prediction."""

    class HalfDone(StubEngine):
        def run(self, size):
            super().run(size)
            self.probabilities[1:2] = np.nan

    with Rig(prefix, 4, HalfDone()) as rig:
        rig.fill(0, 1, 2, 3)
        rig.engine.hold()
        rig.publish(rig.row(0))
        assert rig.engine.running.wait(10)
        rig.publish(rig.row(1), rig.row(2), rig.row(3))
        rig.wait_until(lambda: rig.count("requests") == 4)
        rig.engine.release()
        answers = rig.answers(4)
        assert kinds(answers) == ["PREDICTION", "PREDICTION", "FAILED", "PREDICTION"]
        assert answers["symbol_id"].tolist() == [0, 1, 2, 3]
        assert answers["probability_up"][2] == 0
        assert rig.count("failed_output") == 1


def test_scheduler_engine_raises_fails_the_batch_and_lives_on(prefix):
    """Q3: an exception fails its batch with a reason, is logged once, and the next batch is served."""
    engine = StubEngine()
    engine.fails = lambda _size: len(engine.sizes) <= 2
    with Rig(prefix, 1, engine) as rig:
        rig.fill(0)
        for expected in ("FAILED", "FAILED", "PREDICTION"):
            rig.publish(rig.row(0))
            assert kinds(rig.answers(1)) == [expected]
        assert rig.count("failed_engine") == rig.count("failed_batches") == 2
        assert [event["event"] for event in rig.log.events] == ["engine_failed"]
        assert "no results today" in rig.log.events[0]["error"]


def test_scheduler_small_batch_after_a_big_one_holds_no_stale_rows(prefix):
    """T3: batches of 16, 3 and 1 give exactly 16, 3 and 1 results, each its own row's."""
    with Rig(prefix, MAX_BATCH + 1, StubEngine()) as rig:
        rig.fill(*range(MAX_BATCH + 1))
        value = 0
        for size in (MAX_BATCH, 3, 1):
            rig.engine.hold()
            rig.publish(rig.row(MAX_BATCH))
            assert rig.engine.running.wait(10)
            rows = []
            for symbol in range(size):
                value += 1
                rows.append(rig.row(symbol, (0, 0, value / 64)))
            before = rig.count("requests")
            rig.publish(*rows)
            rig.wait_until(lambda before=before, size=size: rig.count("requests") == before + size)
            rig.engine.release()
            answers = rig.answers(size + 1)[1:]
            assert answers["batch_size"].tolist() == [size] * size
            expected = [(value - size + 1 + symbol) / 64 for symbol in answers["symbol_id"]]
            assert [float(p) for p in answers["probability_up"]] == expected
        assert rig.no_more_answers()


def test_scheduler_book_becomes_void_answers_invalidated_once(prefix):
    """Rows I2: waiting and running requests are answered INVALIDATED; without a request one is sent too."""
    with Rig(prefix, 3, StubEngine()) as rig:
        rig.fill(0, 1, 2)
        rig.engine.hold()
        rig.publish(rig.row(0))
        assert rig.engine.running.wait(10)
        rig.publish(rig.row(1))
        for symbol in (0, 1, 2):
            rig.invalidate(symbol)
        waiting = rig.answers(3)
        assert kinds(waiting) == ["INVALIDATED"] * 3
        assert waiting["symbol_id"].tolist() == [0, 1, 2]
        assert waiting["row_sequence"].tolist() == [4, 4, 3]
        rig.engine.release()
        running = rig.answers(1)
        assert kinds(running) == ["INVALIDATED"], "a prediction from a book that is void"
        assert (running["symbol_id"][0], running["row_sequence"][0]) == (0, 4)
        assert rig.count("invalidated") == 4
        assert rig.count("withdrawn") == 2
        assert rig.requests_are_accounted_for()


def test_scheduler_row_of_no_use_invalidates_once(prefix):
    """Rows I2, F1: a row that is not finite, and the INVALIDATED behind it, are one answer; T rows later it goes on."""
    with Rig(prefix, 1, StubEngine()) as rig:
        rig.fill(0)
        rig.publish(rig.row(0))
        assert kinds(rig.answers(1)) == ["PREDICTION"]
        useless = rig.row(0, (0, 0, 0))
        useless["valid_from"] += useless["row_sequence"]
        rig.publish(useless)
        rig.invalidate(0)
        rig.fill(0)
        rig.publish(rig.row(0))
        answers = rig.answers(2)
        assert kinds(answers) == ["INVALIDATED", "PREDICTION"]
        assert answers["row_sequence"].tolist() == [5, 9]
        assert rig.count("requests") == 2


@pytest.mark.parametrize("closed_loop", [False, True])
def test_scheduler_barrier_comes_after_every_answer_before_it(prefix, closed_loop):
    """A barrier closes batches with DRAIN (FULL where sixteen wait) and is passed on behind their answers."""
    n_symbols = 20
    with Rig(prefix, n_symbols, StubEngine(), closed_loop=closed_loop) as rig:
        rig.fill(*range(n_symbols))
        for turn in range(3):
            rig.publish(*(rig.row(symbol) for symbol in range(n_symbols)))
            rig.barrier(100 + turn)
            answers = rig.answers(n_symbols + 1)
            assert kinds(answers) == ["PREDICTION"] * n_symbols + ["BARRIER"]
            assert answers["barrier_id"][-1] == 100 + turn
            if closed_loop:
                assert answers["flush_reason"].tolist() == [FlushReason.FULL] * 16 + [FlushReason.DRAIN] * 4 + [0]
                assert answers["symbol_id"][:-1].tolist() == list(range(n_symbols))


def test_scheduler_closed_loop_waits_for_the_barrier_and_never_expires(prefix):
    """Decision I4, queue I4: without a barrier nothing goes, however long ago the deadline was."""
    with Rig(prefix, 1, StubEngine(), closed_loop=True, budget_ms=0.001) as rig:
        rig.fill(0)
        rig.publish(rig.row(0), rig.row(0))
        rig.wait_until(lambda: rig.count("requests") == 2)
        assert rig.no_more_answers()
        rig.barrier(1)
        answers = rig.answers(2)
        assert kinds(answers) == ["PREDICTION", "BARRIER"]
        assert answers["conflated"].tolist() == [1, 0]


def test_scheduler_drain_answers_all_and_takes_no_more_rows(prefix):
    """Stopping: what waits is answered with DRAIN, rows that come later stay on the ring."""
    with Rig(prefix, 20, StubEngine()) as rig:
        rig.fill(*range(20))
        rig.engine.hold()
        rig.publish(*(rig.row(symbol) for symbol in range(18)))
        rig.wait_until(lambda: rig.count("requests") == 18)
        rig.scheduler.request_drain()
        assert not rig.scheduler.drained
        rig.engine.release()
        answers = rig.answers(18)
        assert set(kinds(answers)) == {"PREDICTION"}
        rig.wait_until(lambda: rig.scheduler.drained)
        rig.publish(rig.row(19))
        assert rig.count("requests") == 18
        assert rig.requests_are_accounted_for()


def test_scheduler_predictions_refused_holds_batches_back_and_loses_nothing(prefix):
    """Answers I2: a router that does not read stops the batches; when it reads again every request is answered."""
    with Rig(prefix, 1, StubEngine()) as rig:
        capacity = rig.prediction_consumer.spec.capacity
        rig.fill(0)
        published = 0
        while not rig.count("back_pressure"):
            rig.invalidate(0)
            published += 1
            rig.wait_until(lambda n=published: rig.count("invalidated") == n or rig.count("back_pressure") > 0)
        assert published > capacity
        batches = rig.count("batches")
        rig.fill(0)
        rig.publish(rig.row(0))
        rig.wait_until(lambda: rig.count("requests") == 1)
        assert rig.count("batches") == batches
        answers = rig.answers(published + 1)
        assert kinds(answers) == ["INVALIDATED"] * published + ["PREDICTION"]
        assert rig.count("back_pressure") == 1


def test_scheduler_lone_symbol_every_request_is_answered(prefix):
    """Q10: ten thousand requests of one symbol at random spacing are all dispatched, none waits for company."""
    rng = np.random.default_rng(7)
    with Rig(prefix, 1, StubEngine()) as rig:
        rig.fill(0)
        sent = answered = stands_for = 0
        while sent < 10_000:
            burst = int(rng.integers(1, 4))
            rig.publish(*(rig.row(0) for _ in range(burst)))
            sent += burst
            while stands_for < sent:
                answers = rig.answers(1)
                assert kinds(answers) == ["PREDICTION"]
                answered += 1
                stands_for += 1 + int(answers["conflated"][0])
        assert rig.count("requests") == sent == answered + rig.count("conflated")
        assert rig.count("flush_idle") == rig.count("batches") == answered
        assert rig.requests_are_accounted_for()
