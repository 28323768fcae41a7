"""One row: the 48 features of the levels in hand and a run, in the order of `tickwire.records.features.FEATURES`.

Computed in float64, stored as float32.
"""

from __future__ import annotations

import math

from numba import boolean, float32, float64, int64

from tickwire.kernel import inlined, kernel
from tickwire.records.features import AGE_UNIT_NS, BASIS_POINTS, FEATURE_NAMES, LEVELS
from tickwire_features.kernels.desk import SYMBOL_TYPE, WORK_TYPE
from tickwire_features.kernels.run import is_finite
from tickwire_features.state import ASK_PRICE, ASK_QUANTITY, BID_PRICE, BID_QUANTITY

_N_FEATURES = len(FEATURE_NAMES)
_ORDER_FLOW_TOP = FEATURE_NAMES.index("order_flow_top")
_ORDER_FLOW_LEVELS = FEATURE_NAMES.index("order_flow_levels")
_TRADE_IMBALANCE = FEATURE_NAMES.index("trade_imbalance")
_SIGNED_VOLUME = FEATURE_NAMES.index("signed_volume")
_MICROPRICE_OFFSET = FEATURE_NAMES.index("microprice_offset")
_SPREAD = FEATURE_NAMES.index("spread")
_REALISED_VOLATILITY = FEATURE_NAMES.index("realised_volatility")
_EVENT_AGE = FEATURE_NAMES.index("event_age")


@inlined
def _offset(price, twice_mid):
    # (price - mid) / mid in basis points.
    return BASIS_POINTS * (2.0 * float64(price) - twice_mid) / twice_mid


@inlined
def _signed_log(value):
    return math.copysign(math.log1p(abs(value)), value)


@inlined
def _fill_levels(row, work, typical):
    levels = work.levels
    bids = work.bids
    asks = work.asks
    twice_mid = float64(levels[BID_PRICE, 0]) + float64(levels[ASK_PRICE, 0])
    for i in range(LEVELS):
        row[4 * i] = _offset(levels[BID_PRICE, min(i, bids - 1)], twice_mid)
        row[4 * i + 1] = math.log1p(float64(levels[BID_QUANTITY, i]) / typical) if i < bids else 0.0
        row[4 * i + 2] = _offset(levels[ASK_PRICE, min(i, asks - 1)], twice_mid)
        row[4 * i + 3] = math.log1p(float64(levels[ASK_QUANTITY, i]) / typical) if i < asks else 0.0


@inlined
def _fill_top(row, work):
    levels = work.levels
    bid_quantity = float64(levels[BID_QUANTITY, 0])
    row[_MICROPRICE_OFFSET] = bid_quantity / (bid_quantity + float64(levels[ASK_QUANTITY, 0])) - 0.5
    row[_SPREAD] = math.log(float64(levels[ASK_PRICE, 0]) - float64(levels[BID_PRICE, 0]))


@inlined
def _fill_run(row, symbol, time_ns):
    row[_ORDER_FLOW_TOP] = _signed_log(symbol.flow_top / symbol.typical)
    row[_ORDER_FLOW_LEVELS] = _signed_log(symbol.flow_levels / symbol.typical)
    imbalance = 0.0
    if symbol.trades > 0:
        imbalance = symbol.signed_slow / (symbol.traded_slow + symbol.typical_trade)
    row[_TRADE_IMBALANCE] = imbalance
    row[_SIGNED_VOLUME] = _signed_log(symbol.signed_fast / symbol.typical)
    row[_REALISED_VOLATILITY] = BASIS_POINTS * math.sqrt(symbol.squared_returns)
    row[_EVENT_AGE] = math.log1p(float64(max(time_ns - symbol.run_time_ns, 0)) / AGE_UNIT_NS)


@kernel(boolean(float32[::1], SYMBOL_TYPE, WORK_TYPE, int64))
def fill_row(row, symbol, work, time_ns):
    """Compute the row of an event that `add_event` has taken into the run, and `finish_event` has not yet.

    Args:
        row: Filled, shape (48,).
        symbol: The symbol.
        work: With the event's levels, two-sided and not crossed.
        time_ns: Receive time of the event.

    Returns:
        Whether every value, and every sum behind it, is finite; if one is not, the whole row is zeros.
    """
    _fill_levels(row, work, symbol.typical)
    _fill_top(row, work)
    _fill_run(row, symbol, time_ns)
    finite = is_finite(symbol)
    for k in range(_N_FEATURES):
        finite &= math.isfinite(row[k])
    if not finite:
        for k in range(_N_FEATURES):
            row[k] = 0.0
    return finite
