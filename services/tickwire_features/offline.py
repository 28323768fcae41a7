"""Rows for training and research: the live kernels on ticks in memory, without rings or shared memory.

The same ticks give the same rows as the service, bit for bit, but for monotonic stamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tickwire.records import RecordArray
from tickwire.windows import window_bytes
from tickwire.windows.kernels import W_ADDRESS, W_WORDS, invalidate
from tickwire_features.kernels.desk import new_desk
from tickwire_features.kernels.ticks import take_ticks

_BATCH_TICKS = 2048


def rows_from_ticks(chunks: Iterable[RecordArray], n_symbols: int) -> Iterator[RecordArray]:
    """Yield the records that features would publish for these ticks, in order.

    Keep those of kind `ROW` with `trading` 1 and `valid_from <= row_sequence`: a window of T rows that ends with a row
    is whole if `row_sequence - valid_from + 1 >= T`.

    Args:
        chunks: Ticks in order, arrays of `TICK` of any length; books live on from one to the next.
        n_symbols: Symbols that the ticks' `symbol_id` counts.

    Yields:
        Arrays of `ROW`, at least one record each, the caller's own. Row sequences start at 1.
    """
    # The store's memory is the caller's of `state`: it must outlive every kernel that writes there.
    memory, state = _private_store(n_symbols)
    desk = new_desk(n_symbols, _BATCH_TICKS, state)
    for chunk in chunks:
        for first in range(0, len(chunk), _BATCH_TICKS):
            batch = chunk[first : first + _BATCH_TICKS]
            desk.ticks[: len(batch)] = batch
            desk.work["records"] = 0
            take_ticks(desk, len(batch))
            if count := int(desk.work["records"][0]):
                yield desk.records[:count].copy()
    del memory


def _private_store(n_symbols: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    memory = np.zeros(window_bytes(n_symbols) // 8, dtype=np.uint64)
    state = np.zeros(W_WORDS, dtype=np.uint64)
    state[W_ADDRESS] = memory.ctypes.data
    for symbol in range(n_symbols):
        invalidate(state, symbol)
    return memory, state
