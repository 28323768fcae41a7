"""Host windows: appended from the ring, repaired from the windows store, gathered with an overrun check."""

from __future__ import annotations

import numpy as np

from inference_rig import Rig, StubEngine, kinds
from tickwire.records import N_FEATURES, ROW, WINDOW_ROWS, as_words
from tickwire.ring import Producer
from tickwire.ring.segment import segment_name, unlink
from tickwire.topology import ROWS
from tickwire_inference.kernels.windows import APPENDED, APPENDED_NOT_FINITE, HOLE, NOT_NEW, append, gather
from tickwire_inference.layouts import ROW_OK, ROW_OVERRUN

T = 100


class HostWindows:
    """The arrays of one symbol's window."""

    def __init__(self) -> None:
        self.bits = np.zeros((1, WINDOW_ROWS, N_FEATURES), np.uint32)
        self.newest = np.zeros(1, np.uint64)
        self.held_from = np.zeros(1, np.uint64)

    def append(self, sequence, value=None):
        row = np.zeros(1, ROW)
        row["features"] = np.arange(N_FEATURES) + sequence if value is None else value
        return append(self.bits, self.newest, self.held_from, 0, sequence, as_words(row), 0)

    def gather(self, last):
        staging = np.zeros((1, T, N_FEATURES), np.float32)
        return gather(self.bits, self.newest, 0, last, staging.view(np.uint32), 0), staging[0]


def test_windows_any_position_in_the_buffer_gathers_the_rows_in_order():
    """A window is its T rows, oldest first, also where it wraps round the buffer's end."""
    windows = HostWindows()
    for sequence in range(1, 3 * WINDOW_ROWS):
        assert windows.append(sequence) == APPENDED
        if sequence >= T and sequence % 97 == 0:
            found, rows = windows.gather(sequence)
            assert found == ROW_OK
            expected = np.arange(sequence - T + 1, sequence + 1)[:, None] + np.arange(N_FEATURES)
            np.testing.assert_array_equal(rows, expected)


def test_windows_row_overwritten_meanwhile_is_reported():
    """Windows I1: a window whose oldest row may have been overwritten is an overrun, the next younger one is not."""
    windows = HostWindows()
    for sequence in range(1, WINDOW_ROWS + T):
        windows.append(sequence)
    assert windows.gather(2 * T)[0] == ROW_OK
    assert windows.gather(2 * T - 1)[0] == ROW_OK
    assert windows.append(WINDOW_ROWS + T) == APPENDED
    assert windows.gather(2 * T)[0] == ROW_OK
    assert windows.gather(2 * T - 1)[0] == ROW_OVERRUN


def test_windows_known_missing_and_broken_rows_are_told_apart():
    """Windows I2: a known row changes nothing, a hole stores nothing, a NaN moves the run's start behind itself."""
    windows = HostWindows()
    assert windows.append(5) == APPENDED
    assert windows.held_from[0] == 5
    assert windows.append(5) == windows.append(4) == NOT_NEW
    assert windows.append(7) == HOLE
    assert windows.newest[0] == 5
    assert windows.append(6, np.nan) == APPENDED_NOT_FINITE
    assert windows.held_from[0] == 7
    assert windows.append(7, -np.inf) == APPENDED_NOT_FINITE
    assert windows.append(8, np.finfo(np.float32).max) == APPENDED
    assert windows.held_from[0] == 8


def test_windows_start_with_a_full_store_serves_with_the_first_row(prefix):
    """No warm-up after a restart: the store gives the window, the first row from the ring gets a prediction."""
    with Rig(prefix, 2, StubEngine(window_rows=T)) as rig:
        for _ in range(T):
            rig.publish(rig.row(0))
        rig.answers(1)
        rig.detach()
        rig.attach(StubEngine(window_rows=T))
        rig.start()
        rig.publish(rig.row(0, (0.5, 0.25, 0.25)))
        (answer,) = rig.answers(1)
        assert answer["row_sequence"] == T + 1
        assert answer["probability_down"] == 0.5
        expected = np.tile(np.float32([0.2, 0.3, 0.5]), (T, 1))
        expected[-1] = (0.5, 0.25, 0.25)
        np.testing.assert_array_equal(rig.engine.windows[0, :, :3], expected)


