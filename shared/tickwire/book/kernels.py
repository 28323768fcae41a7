"""Changing and reading price-level books. `side` is BID (1) or ASK (2) throughout."""

from __future__ import annotations

from numba import boolean, int64, void

from tickwire.book.levels import BOOK_TYPE
from tickwire.kernel import kernel

UNCHANGED = 0
CHANGED = 1
DROPPED = 2
"""The side was full: its farthest level, or the new one, is gone (I3)."""


@kernel(void(BOOK_TYPE, int64))
def clear(book, symbol):
    """Empty both sides of a symbol."""
    book.counts[symbol, 0] = 0
    book.counts[symbol, 1] = 0


@kernel(int64(BOOK_TYPE, int64, int64, int64, int64))
def apply_level(book, symbol, side, price, quantity):
    """Set the quantity of one level; 0 or less removes it. Returns UNCHANGED, CHANGED or DROPPED."""
    s = side - 1
    prices = book.prices[symbol, s]
    quantities = book.quantities[symbol, s]
    n = book.counts[symbol, s]
    sign = 1 if side == 1 else -1
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if sign * prices[middle] < sign * price:
            low = middle + 1
        else:
            high = middle
    if low < n and prices[low] == price:
        if quantity > 0:
            if quantities[low] == quantity:
                return int64(UNCHANGED)
            quantities[low] = quantity
            return int64(CHANGED)
        for i in range(low, n - 1):
            prices[i] = prices[i + 1]
            quantities[i] = quantities[i + 1]
        book.counts[symbol, s] = n - 1
        return int64(CHANGED)
    if quantity <= 0:
        return int64(UNCHANGED)
    if n == prices.shape[0]:
        if low == 0:
            return int64(DROPPED)
        for i in range(low - 1):
            prices[i] = prices[i + 1]
            quantities[i] = quantities[i + 1]
        prices[low - 1] = price
        quantities[low - 1] = quantity
        return int64(DROPPED)
    for i in range(n, low, -1):
        prices[i] = prices[i - 1]
        quantities[i] = quantities[i - 1]
    prices[low] = price
    quantities[low] = quantity
    book.counts[symbol, s] = n + 1
    return int64(CHANGED)


@kernel(void(BOOK_TYPE, int64, int64))
def trim(book, symbol, depth):
    """Keep the best `depth` levels of each side, as a venue does that was subscribed to so many."""
    for s in range(2):
        n = book.counts[symbol, s]
        excess = n - depth
        if excess > 0:
            for i in range(depth):
                book.prices[symbol, s, i] = book.prices[symbol, s, i + excess]
                book.quantities[symbol, s, i] = book.quantities[symbol, s, i + excess]
            book.counts[symbol, s] = depth


@kernel(boolean(BOOK_TYPE, int64))
def is_crossed(book, symbol):
    """Say whether the best bid is at or above the best ask."""
    bids, asks = book.counts[symbol, 0], book.counts[symbol, 1]
    return bids > 0 and asks > 0 and book.prices[symbol, 0, bids - 1] >= book.prices[symbol, 1, asks - 1]
