"""F1: a value that is not finite costs one row and one window, and poisons nothing."""

from __future__ import annotations

import numpy as np
import pytest

from reference.features import reference_records
from tick_tape import TickTape
from tickwire.records import RecordArray, RowKind, Side
from tickwire.windows import WindowFault, WindowReader, WindowRows, WindowWriter
from tickwire_features.kernels.desk import Desk, new_desk
from tickwire_features.kernels.ticks import take_ticks
from tickwire_features.stats import ROWS_NOT_FINITE, SYMBOL_ROWS_NOT_FINITE

WINDOW = 5
GOOD = 10
SUMS = (
    "typical",  # sizes, order flow, signed volume
    "typical_trade",  # trade imbalance
    "flow_top",
    "flow_levels",
    "signed_fast",
    "signed_slow",
    "traded_slow",
    "squared_returns",
)
"""Every accumulated value. Microprice offset, spread and event age are made of integers of the moment only."""


def take(desk: Desk, ticks: RecordArray) -> RecordArray:
    desk.ticks[: len(ticks)] = ticks
    desk.work["records"] = 0
    take_ticks(desk, len(ticks))
    return desk.records[: int(desk.work["records"][0])].copy()


def good_events(tape: TickTape, count: int) -> TickTape:
    for i in range(count):
        tape.wait(3_000_000).deltas(0, (Side.BID, 100 + i % 2, 5 + i), (Side.ASK, 104 - i % 3, 4))
        tape.wait(1_000_000).trade(0, Side.ASK if i % 3 else Side.BID, 101, 1 + i)
    return tape


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SUMS)
def test_bad_value_in_any_sum_costs_one_row_and_then_equals_a_recompute(prefix, name, value):
    """F1: zeros stored and counted, the window invalid while the row is in it, then rows equal a fresh recompute."""
    tape = good_events(TickTape().snapshot(0, [(99, 9)], [(105, 8)]), GOOD)
    poisoned = len(tape.ticks)
    tape.wait(2_000_000).trade(0, Side.BID, 101, 3)
    good_events(tape, GOOD * WINDOW)
    ticks = tape.ticks
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        desk = new_desk(1, len(ticks), writer.state)
        take(desk, ticks[:poisoned])
        assert isinstance(reader.read(0, WINDOW), WindowRows)
        desk.symbols[name] = value
        row, invalidated = take(desk, ticks[poisoned : poisoned + 1])
        assert (row["kind"], invalidated["kind"]) == (RowKind.ROW, RowKind.INVALIDATED)
        assert (row["features"] == 0).all()
        assert row["valid_from"] == invalidated["valid_from"] == row["row_sequence"] + 1
        found = []
        for i in range(poisoned + 1, len(ticks)):
            records = take(desk, ticks[i : i + 1])
            found += list(records)
            since = len(found)
            window = reader.read(0, WINDOW)
            assert isinstance(window, WindowRows) == (since >= WINDOW), window
            if isinstance(window, WindowFault):
                assert window is WindowFault.TOO_SHORT
        twins = reference_records(ticks, 1, frozenset({poisoned}))[-len(found) :]
        for record, twin in zip(found, twins, strict=True):
            assert (record["row_sequence"], record["valid_from"]) == (twin.row_sequence, twin.valid_from)
            np.testing.assert_allclose(record["features"], twin.features, rtol=2e-6, atol=2e-6)
        assert desk.work["counts"][0, ROWS_NOT_FINITE] == 1
        assert desk.symbols["counts"][0, SYMBOL_ROWS_NOT_FINITE] == 1


@pytest.mark.parametrize(("bid", "ask"), [(-5, 5), (-9, 3)])
def test_bad_price_makes_bad_rows_only_while_it_lasts(prefix, bid, ask):
    """F1: a mid of 0, or a sign that changes, has no relative price or return; the next run starts behind it."""
    tape = TickTape().snapshot(0, [(99, 9)], [(105, 8)]).trade(0, Side.BID, 105, 1)
    tape.deltas(0, (Side.BID, 99, 0), (Side.ASK, 105, 0), (Side.BID, bid, 1), (Side.ASK, ask, 1))
    tape.deltas(0, (Side.BID, bid, 0), (Side.ASK, ask, 0), (Side.BID, 99, 9), (Side.ASK, 105, 8))
    tape.trade(0, Side.BID, 105, 2)
    ticks = tape.ticks
    with WindowWriter.attach(prefix, 1) as writer, WindowReader.attach(prefix) as reader:
        records = take(new_desk(1, len(ticks), writer.state), ticks)
        rows = records[records["kind"] == RowKind.ROW]
        assert (rows["features"] == 0).all(axis=1).tolist() == [False, True, False, False]
        assert rows["valid_from"].tolist() == [1, 3, 3, 3]
        assert np.isfinite(rows["features"]).all()
        assert isinstance(reader.read(0, 2), WindowRows)
        assert reader.read(0, 3) is WindowFault.TOO_SHORT
