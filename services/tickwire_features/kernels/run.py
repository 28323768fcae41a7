"""The statistics of a run: what the last eight features of a row are made of. Formulas: `tickwire.records.features`.

Functions of one symbol's record and the levels in hand, O(1) an event.

R1  A run starts empty; nothing of an earlier one reaches into it.
R2  Sums decay by exp(-dt / tau) between events: rounding errors decay with them, so that they stay within 1e-6 of a
    recompute after any number of updates. Squares and traded quantities are only ever added: never negative.
R3  Typical quantities are convex means of positive quantities: never 0 once there was an event with a level.
"""

from __future__ import annotations

import math

from numba import float64, int64, void

from tickwire.kernel import inlined, kernel
from tickwire.records.features import FAST_TAU_NS, FLOW_LEVELS, SLOW_TAU_NS, TYPICAL_EVENTS
from tickwire_features.kernels.desk import SYMBOL_TYPE, WORK_TYPE
from tickwire_features.state import ASK_PRICE, ASK_QUANTITY, BID_PRICE, BID_QUANTITY


@inlined
def _mean(mean, value, count):
    # Running mean; plain over the first TYPICAL_EVENTS values, exponential from there on (R3).
    return mean + (value - mean) / min(count, TYPICAL_EVENTS)


@inlined
def _mean_quantity(work):
    levels = work.levels
    total = 0.0
    for i in range(work.bids):
        total += float64(levels[BID_QUANTITY, i])
    for i in range(work.asks):
        total += float64(levels[ASK_QUANTITY, i])
    return total / (work.bids + work.asks)


@inlined
def _side_flow(present, price, quantity, present_before, price_before, quantity_before):
    # Prices such that higher is better; a side without the level has the worst of all prices and no quantity.
    flow = 0.0
    if present and (not present_before or price >= price_before):
        flow += float64(quantity)
    if present_before and (not present or price <= price_before):
        flow -= float64(quantity_before)
    return flow


@inlined
def _level_flow(symbol, work, i):
    # e_i of Cont, Kukanov, Stoikov 2014.
    levels = work.levels
    before = symbol.before
    return _side_flow(
        i < work.bids,
        levels[BID_PRICE, i],
        levels[BID_QUANTITY, i],
        i < symbol.bids_before,
        before[BID_PRICE, i],
        before[BID_QUANTITY, i],
    ) - _side_flow(
        i < work.asks,
        -levels[ASK_PRICE, i],
        levels[ASK_QUANTITY, i],
        i < symbol.asks_before,
        -before[ASK_PRICE, i],
        before[ASK_QUANTITY, i],
    )


@inlined
def _squared_return(symbol, work):
    twice_mid = float64(work.levels[BID_PRICE, 0]) + float64(work.levels[ASK_PRICE, 0])
    twice_mid_before = float64(symbol.before[BID_PRICE, 0]) + float64(symbol.before[ASK_PRICE, 0])
    return math.log1p((twice_mid - twice_mid_before) / twice_mid_before) ** 2


@kernel(void(SYMBOL_TYPE, int64))
def start_run(symbol, time_ns):
    """Forget the run (R1); the next event's age counts from `time_ns`, and no event is before it."""
    symbol.events = 0
    symbol.trades = 0
    symbol.run_time_ns = time_ns
    symbol.pending_signed = 0
    symbol.pending_traded = 0
    symbol.flow_top = 0.0
    symbol.flow_levels = 0.0
    symbol.signed_fast = 0.0
    symbol.signed_slow = 0.0
    symbol.traded_slow = 0.0
    symbol.squared_returns = 0.0
    symbol.typical = 0.0
    symbol.typical_trade = 0.0
    symbol.has_before = 0


@kernel(void(SYMBOL_TYPE, WORK_TYPE))
def remember(symbol, work):
    """Keep the levels in hand as those of the event before."""
    for row in range(4):
        for i in range(FLOW_LEVELS):
            symbol.before[row, i] = work.levels[row, i]
    symbol.bids_before = work.bids
    symbol.asks_before = work.asks
    symbol.has_before = 1


@kernel(void(SYMBOL_TYPE, int64, int64))
def add_trade(symbol, sign, quantity_units):
    """Count a trade for the event that it belongs to; `sign` is 1 bought, -1 sold, 0 unknown (traded only)."""
    symbol.trades += 1
    symbol.typical_trade = _mean(symbol.typical_trade, float64(quantity_units), symbol.trades)
    symbol.pending_signed += sign * quantity_units
    symbol.pending_traded += quantity_units


@kernel(void(SYMBOL_TYPE, WORK_TYPE, int64))
def add_event(symbol, work, time_ns):
    """Take one event into the run: let the sums decay up to it, then add what it brought.

    Args:
        symbol: The symbol; what belongs to the event before is replaced by `finish_event` only.
        work: With the event's levels, two-sided and not crossed.
        time_ns: Receive time of the event.
    """
    symbol.events += 1
    symbol.typical = _mean(symbol.typical, _mean_quantity(work), symbol.events)
    flow_top = 0.0
    flow_levels = 0.0
    squared_return = 0.0
    if symbol.has_before != 0:
        flow_top = _level_flow(symbol, work, 0)
        flow_levels = flow_top
        for i in range(1, FLOW_LEVELS):
            flow_levels += _level_flow(symbol, work, i)
        squared_return = _squared_return(symbol, work)
    elapsed_ns = float64(max(time_ns - symbol.run_time_ns, 0))
    fast = math.exp(-elapsed_ns / FAST_TAU_NS)
    slow = math.exp(-elapsed_ns / SLOW_TAU_NS)
    signed = float64(symbol.pending_signed)
    symbol.flow_top = symbol.flow_top * fast + flow_top
    symbol.flow_levels = symbol.flow_levels * fast + flow_levels / FLOW_LEVELS
    symbol.signed_fast = symbol.signed_fast * fast + signed
    symbol.signed_slow = symbol.signed_slow * slow + signed
    symbol.traded_slow = symbol.traded_slow * slow + float64(symbol.pending_traded)
    symbol.squared_returns = symbol.squared_returns * slow + squared_return


@inlined
def is_finite(symbol):
    """Say whether every sum is finite; an infinite divisor would hide behind a feature that is exactly 0."""
    return math.isfinite(
        symbol.flow_top
        + symbol.flow_levels
        + symbol.signed_fast
        + symbol.signed_slow
        + symbol.traded_slow
        + symbol.squared_returns
        + symbol.typical
        + symbol.typical_trade
    )


@kernel(void(SYMBOL_TYPE, WORK_TYPE, int64))
def finish_event(symbol, work, time_ns):
    """Make the event the one before, once its row has been computed."""
    remember(symbol, work)
    symbol.pending_signed = 0
    symbol.pending_traded = 0
    symbol.run_time_ns = max(symbol.run_time_ns, time_ns)
