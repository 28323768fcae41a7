"""What each kind of tick does to books, rows and windows. T- and V-numbers are those of the features kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tick_tape import TickTape
from tickwire.records import GapReason, RecordArray, RowKind, Side, TickKind, TradingStatus
from tickwire.records.features import FEATURE_NAMES
from tickwire_features.offline import rows_from_ticks

BIDS = [(100, 5), (99, 6), (98, 7)]
ASKS = [(102, 4), (103, 3)]


def records_of(tape: TickTape, n_symbols: int = 1) -> RecordArray:
    found = list(rows_from_ticks([tape.ticks], n_symbols))
    return np.concatenate(found) if found else np.zeros(0)


def kinds(records: RecordArray) -> list[RowKind]:
    return [RowKind(int(kind)) for kind in records["kind"]] if len(records) else []


def feature(record: np.void, name: str) -> float:
    return float(record["features"][FEATURE_NAMES.index(name)])


def started() -> TickTape:
    return TickTape().snapshot(0, BIDS, ASKS)


def test_snapshot_alone_makes_no_row():
    """T1, T2: snapshots emit none; the first event after one does."""
    assert kinds(records_of(started())) == []
    assert kinds(records_of(started().trade(0, Side.BID, 102, 1))) == [RowKind.ROW]


def test_message_of_many_ticks_makes_one_row():
    """T2: one row at EVENT_END, from the book as it is then."""
    tape = started().deltas(0, (Side.BID, 100, 0), (Side.BID, 101, 9), (Side.ASK, 103, 0))
    (row,) = records_of(tape)
    assert (row["bid_price_units"], row["ask_price_units"]) == (101, 102)


def test_row_carries_the_trace_of_its_tick():
    """Every record can be followed back to the tick that completed it."""
    tape = started().wait(5).trade(0, Side.BID, 102, 1)
    (row,) = records_of(tape)
    tick = tape.ticks[-1]
    for name, of_tick in (
        ("tick_sequence", "sequence"),
        ("venue_time_ns", "venue_time_ns"),
        ("receive_time_ns", "receive_time_ns"),
        ("receive_mono_ns", "receive_mono_ns"),
        ("tick_mono_ns", "publish_mono_ns"),
    ):
        assert row[name] == tick[of_tick] != 0, name


def test_gap_stops_rows_until_the_next_snapshot():
    """T1, T4, B1: nothing is emitted from a book that is not trusted; the window restarts behind the gap."""
    tape = started().trade(0, Side.BID, 102, 1).gap(0, GapReason.CHECKSUM)
    tape.deltas(0, (Side.BID, 100, 9)).quote(0, (100, 1), (102, 1)).trade(0, Side.BID, 102, 1)
    tape.snapshot(0, BIDS, ASKS).trade(0, Side.ASK, 100, 1)
    records = records_of(tape)
    assert kinds(records) == [RowKind.ROW, RowKind.INVALIDATED, RowKind.ROW]
    assert records["reason"].tolist() == [0, GapReason.CHECKSUM, 0]
    assert records["row_sequence"].tolist() == [1, 1, 2]
    assert records["valid_from"].tolist() == [1, 2, 2]


def test_gap_of_one_symbol_leaves_the_others_alone():
    """T1: books are independent."""
    tape = TickTape().snapshot(0, BIDS, ASKS).snapshot(1, BIDS, ASKS).gap(0)
    records = records_of(tape.trade(0, Side.BID, 102, 1).trade(1, Side.BID, 102, 1), n_symbols=2)
    assert kinds(records) == [RowKind.INVALIDATED, RowKind.ROW]
    assert records["symbol_id"].tolist() == [0, 1]


def test_gap_inside_a_snapshot_voids_it():
    """T1: a snapshot that a gap interrupts is not complete, whatever still arrives of it."""
    whole = started().ticks
    broken = np.concatenate([whole[:3], TickTape().gap(0).ticks, whole[3:], TickTape().trade(0, Side.BID, 1, 1).ticks])
    (record,) = np.concatenate(list(rows_from_ticks([broken], 1)))
    assert record["kind"] == RowKind.INVALIDATED


def test_snapshot_after_reconnect_leaves_no_ghost_level():
    """B3: the book after snapshot B is B; levels that only A had are gone; a valid book's window restarts."""
    tape = started().trade(0, Side.BID, 102, 1).snapshot(0, [(97, 1)], [(105, 1)]).trade(0, Side.BID, 105, 1)
    records = records_of(tape)
    assert kinds(records) == [RowKind.ROW, RowKind.INVALIDATED, RowKind.ROW]
    row = records[-1]
    assert (row["bid_price_units"], row["ask_price_units"]) == (97, 105)
    assert feature(row, "bid_size_2") == feature(row, "ask_size_2") == 0.0
    assert row["valid_from"] == row["row_sequence"] == 2


@pytest.mark.parametrize("side", [Side.BID, Side.ASK, Side.NONE])
def test_trade_any_side_never_changes_depth(side):
    """T3, B8: a print, even of a whole level, leaves all forty book features as they were."""
    before, after = records_of(started().deltas(0, (Side.BID, 98, 7)).trade(0, side, 102, 4))
    assert (before["features"][:40] == after["features"][:40]).all()


