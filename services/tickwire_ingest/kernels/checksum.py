"""Kraken's book checksum: CRC-32 over the ten best asks, then the ten best bids.

Each level gives its price and its volume as text without the point and without leading zeros, which is exactly the text
of their integer units when the increments are the decimals that the venue sends. A side with fewer levels gives fewer.
Source: Kraken WebSocket API v1, "How to calculate the book checksum".
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint32

from tickwire.book import BOOK_TYPE
from tickwire.kernel import inlined, kernel

LEVELS = 10
_REVERSED_POLYNOMIAL = 0xEDB88320  # CRC-32 as in zlib, RFC 1952 section 8


def _table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_REVERSED_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


@inlined
def _feed(crc, units):
    # The decimal digits of a positive number, highest first; 0 has none once leading zeros are gone.
    divisor = int64(1)
    while units // divisor >= 10:
        divisor *= 10
    if units <= 0:
        return crc
    while divisor > 0:
        digit = uint32(48 + (units // divisor) % 10)
        crc = uint32(_TABLE[(crc ^ digit) & uint32(255)] ^ (crc >> uint32(8)))
        divisor //= 10
    return crc


@kernel(uint32(BOOK_TYPE, int64))
def book_checksum(book, symbol):
    """Return the checksum of a symbol's book."""
    crc = uint32(0xFFFFFFFF)
    for s in (1, 0):
        n = book.counts[symbol, s]
        for i in range(n - 1, max(n - LEVELS, 0) - 1, -1):
            crc = _feed(crc, book.prices[symbol, s, i])
            crc = _feed(crc, book.quantities[symbol, s, i])
    return uint32(crc ^ uint32(0xFFFFFFFF))
