"""The desk: everything features' kernels work on, as one tuple of arrays.

Only the outer kernels take it whole: passing a tuple of arrays costs some 5 ns an array and call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import from_dtype, typeof

from tickwire.book import Book, new_book
from tickwire.records import ROW, TICK, RecordArray, Words, as_words
from tickwire.windows.kernels import W_WORDS
from tickwire_features.state import SYMBOL, WORK

SYMBOL_TYPE = from_dtype(SYMBOL)
WORK_TYPE = from_dtype(WORK)
TICK_TYPE = from_dtype(TICK)


class Desk(NamedTuple):
    """Process-local, but for what `windows` points to."""

    book: Book
    symbols: RecordArray
    """`SYMBOL`, shape (n_symbols,)."""
    work: RecordArray
    """`WORK`, shape (1,)."""
    windows: npt.NDArray[np.uint64]
    """State of the windows store's writer."""
    ticks: RecordArray
    """The batch in hand."""
    tick_words: Words
    records: RecordArray
    """Rows and other records in hand."""
    record_words: Words


def new_desk(n_symbols: int, batch_ticks: int, windows: npt.NDArray[np.uint64]) -> Desk:
    """Return a desk on which no book is valid.

    Args:
        n_symbols: Symbols of the run.
        batch_ticks: Most ticks taken at once.
        windows: State of the windows store's writer.
    """
    symbols = np.zeros(n_symbols, dtype=SYMBOL)
    symbols["trading"] = 1
    ticks = np.zeros(batch_ticks, dtype=TICK)
    # A tick makes at most two records; when no book can be trusted any more, each symbol makes one.
    records = np.zeros(max(2 * batch_ticks, n_symbols), dtype=ROW)
    return Desk(
        book=new_book(n_symbols),
        symbols=symbols,
        work=np.zeros(1, dtype=WORK),
        windows=windows,
        ticks=ticks,
        tick_words=as_words(ticks),
        records=records,
        record_words=as_words(records),
    )


DESK_TYPE = typeof(new_desk(1, 1, np.zeros(W_WORDS, np.uint64)))
