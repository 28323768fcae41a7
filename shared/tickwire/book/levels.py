"""The arrays of a set of books.

I1  A side holds `counts` levels, sorted, the best one last: what changes most is cheapest to change.
I2  Prices of a side are different and its quantities positive.
I3  A full side gives up the level that is farthest from the best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import typeof

DEFAULT_CAPACITY = 16_384
"""Levels a side. Binance's books grow to some thousands in a day; Kraken's are cut to what was subscribed."""


class Book(NamedTuple):
    """Books of symbols 0 to n - 1; index 0 of the second axis is the bid side, 1 the ask side. Process-local."""

    prices: npt.NDArray[np.int64]
    """Price units, shape (n_symbols, 2, capacity)."""
    quantities: npt.NDArray[np.int64]
    """Quantity units, the same shape."""
    counts: npt.NDArray[np.int64]
    """Levels in use, shape (n_symbols, 2)."""


def new_book(n_symbols: int, capacity: int = DEFAULT_CAPACITY) -> Book:
    """Return empty books for `n_symbols` symbols."""
    shape = (n_symbols, 2, capacity)
    return Book(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros((n_symbols, 2), np.int64))


BOOK_TYPE: Any = typeof(new_book(1, 2))  # type: ignore[no-untyped-call]
"""Numba type of a `Book`, for signatures."""
