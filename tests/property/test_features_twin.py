"""The compiled kernels against the plain twin, which recomputes every record from scratch."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.features import Record, reference_records
from tick_tape import TickTape
from tickwire.records import GapReason, RecordArray, RowKind, Side, TickKind, TradingStatus
from tickwire_features.offline import rows_from_ticks

SYMBOLS = 2
TOLERANCE = 2e-6
"""Absolute and relative: float32 rows against float64 formulas."""

PRICES = st.integers(90, 110)
QUANTITIES = st.integers(0, 60)
SYMBOL = st.integers(0, SYMBOLS - 1)
SIDE = st.sampled_from([Side.BID, Side.ASK])
WAIT = st.sampled_from([0, 0, 1_000, 3_000_000, 700_000_000, 60_000_000_000, -5_000_000])


def levels(centre: int, away: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Up to 13 levels on one side of the centre: thin books, empty ones, and more than the ten that count."""
    return st.lists(st.integers(1, 60), max_size=13).map(
        lambda quantities: [(centre + away * (i + 1), quantity) for i, quantity in enumerate(quantities)]
    )


@st.composite
def tapes(draw: st.DrawFn) -> RecordArray:
    """Two symbols' messages of every kind, in any order, mostly with books to apply them to."""
    tape = TickTape()
    for symbol in range(SYMBOLS):
        tape.snapshot(symbol, draw(levels(100, -1)), draw(levels(100, 1)))
    kinds = st.sampled_from(
        ["delta"] * 8 + ["trade"] * 4 + ["quote"] * 4 + ["status", "gap", "snapshot", "order", "barrier", "open"]
    )
    for kind in draw(st.lists(kinds, min_size=1, max_size=60)):
        symbol = draw(SYMBOL)
        tape.wait(draw(WAIT))
        if kind == "delta":
            changes = draw(st.lists(st.tuples(SIDE, PRICES, QUANTITIES), min_size=1, max_size=5))
            tape.deltas(symbol, *changes)
        elif kind == "open":  # a message whose end another message brings
            tape.deltas(symbol, (draw(SIDE), draw(PRICES), draw(QUANTITIES)), end=False)
            tape.trade(symbol, draw(SIDE), draw(PRICES), draw(st.integers(1, 60)), end=False)
        elif kind == "trade":
            side = draw(st.sampled_from([Side.BID, Side.ASK, Side.NONE]))
            tape.trade(symbol, side, draw(PRICES), draw(st.integers(1, 60)))
        elif kind == "quote":
            bid = (draw(PRICES), draw(QUANTITIES))
            ask = (bid[0] + draw(st.integers(0, 5)), draw(QUANTITIES))
            tape.quote(symbol, bid, ask, ahead=draw(st.integers(-2, 2)))
        elif kind == "status":
            tape.status(symbol, draw(st.sampled_from(TradingStatus)))
        elif kind == "gap":
            tape.gap(symbol, draw(st.sampled_from(GapReason)))
        elif kind == "snapshot":
            tape.snapshot(symbol, draw(levels(100, -1)), draw(levels(100, 1)))
        elif kind == "order":
            tape.order(symbol, draw(st.sampled_from([TickKind.ORDER_ADD, TickKind.ORDER_CANCEL])), Side.BID, 100, 5)
        else:
            tape.barrier(draw(st.integers(1, 9)))
    return tape.ticks


def check(record: np.void, expected: Record) -> None:
    """Compare one record with the twin's."""
    assert int(record["kind"]) == expected.kind
    if expected.kind is RowKind.BARRIER:
        return
    found = {name: int(record[name]) for name in ("symbol_id", "row_sequence", "valid_from", "trading", "reason")}
    assert found == {
        "symbol_id": expected.symbol,
        "row_sequence": expected.row_sequence,
        "valid_from": expected.valid_from,
        "trading": expected.trading,
        "reason": expected.reason,
    }
    if expected.kind is RowKind.ROW:
        assert (int(record["bid_price_units"]), int(record["ask_price_units"])) == (expected.bid, expected.ask)
        assert int(record["receive_time_ns"]) == expected.receive_time_ns
        np.testing.assert_allclose(record["features"], expected.features, rtol=TOLERANCE, atol=TOLERANCE)


@settings(max_examples=150, deadline=None)
@given(tapes(), st.integers(1, 50))
def test_kernels_any_ticks_agree_with_the_recompute(ticks, chunk):
    """T1 to T4, V1, V2, R1: every record of every kind, whatever the ticks and however they are cut into chunks."""
    chunks = [ticks[i : i + chunk] for i in range(0, len(ticks), chunk)]
    records = list(rows_from_ticks(chunks, SYMBOLS))
    expected = reference_records(ticks, SYMBOLS)
    assert sum(map(len, records)) == len(expected)
    for record, twin in zip(np.concatenate(records) if records else [], expected, strict=True):
        check(record, twin)
