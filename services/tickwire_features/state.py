"""What features remembers of each symbol: indices into the state arrays that its kernels share.

Everything is process-local and written by the thread that runs the kernels. Prices and quantities are int64 units.
"""

from __future__ import annotations

from tickwire.records.features import FLOW_LEVELS, LEVELS

# View: the levels that count at one moment, int64 (4, LEVELS), the best level first.
VIEW_BID_PRICE = 0
VIEW_BID_QUANTITY = 1
VIEW_ASK_PRICE = 2
VIEW_ASK_QUANTITY = 3
VIEW_ROWS = 4
VIEW_LEVELS = LEVELS

# Sums of a run, float64 (n_symbols, SUMS).
SUM_FLOW_TOP = 0
SUM_FLOW_LEVELS = 1
SUM_SIGNED_FAST = 2
SUM_SIGNED_SLOW = 3
SUM_TRADED_SLOW = 4
SUM_SQUARED_RETURNS = 5
TYPICAL = 6
TYPICAL_TRADE = 7
SUMS = 8

# Counts and times of a run, int64 (n_symbols, MARKS).
EVENTS = 0
TRADES = 1
RUN_TIME = 2  # receive time of the last event, or of the run's start
HAS_BEFORE = 3  # 1: `before` holds the event before, 0: the next event has none
PENDING_SIGNED = 4  # bought minus sold since the last event
PENDING_TRADED = 5
BIDS_BEFORE = 6  # levels of the event before
ASKS_BEFORE = 7
MARKS = 8

# Levels of the event before, int64 (n_symbols, VIEW_ROWS, BEFORE_LEVELS), rows as in a view.
BEFORE_LEVELS = FLOW_LEVELS

# Book status, int64 (n_symbols, STATUS).
BOOK = 0
TRADING = 1  # 1 in continuous trading, as it is until a venue says otherwise
UPDATE_ID = 2  # venue_sequence of the book's newest tick
QUOTE_ID = 3  # venue_sequence of the quote that overrides level 1, 0 = none
QUOTE_BID_PRICE = 4
QUOTE_BID_QUANTITY = 5
QUOTE_ASK_PRICE = 6
QUOTE_ASK_QUANTITY = 7
STATUS = 8

# Values of BOOK.
BOOK_INVALID = 0
BOOK_BUILDING = 1
"""Between SNAPSHOT_BEGIN and SNAPSHOT_END."""
BOOK_VALID = 2

# Numbers of the batch in hand, int64 (NUMBERS,).
RECORDS = 0  # records written and not yet published
TAKEN_MONO_NS = 1  # when the ticks in hand were taken
BIDS = 2  # levels a side in the view
ASKS = 3
NUMBERS = 4