def test_windows_lapped_ring_is_repaired_from_the_store(prefix):
    """Rows I4: after a lap the window is whole, rows up to the head are known, the newest row is answered."""
    with Rig(prefix, 1, StubEngine(window_rows=T), autostart=False) as rig:
        for _ in range(0, 2 * ROWS.capacity, 64):
            rig.publish(*(rig.row(0) for _ in range(64)))
        rig.start()
        answers = rig.answers(1)
        assert rig.count("lost_rows") > 0
        assert answers["row_sequence"][-1] == rig.sequences[0]
        assert rig.count("rows_known") > 0
        rig.publish(rig.row(0))
        assert kinds(rig.answers(1)) == ["PREDICTION"]
        assert rig.requests_are_accounted_for()


def test_windows_invalidation_lost_with_the_lap_is_passed_on(prefix):
    """Repair I2: a store whose valid_from moved on says that the book was void meanwhile."""
    with Rig(prefix, 1, StubEngine(), autostart=False) as rig:
        rig.fill_unseen(0)
        rig.invalidate(0)
        for _ in range(0, 2 * ROWS.capacity, 64):
            rig.publish(*(rig.row(0) for _ in range(64)))
        rig.start()
        answers = rig.answers(2)
        assert kinds(answers) == ["INVALIDATED", "PREDICTION"]
        assert answers["symbol_id"].tolist() == [0, 0]


def test_windows_hole_without_the_rows_in_the_store_starts_anew(prefix):
    """Repair I1: rows that are nowhere to be found cost a warm-up of that symbol, never a wrong window."""
    with Rig(prefix, 2, StubEngine()) as rig:
        rig.fill(0, 1)
        rig.publish(rig.row(0), rig.row(1))
        rig.answers(2)
        lost = [rig.row(0) for _ in range(3)]
        for row in lost:
            row["row_sequence"] += 10
        assert rig.row_producer.publish(np.concatenate(lost)) == 3
        rig.wait_until(lambda: rig.count("rows") == 11)
        assert rig.count("requests") == 2
        rig.publish(rig.row(1))
        assert rig.answers(1)["symbol_id"][0] == 1


def test_windows_replaced_ring_answers_everything_and_goes_on_with_the_new_one(prefix):
    """Loop I2: every symbol is invalidated, the new ring's rows are served from the store, the old one's are not."""
    with Rig(prefix, 2, StubEngine()) as rig:
        rig.fill(0, 1)
        rig.engine.hold()
        rig.publish(rig.row(0))
        assert rig.engine.running.wait(10)
        rig.publish(rig.row(1))
        rig.wait_until(lambda: rig.count("requests") == 2)
        rig.row_producer.close()
        for name in ("rows", "rows.ctl"):
            unlink(segment_name(prefix, name))
        rig.row_producer = Producer.attach(prefix, ROWS)
        assert rig.scheduler.check_generation()
        waiting = rig.answers(2)
        assert kinds(waiting) == ["INVALIDATED", "INVALIDATED"]
        assert waiting["row_sequence"].tolist() == [4, 4]
        rig.engine.release()
        running = rig.answers(1)
        assert kinds(running) == ["INVALIDATED"]
        assert (running["symbol_id"][0], running["row_sequence"][0]) == (0, 4)
        rig.wait_until(lambda: rig.row_consumer.reattaches == 1)
        rig.publish(rig.row(1))
        answers = rig.answers(1)
        assert kinds(answers) == ["PREDICTION"]
        assert (answers["symbol_id"][0], answers["row_sequence"][0]) == (1, 5)
        assert not rig.scheduler.check_generation()
        assert rig.requests_are_accounted_for()