@pytest.mark.parametrize("kind", [TickKind.ORDER_ADD, TickKind.ORDER_MODIFY, TickKind.ORDER_CANCEL])
def test_order_tick_changes_nothing(kind):
    """T2, T3: order ticks make no row and no depth."""
    with_order = started().order(0, kind, Side.BID, 101, 50).trade(0, Side.BID, 102, 1)
    without = started().trade(0, Side.BID, 102, 1)
    assert (records_of(with_order)["features"] == records_of(without)["features"]).all()


def test_quote_newer_than_the_book_is_level_one():
    """V1: it hides levels at or better than itself, on each side."""
    (row,) = records_of(started().quote(0, (99, 1), (103, 2)))
    assert (row["bid_price_units"], row["ask_price_units"]) == (99, 103)
    typical = (1 + 7 + 2) / 3
    assert feature(row, "bid_size_1") == pytest.approx(np.log1p(1 / typical), abs=1e-6)
    assert feature(row, "bid_size_2") == pytest.approx(np.log1p(7 / typical), abs=1e-6)
    assert feature(row, "bid_size_3") == feature(row, "ask_size_2") == 0.0


def test_quote_better_than_the_book_goes_in_front():
    """V1: the book's own levels move down."""
    (row,) = records_of(started().quote(0, (101, 1), (102, 9)))
    assert (row["bid_price_units"], row["ask_price_units"]) == (101, 102)
    assert feature(row, "bid_price_2") == pytest.approx(1e4 * (100 - 101.5) / 101.5, rel=1e-6)


@pytest.mark.parametrize("ahead", [0, -1])
def test_quote_not_newer_than_the_book_is_not_seen(ahead):
    """V1: equal or older update ids change nothing; the event still makes a row."""
    (row,) = records_of(started().quote(0, (99, 1), (103, 2), ahead=ahead))
    assert (row["bid_price_units"], row["ask_price_units"]) == (100, 102)


def test_quote_ends_when_the_book_catches_up():
    """V1: a delta with the quote's id or a newer one makes the book count again."""
    _, row = records_of(started().quote(0, (99, 1), (103, 2)).deltas(0, (Side.BID, 98, 8)))
    assert (row["bid_price_units"], row["ask_price_units"]) == (100, 102)


def test_quote_one_side_empty_makes_no_row():
    """V2: without a bid there is no mid, hence no row; the next event is fine."""
    tape = started().quote(0, (0, 0), (102, 2)).quote(0, (100, 2), (102, 2))
    assert kinds(records_of(tape)) == [RowKind.ROW]


def test_event_on_crossed_book_makes_no_row_and_its_trades_count_later():
    """T2: a crossed book is no price; what happened meanwhile belongs to the next row."""
    tape = started().deltas(0, (Side.BID, 102, 1), end=False).trade(0, Side.BID, 102, 7)
    tape.deltas(0, (Side.BID, 102, 0))
    (row,) = records_of(tape)
    assert feature(row, "trade_imbalance") == pytest.approx(7 / (7 + 7), rel=1e-6)


@pytest.mark.parametrize("status", [TradingStatus.HALTED, TradingStatus.AUCTION, TradingStatus.CLOSED])
def test_halt_marks_rows_and_restarts_the_window_twice(status):
    """T4, B15: rows outside continuous trading say so, and no window reaches over the halt's start or end."""
    tape = started().trade(0, Side.BID, 102, 1).status(0, status).status(0, status).trade(0, Side.BID, 102, 1)
    tape.status(0, TradingStatus.TRADING).trade(0, Side.BID, 102, 1)
    records = records_of(tape)
    assert kinds(records) == [RowKind.ROW, RowKind.INVALIDATED, RowKind.ROW, RowKind.INVALIDATED, RowKind.ROW]
    assert records["trading"].tolist() == [1, 0, 0, 1, 1]
    assert records["valid_from"].tolist() == [1, 2, 2, 3, 3]
    assert records["reason"].tolist() == [0] * 5


def test_barrier_goes_after_all_earlier_work():
    """Closed loop: a barrier is passed on in its place, with its number."""
    records = records_of(started().trade(0, Side.BID, 102, 1).barrier(77).trade(0, Side.BID, 102, 1))
    assert kinds(records) == [RowKind.ROW, RowKind.BARRIER, RowKind.ROW]
    assert records["barrier_id"].tolist() == [0, 77, 0]


def test_unknown_symbol_kind_or_side_is_ignored():
    """A tick that no table knows changes nothing and reaches no memory of others."""
    tape = started()
    tape.trade(9, Side.BID, 102, 1).order(0, 200, Side.BID, 1, 1)
    tape.deltas(0, (7, 50, 50), end=False).trade(0, Side.BID, 102, 1)
    records = records_of(tape)
    plain = records_of(started().trade(0, Side.BID, 102, 1))
    assert (records["features"] == plain["features"]).all()
