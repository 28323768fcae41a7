"""Repair from the windows store: what inference does when it starts, was lapped on the rows ring, or meets a hole.

Features writes the store before the ring, so the store's head is at or ahead of every row that the ring can still show:
after a repair, ring rows up to `newest` are known already.

I1  A symbol whose run cannot be read starts anew with its next row: too few rows for a while, never wrong ones.
I2  A later `valid_from` in the store than is known stands for an INVALIDATED row that was lost, and is passed on.
"""

from __future__ import annotations

from numba import int64, uint32, uint64, void

from tickwire.kernel import kernel
from tickwire.records import N_FEATURES, WINDOW_ROWS, PredictionKind
from tickwire.ring.words import fence_release, store_relaxed
from tickwire.runtime.kernels import bump
from tickwire.windows.kernels import read_run
from tickwire_inference.kernels.answers import count_invalidated, invalidate_waiting, post
from tickwire_inference.kernels.counting import set_symbol
from tickwire_inference.kernels.desk import DESK_TYPE, internal
from tickwire_inference.kernels.windows import is_finite, word_of
from tickwire_inference.stats import REPAIRS, SYMBOL_WINDOW_ROWS

_ATTEMPTS = 8  # the store is overwritten while it is read only if 64 rows of one symbol come within one copy
_INVALIDATED = int(PredictionKind.INVALIDATED)


@internal(void(DESK_TYPE, int64))
def forget_window(d, symbol):
    """Start a symbol's window anew with its next row (I1)."""
    # SYNC newest: no window of this symbol can be gathered any more.
    store_relaxed(word_of(d.newest, symbol), uint64(0))
    d.held_from[symbol] = uint64(0)
    set_symbol(d.per_symbol, symbol, SYMBOL_WINDOW_ROWS, 0)


@internal(void(DESK_TYPE, int64))
def repair_window(d, symbol):
    """Copy a symbol's newest rows from the store, at most T."""
    bump(d.counters, REPAIRS, 1)
    found = int64(-1)
    for _ in range(_ATTEMPTS):
        found = read_run(d.store, symbol, d.loop[0].window_rows, d.scratch, d.span)
        if found >= 0:
            break
    head = d.span[0]
    valid_from = d.span[1]
    known = d.valid_from[symbol]
    d.valid_from[symbol] = max(known, valid_from)
    if known != 0 and valid_from > known:
        if not invalidate_waiting(d, symbol):
            post(d, d.draft_words, symbol, _INVALIDATED)
        count_invalidated(d, symbol)
    if found < 0:
        forget_window(d, symbol)
        return
    first = head + uint64(1) - uint64(found)
    d.held_from[symbol] = first
    # SYNC newest: the slots of these rows are being written from here on.
    store_relaxed(word_of(d.newest, symbol), head)
    fence_release()
    for i in range(found):
        slot = int64((first + uint64(i)) & uint64(WINDOW_ROWS - 1))
        finite = True
        for k in range(N_FEATURES // 2):
            word = d.scratch[i, k]
            low = uint32(word & uint64(0xFFFFFFFF))
            high = uint32(word >> uint64(32))
            d.bits[symbol, slot, 2 * k] = low
            d.bits[symbol, slot, 2 * k + 1] = high
            finite = finite and is_finite(low) and is_finite(high)
        if not finite:
            d.held_from[symbol] = first + uint64(i + 1)
    set_symbol(d.per_symbol, symbol, SYMBOL_WINDOW_ROWS, head + uint64(1) - d.held_from[symbol])


@kernel(void(DESK_TYPE))
def repair_all(d):
    """Copy every symbol's newest rows from the store."""
    for symbol in range(d.newest.size):
        repair_window(d, symbol)


@kernel(void(DESK_TYPE))
def forget_all(d):
    """Forget every window and what is known of its book: another store with its own row numbers follows."""
    for symbol in range(d.newest.size):
        forget_window(d, symbol)
        d.valid_from[symbol] = uint64(0)
