"""The statistics of a run: what the last eight features of a row are made of. Formulas: `tickwire.records.features`.

Pure functions on arrays, O(1) an event.

R1  A run starts empty; nothing of an earlier one reaches into it.
R2  Sums decay by exp(-dt / tau) between events: rounding errors decay with them, so that they stay within 1e-6 of a
    recompute after any number of updates. Squares and traded quantities are only ever added: never negative.
R3  Typical quantities are convex means of positive quantities: never 0 once there was an event with a level.
"""

from __future__ import annotations

import math

from numba import boolean, float64, int64, void

from tickwire.kernel import inlined, kernel
from tickwire.records.features import FAST_TAU_NS, FLOW_LEVELS, SLOW_TAU_NS, TYPICAL_EVENTS
from tickwire_features.state import (
    ASKS_BEFORE,
    BEFORE_LEVELS,
    BIDS_BEFORE,
    EVENTS,
    HAS_BEFORE,
    MARKS,
    PENDING_SIGNED,
    PENDING_TRADED,
    RUN_TIME,
    SUM_FLOW_LEVELS,
    SUM_FLOW_TOP,
    SUM_SIGNED_FAST,
    SUM_SIGNED_SLOW,
    SUM_SQUARED_RETURNS,
    SUM_TRADED_SLOW,
    SUMS,
    TRADES,
    TYPICAL,
    TYPICAL_TRADE,
    VIEW_ASK_PRICE,
    VIEW_ASK_QUANTITY,
    VIEW_BID_PRICE,
    VIEW_BID_QUANTITY,
    VIEW_ROWS,
)

SUMS_TYPE = float64[::1]
MARKS_TYPE = int64[::1]
LEVELS_TYPE = int64[:, ::1]


@inlined
def _mean(mean, value, count):
    # Running mean; plain over the first TYPICAL_EVENTS values, exponential from there on (R3).
    return mean + (value - mean) / min(count, TYPICAL_EVENTS)


@inlined
def _mean_quantity(view, bids, asks):
    total = 0.0
    for i in range(bids):
        total += float64(view[VIEW_BID_QUANTITY, i])
    for i in range(asks):
        total += float64(view[VIEW_ASK_QUANTITY, i])
    return total / (bids + asks)


@inlined
def _level_flow(before, marks, view, bids, asks, i):
    # e_i of Cont, Kukanov, Stoikov 2014; a side without the level has the worst of all prices and no quantity.
    flow = _side_flow(
        boolean(i < bids),
        view[VIEW_BID_PRICE, i],
        view[VIEW_BID_QUANTITY, i],
        boolean(i < marks[BIDS_BEFORE]),
        before[VIEW_BID_PRICE, i],
        before[VIEW_BID_QUANTITY, i],
    )
    return flow - _side_flow(
        boolean(i < asks),
        -view[VIEW_ASK_PRICE, i],
        view[VIEW_ASK_QUANTITY, i],
        boolean(i < marks[ASKS_BEFORE]),
        -before[VIEW_ASK_PRICE, i],
        before[VIEW_ASK_QUANTITY, i],
    )


@inlined
def _side_flow(present, price, quantity, present_before, price_before, quantity_before):
    # Prices such that higher is better.
    flow = 0.0
    if present and (not present_before or price >= price_before):
        flow += float64(quantity)
    if present_before and (not present or price <= price_before):
        flow -= float64(quantity_before)
    return flow


@kernel(void(SUMS_TYPE, MARKS_TYPE, int64))
def start_run(sums, marks, time_ns):
    """Forget everything of a symbol (R1).

    Args:
        sums: The symbol's sums.
        marks: The symbol's counts and times.
        time_ns: Receive time from which the first event's age counts.
    """
    for i in range(SUMS):
        sums[i] = 0.0
    for i in range(MARKS):
        marks[i] = 0
    marks[RUN_TIME] = time_ns


