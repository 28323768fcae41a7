"""One row: the 48 features of a view and a run, in the order of `tickwire.records.features.FEATURES`.

Pure functions on arrays. `fill_row` computes in float64 and stores float32.
"""

from __future__ import annotations

import math

from numba import boolean, float32, float64, int64

from tickwire.kernel import inlined, kernel
from tickwire.records.features import AGE_UNIT_NS, BASIS_POINTS, FEATURE_NAMES, LEVELS
from tickwire_features.kernels.run import LEVELS_TYPE, MARKS_TYPE, SUMS_TYPE
from tickwire_features.state import (
    RUN_TIME,
    SUM_FLOW_LEVELS,
    SUM_FLOW_TOP,
    SUM_SIGNED_FAST,
    SUM_SIGNED_SLOW,
    SUM_SQUARED_RETURNS,
    SUM_TRADED_SLOW,
    TRADES,
    TYPICAL,
    TYPICAL_TRADE,
    VIEW_ASK_PRICE,
    VIEW_ASK_QUANTITY,
    VIEW_BID_PRICE,
    VIEW_BID_QUANTITY,
)

ROW_TYPE = float32[::1]

_ORDER_FLOW_TOP = FEATURE_NAMES.index("order_flow_top")
_ORDER_FLOW_LEVELS = FEATURE_NAMES.index("order_flow_levels")
_TRADE_IMBALANCE = FEATURE_NAMES.index("trade_imbalance")
_SIGNED_VOLUME = FEATURE_NAMES.index("signed_volume")
_MICROPRICE_OFFSET = FEATURE_NAMES.index("microprice_offset")
_SPREAD = FEATURE_NAMES.index("spread")
_REALISED_VOLATILITY = FEATURE_NAMES.index("realised_volatility")
_EVENT_AGE = FEATURE_NAMES.index("event_age")
_N_FEATURES = len(FEATURE_NAMES)


@inlined
def _offset(price, bid, ask):
    # (price - mid) / mid in basis points, with mid = (bid + ask) / 2.
    return BASIS_POINTS * (2.0 * float64(price) - (bid + ask)) / (bid + ask)


@inlined
def _signed_log(value):
    return math.copysign(math.log1p(abs(value)), value)


@kernel(boolean(ROW_TYPE, SUMS_TYPE, MARKS_TYPE, LEVELS_TYPE, int64, int64, int64))
def fill_row(row, sums, marks, view, bids, asks, time_ns):
    """Compute the row of an event that `add_event` has taken into the run.

    Args:
        row: Filled, shape (48,).
        sums: The symbol's sums.
        marks: The symbol's counts and times, `RUN_TIME` still that of the event before.
        view: Levels now, two-sided and not crossed.
        bids: Levels of the bid side, at least 1.
        asks: Levels of the ask side, at least 1.
        time_ns: Receive time of the event.

    Returns:
        Whether every value is finite; if one is not, the whole row is zeros.
    """
    typical = sums[TYPICAL]
    bid = float64(view[VIEW_BID_PRICE, 0])
    ask = float64(view[VIEW_ASK_PRICE, 0])
    for i in range(LEVELS):
        b = min(i, bids - 1)
        a = min(i, asks - 1)
        row[4 * i] = _offset(view[VIEW_BID_PRICE, b], bid, ask)
        row[4 * i + 1] = math.log1p(float64(view[VIEW_BID_QUANTITY, i]) / typical) if i < bids else 0.0
        row[4 * i + 2] = _offset(view[VIEW_ASK_PRICE, a], bid, ask)
        row[4 * i + 3] = math.log1p(float64(view[VIEW_ASK_QUANTITY, i]) / typical) if i < asks else 0.0
    row[_ORDER_FLOW_TOP] = _signed_log(sums[SUM_FLOW_TOP] / typical)
    row[_ORDER_FLOW_LEVELS] = _signed_log(sums[SUM_FLOW_LEVELS] / typical)
    imbalance = 0.0
    if marks[TRADES] > 0:
        imbalance = sums[SUM_SIGNED_SLOW] / (sums[SUM_TRADED_SLOW] + sums[TYPICAL_TRADE])
    row[_TRADE_IMBALANCE] = imbalance
    row[_SIGNED_VOLUME] = _signed_log(sums[SUM_SIGNED_FAST] / typical)
    bid_quantity = float64(view[VIEW_BID_QUANTITY, 0])
    row[_MICROPRICE_OFFSET] = bid_quantity / (bid_quantity + float64(view[VIEW_ASK_QUANTITY, 0])) - 0.5
    row[_SPREAD] = math.log(ask - bid)
    row[_REALISED_VOLATILITY] = BASIS_POINTS * math.sqrt(sums[SUM_SQUARED_RETURNS])
    row[_EVENT_AGE] = math.log1p(float64(max(time_ns - marks[RUN_TIME], 0)) / AGE_UNIT_NS)
    for k in range(_N_FEATURES):
        if not math.isfinite(row[k]):
            for j in range(_N_FEATURES):
                row[j] = 0.0
            return False
    return True
