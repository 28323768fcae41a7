"""What features remembers: one record a symbol, and one of work in hand. Process-local, one writer, the hot thread.

Prices and quantities are int64 units. Kernels get a record as a pointer, so that calls between them cost nothing.
"""

from __future__ import annotations

import numpy as np

from tickwire.records.features import FLOW_LEVELS, LEVELS
from tickwire_features.stats import FEATURES_STATS

# Values of `book`.
BOOK_INVALID = 0
BOOK_BUILDING = 1
"""Between SNAPSHOT_BEGIN and SNAPSHOT_END."""
BOOK_VALID = 2

# Rows of levels.
BID_PRICE = 0
BID_QUANTITY = 1
ASK_PRICE = 2
ASK_QUANTITY = 3

SYMBOL = np.dtype(
    [
        # Status of the book.
        ("book", "<i8"),
        ("trading", "<i8"),  # 1 in continuous trading, as it is until a venue says otherwise
        ("update_id", "<i8"),  # venue_sequence of the book's newest tick
        ("quote_id", "<i8"),  # venue_sequence of the quote that overrides level 1, 0 = none
        ("quote_bid_price", "<i8"),
        ("quote_bid_quantity", "<i8"),
        ("quote_ask_price", "<i8"),
        ("quote_ask_quantity", "<i8"),
        # The run: counts and times.
        ("events", "<i8"),
        ("trades", "<i8"),
        ("run_time_ns", "<i8"),  # receive time of the last event, or of the run's start
        ("pending_signed", "<i8"),  # bought minus sold since the last event
        ("pending_traded", "<i8"),
        # The run: sums, see `tickwire.records.features`.
        ("flow_top", "<f8"),
        ("flow_levels", "<f8"),
        ("signed_fast", "<f8"),
        ("signed_slow", "<f8"),
        ("traded_slow", "<f8"),
        ("squared_returns", "<f8"),
        ("typical", "<f8"),
        ("typical_trade", "<f8"),
        # The event before.
        ("has_before", "<i8"),  # 0: the run's next event has none
        ("bids_before", "<i8"),  # levels, also those beyond the ones that are kept
        ("asks_before", "<i8"),
        ("before", "<i8", (4, FLOW_LEVELS)),
        # Statistics.
        ("changed", "<i8"),  # 1: `counts` is newer than what the statistics segment holds
        ("counts", "<u8", (len(FEATURES_STATS.per_symbol),)),
    ]
)
"""One symbol."""

WORK = np.dtype(
    [
        # The view of the symbol in hand.
        ("bids", "<i8"),  # levels
        ("asks", "<i8"),
        ("levels", "<i8", (4, LEVELS)),  # the best first
        # The batch in hand.
        ("records", "<i8"),  # written and not yet published
        ("taken_mono_ns", "<i8"),  # when its ticks were taken
        ("counts", "<u8", (len(FEATURES_STATS.counters),)),
    ]
)
"""Work in hand."""
