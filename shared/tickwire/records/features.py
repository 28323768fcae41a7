"""The feature table: name, formula, unit and source of each of the 48 values of a row, in their order.

`tickwire_features` computes them, models are trained on them; both ends compare `feature_hash`. All are raw and
dimensionless. Words used by the formulas, per symbol:

- bid_i, ask_i, qbid_i, qask_i: price and quantity of level i, 1 the best; mid = (bid_1 + ask_1) / 2.
- A *run* starts with a complete snapshot (or behind a row that was not finite) and ends with the next gap, snapshot or
  trading halt. Nothing reaches back beyond the run's start.
- event: a venue message of level deltas, quotes or trades that ends while the book is valid, two-sided and not crossed.
- D[x; tau] = sum over the run's events j of x_j exp(-(t - t_j) / tau), where t is the receive time of an event, or the
  latest one before it if receive times run backwards. A sum of nothing is 0, and an old one fades to 0.
- typical: running mean, over the run's events and the current one included, of the mean quantity of the levels that
  are present; each event weighs 1/n while n events are fewer than `TYPICAL_EVENTS`, then 1/`TYPICAL_EVENTS`.
- typical_trade: the same mean of the quantities of trades; 0 before the run's first trade.
- slog(x) = sign(x) ln(1 + |x|).

A level that the book does not have takes the price of the deepest level of its side and quantity 0.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tickwire.records.row import N_FEATURES

LEVELS = 10
"""Levels a side in a row."""

FLOW_LEVELS = 5
"""Levels of the multi-level order-flow imbalance."""

FAST_TAU_NS = 1_000_000_000
"""Decay time of order flow and signed volume."""

SLOW_TAU_NS = 10_000_000_000
"""Decay time of the trade imbalance and of the realised volatility."""

TYPICAL_EVENTS = 1_000
"""Events over which typical quantities average."""

AGE_UNIT_NS = 1_000_000
"""Unit of the time since the last event, before its logarithm."""

BASIS_POINTS = 10_000.0
"""Basis points in 1."""


@dataclass(frozen=True)
class Feature:
    """One column of a row."""

    name: str
    formula: str
    unit: str
    source: str


_BOOK = "Zhang, Zohren, Roberts 2019, DeepLOB: ten levels of price and size a side"
_FAST = f"{FAST_TAU_NS / 1e9:g} s"
_SLOW = f"{SLOW_TAU_NS / 1e9:g} s"


def _level(i: int) -> tuple[Feature, Feature, Feature, Feature]:
    size = f"ln(1 + q{{side}}_{i} / typical), typical over {TYPICAL_EVENTS} events"
    return (
        Feature(f"bid_price_{i}", f"1e4 (bid_{i} - mid) / mid", "basis points of mid", _BOOK),
        Feature(f"bid_size_{i}", size.format(side="bid"), "log of typical quantities", _BOOK),
        Feature(f"ask_price_{i}", f"1e4 (ask_{i} - mid) / mid", "basis points of mid", _BOOK),
        Feature(f"ask_size_{i}", size.format(side="ask"), "log of typical quantities", _BOOK),
    )


FEATURES: tuple[Feature, ...] = (
    *(feature for i in range(1, LEVELS + 1) for feature in _level(i)),
    Feature(
        "order_flow_top",
        f"slog(D[e_1; {_FAST}] / typical), e_i = [bid_i >= bid_i'] qbid_i - [bid_i <= bid_i'] qbid_i'"
        " - [ask_i <= ask_i'] qask_i + [ask_i >= ask_i'] qask_i', ' the event before; no level counts as worst of all",
        "signed log of typical quantities",
        "Cont, Kukanov, Stoikov 2014, The price impact of order book events, section 2",
    ),
    Feature(
        "order_flow_levels",
        f"slog(D[(e_1 + ... + e_{FLOW_LEVELS}) / {FLOW_LEVELS}; {_FAST}] / typical)",
        "signed log of typical quantities",
        "Xu, Gould, Howison 2018, Multi-level order-flow imbalance in a limit order book",
    ),
    Feature(
        "trade_imbalance",
        f"D[bought - sold; {_SLOW}] / (D[bought + sold; {_SLOW}] + typical_trade), 0 before the first trade",
        "ratio, -1 to 1",
        "Chordia, Roll, Subrahmanyam 2002, Order imbalance, liquidity and market returns; shrunk by one typical trade",
    ),
    Feature(
        "signed_volume",
        f"slog(D[bought - sold; {_FAST}] / typical)",
        "signed log of typical quantities",
        "Hasbrouck 1991, Measuring the information content of stock trades: signed trade volume",
    ),
    Feature(
        "microprice_offset",
        "(weighted mid - mid) / (ask_1 - bid_1), weighted mid = (bid_1 qask_1 + ask_1 qbid_1) / (qbid_1 + qask_1)",
        "spreads, -0.5 to 0.5",
        "Stoikov 2018, The micro-price: the weighted mid, the estimator that it refines",
    ),
    Feature(
        "spread",
        "ln((ask_1 - bid_1) / price_increment)",
        "log of price increments, 0 for one increment",
        "Bouchaud, Bonart, Donier, Gould 2018, Trades, Quotes and Prices, chapter 4: large- and small-tick markets",
    ),
    Feature(
        "realised_volatility",
        f"1e4 sqrt(D[ln(mid / mid')^2; {_SLOW}]), ' the event before",
        "basis points",
        "Andersen, Bollerslev 1998, Answering the skeptics: realised variance; exponential window",
    ),
    Feature(
        "event_age",
        "ln(1 + (t - t') / 1 ms), t' the receive time of the event before, or of the run's start",
        "log of milliseconds",
        "Engle, Russell 1998, Autoregressive conditional duration",
    ),
)
"""The columns of a row in their order."""

assert len(FEATURES) == N_FEATURES

FEATURE_NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)
"""Names of the columns, each different."""


def feature_hash() -> int:
    """Return the 64-bit hash of names, order, formulas and units: what a row means."""
    text = repr([(feature.name, feature.formula, feature.unit) for feature in FEATURES])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
