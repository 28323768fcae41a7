"""The windows store's protocol; the writer's kernels run on features' hot thread, the readers' on anybody's.

W1  Write: stamp = 0 (relaxed); release fence; features in relaxed 8-byte words; stamp = row_sequence (release);
    `head` (release). One writer a store.
W2  Read: `head` (acquire), `valid_from`; copy relaxed words; acquire fence; every stamp is still its row's and
    `valid_from` has not moved behind the first row, or the copy is discarded.
W3  A run that ends moves `valid_from` behind `head`; a row that must not be used moves it behind itself before `head`
    reaches that row.

A store's state is `uint64[::1]`, process-local: the segment's address. Whoever calls a kernel keeps symbols in range.
"""

from __future__ import annotations

from numba import int64, uint64

from tickwire.kernel import inlined, kernel
from tickwire.records import WINDOW_ROWS
from tickwire.ring.words import fence_acquire, fence_release, load_acquire, load_relaxed, store_relaxed, store_release
from tickwire.windows.layout import HEAD, HEADER_BYTES, ROW_BYTES, ROW_WORDS, ROWS, STAMP, SYMBOL_BYTES, VALID_FROM

TOO_SHORT = -1
"""`read_window`: the run has fewer rows than asked for."""
INVALID = -2
"""`read_window`, `read_run`: the run ended while it was copied."""
TORN = -3
"""`read_window`, `read_run`: rows were overwritten while they were copied; try again."""

W_ADDRESS = 0
W_WORDS = 1

MAX_READ_ROWS = WINDOW_ROWS - 64
"""Most rows a read: the writer stays at least 64 rows away from the oldest of them when the read starts."""


@inlined
def symbol_address(w, symbol):
    """Return the address of a symbol's block."""
    return w[W_ADDRESS] + uint64(HEADER_BYTES) + uint64(symbol) * uint64(SYMBOL_BYTES)


@inlined
def row_address(block, row_sequence):
    """Return the address of a row in its symbol's block."""
    return block + uint64(ROWS) + (row_sequence & uint64(WINDOW_ROWS - 1)) * uint64(ROW_BYTES)


@kernel("uint64(uint64[::1], int64)")
def head_of(w, symbol):
    """Return the row_sequence of a symbol's newest row, 0 before the first."""
    # SYNC window_head: the row of this sequence and all before it.
    return load_acquire(symbol_address(w, symbol) + uint64(HEAD))


@kernel("uint64(uint64[::1], int64)")
def valid_from_of(w, symbol):
    """Return the first row_sequence of a symbol's unbroken run, `head + 1` while that is empty."""
    return load_acquire(symbol_address(w, symbol) + uint64(VALID_FROM))


@kernel("uint64(uint64[::1], int64, uint64[::1], boolean)")
def write_row(w, symbol, row, usable):
    """Store a symbol's next row.

    Args:
        w: Store state of the writer.
        symbol: Symbol id.
        row: Features as words, shape (24,).
        usable: False for a row that ends the run before it and belongs to none (W3).

    Returns:
        Its row_sequence.
    """
    block = symbol_address(w, symbol)
    sequence = load_relaxed(block + uint64(HEAD)) + uint64(1)
    if not usable:
        # SYNC window_valid: rows before this value are not to be used.
        store_release(block + uint64(VALID_FROM), sequence + uint64(1))
    slot = row_address(block, sequence)
    store_relaxed(slot + uint64(STAMP), uint64(0))
    fence_release()
    for k in range(ROW_WORDS):
        store_relaxed(slot + uint64(8 * k), row[k])
    # SYNC window_stamp: the whole row of this sequence.
    store_release(slot + uint64(STAMP), sequence)
    # SYNC window_head: the row of this sequence and all before it.
    store_release(block + uint64(HEAD), sequence)
    return sequence


@kernel("uint64(uint64[::1], int64)")
def invalidate(w, symbol):
    """End a symbol's run: `valid_from = head + 1` (W3); return that."""
    block = symbol_address(w, symbol)
    valid_from = load_relaxed(block + uint64(HEAD)) + uint64(1)
    # SYNC window_valid: rows before this value are not to be used.
    store_release(block + uint64(VALID_FROM), valid_from)
    return valid_from


@inlined
def copy_rows(block, first, newest, out):
    """Copy rows `first` to `newest` into `out` from its row 0 on; return the newest or INVALID or TORN (W2)."""
    count = int64(newest - first) + 1
    for i in range(count):
        slot = row_address(block, first + uint64(i))
        for k in range(ROW_WORDS):
            out[i, k] = load_relaxed(slot + uint64(8 * k))
    fence_acquire()
    # SYNC window_valid: rows before this value are not to be used.
    if load_acquire(block + uint64(VALID_FROM)) > first:
        return int64(INVALID)
    for i in range(count):
        # SYNC window_stamp: the whole row of this sequence.
        if load_acquire(row_address(block, first + uint64(i)) + uint64(STAMP)) != first + uint64(i):
            return int64(TORN)
    return int64(newest)


@kernel("int64(uint64[::1], int64, int64, uint64[:, ::1])")
def read_window(w, symbol, rows, out):
    """Copy a symbol's newest `rows` rows, the oldest first.

    Args:
        w: Store state of a reader.
        symbol: Symbol id.
        rows: T, 1 to `MAX_READ_ROWS`.
        out: At least (rows, 24) words; holds anything unless the result is positive.

    Returns:
        row_sequence of the newest row copied, or `TOO_SHORT`, `INVALID` or `TORN`.
    """
    block = symbol_address(w, symbol)
    # SYNC window_head: the row of this sequence and all before it.
    head = load_acquire(block + uint64(HEAD))
    valid_from = load_acquire(block + uint64(VALID_FROM))
    if head + uint64(1) < valid_from + uint64(rows):
        return int64(TOO_SHORT)
    return copy_rows(block, head + uint64(1) - uint64(rows), head, out)


@kernel("int64(uint64[::1], int64, int64, uint64[:, ::1], uint64[::1])")
def read_run(w, symbol, limit, out, span):
    """Copy the newest rows of a symbol's run, at most `limit`, the oldest first.

    Args:
        w: Store state of a reader.
        symbol: Symbol id.
        limit: 1 to `MAX_READ_ROWS`.
        out: At least (limit, 24) words; holds anything unless the result is positive.
        span: Filled with `head` and the `valid_from` that were read, shape (2,).

    Returns:
        Rows copied, 0 for an empty run, or `INVALID` or `TORN`.
    """
    block = symbol_address(w, symbol)
    # SYNC window_head: the row of this sequence and all before it.
    head = load_acquire(block + uint64(HEAD))
    valid_from = load_acquire(block + uint64(VALID_FROM))
    span[0] = head
    span[1] = valid_from
    if valid_from > head:
        return int64(0)
    count = min(int64(head - valid_from) + 1, limit)
    found = copy_rows(block, head + uint64(1) - uint64(count), head, out)
    return count if found > 0 else found
