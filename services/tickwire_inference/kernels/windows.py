"""The host windows: the newest 1,024 rows of each symbol in this process, at row_sequence mod 1,024.

The scheduler thread appends, the engine thread gathers. Rows are kept as the bits of their float32 values.

I1  `newest[symbol]` is stored before the row's bits (release fence between): a reader that copied rows and then finds
    `newest` less than 1,024 ahead of its first row knows that none of them was touched meanwhile.
I2  Rows `held_from[symbol]` to `newest[symbol]` are here without a hole and finite; a hole, a row with a NaN or an
    infinity, or an invalid book moves `held_from` behind it.
"""

from __future__ import annotations

from numba import from_dtype, int64, uint32, uint64

from tickwire.kernel import inlined, kernel
from tickwire.records import N_FEATURES, ROW, WINDOW_ROWS
from tickwire.ring.words import address_of, fence_acquire, fence_release, load_relaxed, store_relaxed
from tickwire_inference.layouts import ROW_OK, ROW_OVERRUN

ROWS_TYPE = from_dtype(ROW)[::1]
ROW_WORDS_TYPE = uint64[:, ::1]
BITS_TYPE = uint32[:, :, ::1]
SEQUENCES_TYPE = uint64[::1]

APPENDED = 1
APPENDED_NOT_FINITE = 2
"""`append`: stored, but the windows that hold the row are not to be used."""
NOT_NEW = 0
"""`append`: the row is here already; `newest` itself may still make a request."""
HOLE = -1
"""`append`: rows are missing in front of it, nothing was stored."""

_FEATURES_AT = ROW.fields["features"][1] // 8  # type: ignore[index]
_EXPONENT = 0x7F800000  # all ones: infinity or NaN, IEEE 754 binary32
_MASK = WINDOW_ROWS - 1


@inlined
def word_of(sequences, symbol):
    """Return the address of a symbol's word."""
    return address_of(sequences) + uint64(8 * symbol)


@inlined
def is_finite(bits):
    """Say whether a float32 of these bits is neither a NaN nor an infinity."""
    return (bits & uint32(_EXPONENT)) != uint32(_EXPONENT)


@kernel(int64(BITS_TYPE, SEQUENCES_TYPE, SEQUENCES_TYPE, int64, uint64, ROW_WORDS_TYPE, int64))
def append(bits, newest, held_from, symbol, row_sequence, row_words, at):
    """Store one polled row as its symbol's newest.

    Args:
        bits: Windows as bits, shape (n_symbols, 1024, 48).
        newest: Newest row_sequence of each symbol, 0 for none.
        held_from: First row of the unbroken run that ends with the newest.
        symbol: Symbol id.
        row_sequence: Number of the row.
        row_words: Polled rows as words, shape (n, 40).
        at: Index of the row there.

    Returns:
        `APPENDED`, `APPENDED_NOT_FINITE`, `NOT_NEW` or `HOLE`.
    """
    known = newest[symbol]
    if row_sequence <= known:
        return NOT_NEW
    if known == 0:
        held_from[symbol] = row_sequence
    elif row_sequence != known + uint64(1):
        return HOLE
    # SYNC newest: the slot of this row is being written from here on (I1).
    store_relaxed(word_of(newest, symbol), row_sequence)
    fence_release()
    slot = int64(row_sequence & uint64(_MASK))
    finite = True
    for k in range(N_FEATURES // 2):
        word = row_words[at, _FEATURES_AT + k]
        low = uint32(word & uint64(0xFFFFFFFF))
        high = uint32(word >> uint64(32))
        bits[symbol, slot, 2 * k] = low
        bits[symbol, slot, 2 * k + 1] = high
        finite = finite and is_finite(low) and is_finite(high)
    if not finite:
        held_from[symbol] = row_sequence + uint64(1)
        return APPENDED_NOT_FINITE
    return APPENDED


@kernel(int64(BITS_TYPE, SEQUENCES_TYPE, int64, uint64, BITS_TYPE, int64))
def gather(bits, newest, symbol, last, staging, at):
    """Copy the window that ends with row `last` into `staging[at]`, shape (T, 48).

    Returns:
        `ROW_OK`, or `ROW_OVERRUN` when a row was overwritten while it was copied.
    """
    n_rows = staging.shape[1]
    first = last - uint64(n_rows - 1)
    for i in range(n_rows):
        slot = int64((first + uint64(i)) & uint64(_MASK))
        for k in range(N_FEATURES):
            staging[at, i, k] = bits[symbol, slot, k]
    fence_acquire()
    # SYNC newest: how far the scheduler has got while the rows were copied (I1).
    if load_relaxed(word_of(newest, symbol)) - first >= uint64(WINDOW_ROWS):
        return ROW_OVERRUN
    return ROW_OK
