"""The view of a symbol: the ten levels a side that count at one moment, from its book and the quote that overrides it.

V1  A quote counts only while its update id is newer than the book's newest one; then it is level 1, and levels of the
    book at or better than it are not seen. The book itself is never changed by a quote.
V2  A side of a quote without quantity is an empty side.
"""

from __future__ import annotations

from numba import int64, void

from tickwire.book import BOOK_TYPE
from tickwire.kernel import inlined, kernel
from tickwire.records.features import LEVELS
from tickwire_features.kernels.desk import SYMBOL_TYPE, TICK_TYPE, WORK_TYPE
from tickwire_features.state import ASK_PRICE, BID_PRICE

USABLE = 0
ONE_SIDED = 1
CROSSED = 2


@inlined
def _fill_side(book, at, side, levels, row, quoted, quote_price, quote_quantity):
    # Rows `row` (prices) and `row + 1` of the levels; returns how many there are.
    prices = book.prices[at, side]
    quantities = book.quantities[at, side]
    left = book.counts[at, side]
    sign = 1 - 2 * side  # makes higher prices better
    count = 0
    if quoted:
        if quote_quantity <= 0:
            return count
        levels[row, 0] = quote_price
        levels[row + 1, 0] = quote_quantity
        count = 1
        while left > 0 and sign * prices[left - 1] >= sign * quote_price:
            left -= 1
    while count < LEVELS and left > 0:
        left -= 1
        levels[row, count] = prices[left]
        levels[row + 1, count] = quantities[left]
        count += 1
    return count


@kernel(int64(BOOK_TYPE, int64, SYMBOL_TYPE, WORK_TYPE))
def fill_view(book, at, symbol, work):
    """Fill the levels in `work` with the view of symbol `at`; return `USABLE`, `ONE_SIDED` or `CROSSED`."""
    quoted = symbol.quote_id != 0
    levels = work.levels
    work.bids = _fill_side(book, at, 0, levels, BID_PRICE, quoted, symbol.quote_bid_price, symbol.quote_bid_quantity)
    work.asks = _fill_side(book, at, 1, levels, ASK_PRICE, quoted, symbol.quote_ask_price, symbol.quote_ask_quantity)
    if work.bids == 0 or work.asks == 0:
        return int64(ONE_SIDED)
    if levels[BID_PRICE, 0] >= levels[ASK_PRICE, 0]:
        return int64(CROSSED)
    return int64(USABLE)


@kernel(void(SYMBOL_TYPE, TICK_TYPE))
def take_quote(symbol, tick):
    """Let a quote override level 1 if it is newer than the book and not older than the last one (V1)."""
    update_id = int64(tick.venue_sequence)
    if update_id <= symbol.update_id or update_id < symbol.quote_id:
        return
    symbol.quote_id = update_id
    symbol.quote_bid_price = tick.price_units
    symbol.quote_bid_quantity = tick.quantity_units
    symbol.quote_ask_price = tick.ask_price_units
    symbol.quote_ask_quantity = tick.ask_quantity_units


@inlined
def take_update_id(symbol, update_id):
    """Note the id of a change of the book; a quote that is not newer is over (V1)."""
    symbol.update_id = update_id
    if symbol.quote_id <= update_id:
        symbol.quote_id = 0
