"""F3 and F11: sums stay right over ten million updates, on flat markets and with hardly any events."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tick_tape import TickTape
from tickwire.records import Side
from tickwire.records.features import FAST_TAU_NS, FEATURE_NAMES, SLOW_TAU_NS, TYPICAL_EVENTS
from tickwire_features.kernels.row import fill_row
from tickwire_features.kernels.run import add_event, add_trade, finish_event, start_run
from tickwire_features.offline import rows_from_ticks
from tickwire_features.state import SYMBOL, WORK

UPDATES = 10_000_000
CHECK_EVERY = 100_000
KEPT = 400_000  # events that a recompute sums over: at 1 ms each, e^-40 of the oldest is left
ERROR = 1e-6
CENTRE = 5_000_000  # 50,000.00


@njit(nogil=True)
def feed(symbol, work, row, times, bids, asks, bid_quantities, ask_quantities, trades):
    """Feed events with one level a side; return how many rows were not finite."""
    bad = 0
    for i in range(len(times)):
        work.bids = 1
        work.asks = 1
        work.levels[0, 0] = bids[i]
        work.levels[1, 0] = bid_quantities[i]
        work.levels[2, 0] = asks[i]
        work.levels[3, 0] = ask_quantities[i]
        if trades[i] != 0:
            add_trade(symbol, 1 if trades[i] > 0 else -1, abs(trades[i]))
        add_event(symbol, work, times[i])
        if not fill_row(row, symbol, work, times[i]):
            bad += 1
        finish_event(symbol, work, times[i])
    return bad


def recompute(times, bids, asks, bid_quantities, ask_quantities, trades):
    """The sums from the newest events alone, by their definitions, and what signed ones are made of."""
    age = (times[-1] - times).astype(np.float64)
    fast, slow = np.exp(-age / FAST_TAU_NS), np.exp(-age / SLOW_TAU_NS)
    up, down = bids[1:] >= bids[:-1], bids[1:] <= bids[:-1]
    flow = up * bid_quantities[1:] - down * bid_quantities[:-1]
    up, down = asks[1:] >= asks[:-1], asks[1:] <= asks[:-1]
    flow = flow - down * ask_quantities[1:] + up * ask_quantities[:-1]
    mid = (bids + asks).astype(np.float64)
    mean_quantities = (bid_quantities + ask_quantities) / 2
    weights = (1 - 1 / TYPICAL_EVENTS) ** np.arange(len(times) - 1, -1, -1) / TYPICAL_EVENTS
    return {
        "flow_top": (flow * fast[1:]).sum(),
        "flow_levels": (flow / 5 * fast[1:]).sum(),
        "signed_fast": (trades * fast).sum(),
        "signed_slow": (trades * slow).sum(),
        "traded_slow": (np.abs(trades) * slow).sum(),
        "squared_returns": (np.log1p(np.diff(mid) / mid[:-1]) ** 2 * slow[1:]).sum(),
        "typical": (mean_quantities * weights).sum(),
    }, {
        "flow_top": (np.abs(flow) * fast[1:]).sum(),
        "flow_levels": (np.abs(flow) / 5 * fast[1:]).sum(),
        "signed_fast": (np.abs(trades) * fast).sum(),
        "signed_slow": (np.abs(trades) * slow).sum(),
    }


@pytest.mark.slow
def test_sums_ten_million_updates_stay_within_1e6_of_a_recompute():
    """R2, F3: every sum, compared every 100,000 updates; signed sums relative to the size of what they add up."""
    random = np.random.default_rng(11)
    symbol, work, row = np.zeros(1, dtype=SYMBOL), np.zeros(1, dtype=WORK), np.zeros(48, dtype=np.float32)
    start_run(symbol[0], 0)
    columns = [np.zeros(0, dtype=np.int64)] * 6
    clock = 1_700_000_000_000_000_000
    worst = 0.0
    for _ in range(UPDATES // CHECK_EVERY):
        steps = random.integers(0, 2_000_000, CHECK_EVERY)
        bids = CENTRE - 1 + random.integers(-1, 1, CHECK_EVERY)
        asks = bids + random.integers(1, 3, CHECK_EVERY)
        quantities = random.integers(1, 1_000_000, (2, CHECK_EVERY))
        trades = random.integers(-500_000, 500_000, CHECK_EVERY) * (random.random(CHECK_EVERY) < 0.3)
        batch = [clock + np.cumsum(steps), bids, asks, *quantities, trades]
        clock = int(batch[0][-1])
        assert feed(symbol[0], work[0], row, *batch) == 0
        columns = [np.concatenate([old, new])[-KEPT:] for old, new in zip(columns, batch, strict=True)]
        if len(columns[0]) == KEPT:
            expected, scales = recompute(*columns)
            for name, value in expected.items():
                error = abs(float(symbol[name][0]) - float(value)) / float(scales.get(name, value))
                worst = max(worst, error)
    assert worst < ERROR


def test_flat_market_after_a_lively_one_gives_zeros_and_no_negative_variance():
    """F3: what does not happen fades to 0 as documented; nothing turns negative, tiny or infinite."""
    symbol, work, row = np.zeros(1, dtype=SYMBOL), np.zeros(1, dtype=WORK), np.zeros(48, dtype=np.float32)
    start_run(symbol[0], 0)
    n = 10_000
    times = np.arange(n) * 100_000_000
    steps = np.arange(n) % 2
    bids, flat = CENTRE + steps, np.full(n, CENTRE)
    quantities, none = np.full(n, 7), np.zeros(n, dtype=np.int64)
    assert feed(symbol[0], work[0], row, times, bids, bids + 2, quantities + steps, quantities, steps + 1) == 0
    lively = dict(zip(FEATURE_NAMES, row.tolist(), strict=True))
    assert lively["realised_volatility"] > 0 < lively["trade_imbalance"]
    assert feed(symbol[0], work[0], row, times[-1] + times, flat, flat + 1, quantities, quantities, none) == 0
    values = dict(zip(FEATURE_NAMES, row.tolist(), strict=True))
    for name in ("realised_volatility", "order_flow_top", "order_flow_levels", "signed_volume", "trade_imbalance"):
        assert 0.0 <= values[name] < 1e-20, name
    assert values["microprice_offset"] == values["spread"] == 0.0
    assert abs(values["bid_size_1"] - np.log(2.0)) < 1e-6


def test_rare_symbol_among_busy_ones_has_defined_rows_with_their_age():
    """F11: empty time windows read 0, typical quantities are held, and the age says how old all of it is."""
    minute = 60_000_000_000
    tape = TickTape()
    for symbol in range(16):
        tape.snapshot(symbol, [(100, 5), (99, 5)], [(101, 5), (102, 5)])
    for i in range(6):
        for turn in range(40):
            tape.wait(minute // 40 // 15).trade(1 + (turn + i) % 15, Side.BID, 101, 2)
        tape.time_ns = 1_000_000_000_000 + (i + 1) * minute
        tape.trade(0, Side.BID, 101, 10) if i == 0 else tape.deltas(0, (Side.BID, 90, 1 + i))
    records = np.concatenate(list(rows_from_ticks([tape.ticks], 16)))
    assert np.isfinite(records["features"]).all()
    rare = records[records["symbol_id"] == 0]
    assert len(rare) == 6
    column = FEATURE_NAMES.index
    np.testing.assert_allclose(rare["features"][:, column("event_age")], np.log1p(60_000.0), rtol=1e-6)
    signed = rare["features"][:, column("signed_volume")]
    assert signed[0] > 0.5
    assert (np.abs(signed[1:]) < 1e-12).all()
    imbalance = rare["features"][:, column("trade_imbalance")]
    assert imbalance[0] == 0.5
    assert (np.diff(imbalance) < 0).all()
    assert imbalance[1] < 0.01
    alone = tape.ticks[tape.ticks["symbol_id"] != 0]
    busy = np.concatenate(list(rows_from_ticks([alone], 16)))
    assert (busy["features"] == records[records["symbol_id"] != 0]["features"]).all()