@kernel(void(LEVELS_TYPE, MARKS_TYPE, LEVELS_TYPE, int64, int64))
def remember(before, marks, view, bids, asks):
    """Keep the levels of a view as those of the event before."""
    for row in range(VIEW_ROWS):
        for i in range(BEFORE_LEVELS):
            before[row, i] = view[row, i]
    marks[BIDS_BEFORE] = bids
    marks[ASKS_BEFORE] = asks
    marks[HAS_BEFORE] = 1


@kernel(void(SUMS_TYPE, MARKS_TYPE, int64, int64))
def add_trade(sums, marks, sign, quantity_units):
    """Count a trade for the event that it belongs to.

    Args:
        sums: The symbol's sums.
        marks: The symbol's counts and times.
        sign: 1 bought, -1 sold, 0 unknown (counts as traded only).
        quantity_units: Quantity of the print.
    """
    marks[TRADES] += 1
    sums[TYPICAL_TRADE] = _mean(sums[TYPICAL_TRADE], float64(quantity_units), marks[TRADES])
    marks[PENDING_SIGNED] += sign * quantity_units
    marks[PENDING_TRADED] += quantity_units


@kernel(void(SUMS_TYPE, MARKS_TYPE, LEVELS_TYPE, LEVELS_TYPE, int64, int64, int64))
def add_event(sums, marks, before, view, bids, asks, time_ns):
    """Take one event into the run: let the sums decay up to it, then add what it brought.

    Args:
        sums: The symbol's sums.
        marks: The symbol's counts and times; `RUN_TIME` is moved to the event by `finish_event`.
        before: Levels of the event before.
        view: Levels now, two-sided and not crossed.
        bids: Levels of the bid side in `view`, at least 1.
        asks: Levels of the ask side in `view`, at least 1.
        time_ns: Receive time of the event.
    """
    marks[EVENTS] += 1
    sums[TYPICAL] = _mean(sums[TYPICAL], _mean_quantity(view, bids, asks), marks[EVENTS])
    elapsed_ns = float64(max(time_ns - marks[RUN_TIME], 0))
    fast = math.exp(-elapsed_ns / FAST_TAU_NS)
    slow = math.exp(-elapsed_ns / SLOW_TAU_NS)
    flow_top = 0.0
    flow_levels = 0.0
    squared_return = 0.0
    if marks[HAS_BEFORE] != 0:
        flow_top = _level_flow(before, marks, view, bids, asks, 0)
        flow_levels = flow_top
        for i in range(1, FLOW_LEVELS):
            flow_levels += _level_flow(before, marks, view, bids, asks, i)
        twice_mid = float64(view[VIEW_BID_PRICE, 0]) + float64(view[VIEW_ASK_PRICE, 0])
        twice_mid_before = float64(before[VIEW_BID_PRICE, 0]) + float64(before[VIEW_ASK_PRICE, 0])
        squared_return = math.log(twice_mid / twice_mid_before) ** 2
    signed = float64(marks[PENDING_SIGNED])
    sums[SUM_FLOW_TOP] = sums[SUM_FLOW_TOP] * fast + flow_top
    sums[SUM_FLOW_LEVELS] = sums[SUM_FLOW_LEVELS] * fast + flow_levels / FLOW_LEVELS
    sums[SUM_SIGNED_FAST] = sums[SUM_SIGNED_FAST] * fast + signed
    sums[SUM_SIGNED_SLOW] = sums[SUM_SIGNED_SLOW] * slow + signed
    sums[SUM_TRADED_SLOW] = sums[SUM_TRADED_SLOW] * slow + float64(marks[PENDING_TRADED])
    sums[SUM_SQUARED_RETURNS] = sums[SUM_SQUARED_RETURNS] * slow + squared_return


@kernel(void(MARKS_TYPE, LEVELS_TYPE, LEVELS_TYPE, int64, int64, int64))
def finish_event(marks, before, view, bids, asks, time_ns):
    """Make the event the one before, once its row has been computed."""
    remember(before, marks, view, bids, asks)
    marks[PENDING_SIGNED] = 0
    marks[PENDING_TRADED] = 0
    marks[RUN_TIME] = max(marks[RUN_TIME], time_ns)
