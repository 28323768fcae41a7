"""What a polled row means: it extends its symbol's window and asks for a prediction, or it says that the book is void.

I1  A row asks for a prediction when the symbol trades and T rows that end with it are here, finite, and of one valid
    book: row_sequence - max(valid_from, held_from) + 1 >= T.
I2  Each INVALIDATED row is passed on as exactly one INVALIDATED answer: that of the waiting request if there is one.
I3  A row that carries a later `valid_from` than is known stands for an INVALIDATED row that was lost.
I4  Rows that are missing, because the ring was lapped, are copied from the windows store before anything else.
"""

from __future__ import annotations

from numba import int64, uint32, uint64, void

from tickwire.kernel import inlined
from tickwire.records import WINDOW_ROWS, PredictionKind, RowKind
from tickwire.ring.kernels import LAPPED, LAST_LOST, commit, poll
from tickwire.ring.words import load_acquire
from tickwire.runtime.kernels import bump
from tickwire_inference.kernels.answers import (
    count_invalidated,
    fill_from_row,
    has_room,
    invalidate_waiting,
    post_without_request,
)
from tickwire_inference.kernels.counting import count_symbol, set_symbol
from tickwire_inference.kernels.desk import DESK_TYPE, POLL_ROWS, REQUESTED_DRAIN, internal
from tickwire_inference.kernels.queue import submit, withdraw
from tickwire_inference.kernels.repair import forget_window, repair_all, repair_window
from tickwire_inference.kernels.windows import APPENDED_NOT_FINITE, HOLE, NOT_NEW, append, word_of
from tickwire_inference.stats import (
    BARRIERS,
    CONFLATED,
    FAILED_INPUT,
    LOST_ROWS,
    REQUESTS,
    ROWS,
    ROWS_KNOWN,
    ROWS_NOT_FINITE,
    SYMBOL_FAILED,
    SYMBOL_REQUESTS,
    SYMBOL_ROWS,
    SYMBOL_WINDOW_ROWS,
)

_ROW_INVALIDATED = int(RowKind.INVALIDATED)
_ROW_BARRIER = int(RowKind.BARRIER)
_FAILED = int(PredictionKind.FAILED)
_INVALIDATED = int(PredictionKind.INVALIDATED)
_BARRIER = int(PredictionKind.BARRIER)


@internal(void(DESK_TYPE, int64, int64, int64))
def _invalidate(d, symbol, at, now_ns):
    if not invalidate_waiting(d, symbol):
        post_without_request(d, at, _INVALIDATED, now_ns)
    count_invalidated(d, symbol)


@inlined
def _usable_rows(valid_from, held_from, row_sequence):
    # Rows of the unbroken, valid, finite run that ends with this one (I1).
    usable = int64(row_sequence) + 1 - int64(max(valid_from, held_from))
    return min(max(usable, 0), WINDOW_ROWS)


@internal(void(DESK_TYPE, int64))
def _count_request(d, symbol):
    bump(d.counters, REQUESTS, 1)
    count_symbol(d.per_symbol, symbol, SYMBOL_REQUESTS)


@internal(void(DESK_TYPE, int64, int64, int64))
def _request(d, symbol, at, now_ns):
    row = d.rows[at]
    deadline_ns = row.publish_mono_ns + d.budget_ns[symbol]
    queued_ns = now_ns
    if d.state[0].closed_loop != 0:
        queued_ns = row.receive_time_ns  # event time, so that the order in a batch is the same in every replay
    replaced = d.drafts[symbol].conflated + uint32(1)
    fill_from_row(d, symbol, at, now_ns)
    d.drafts[symbol].deadline_mono_ns = deadline_ns
    if submit(d.queue, d.order, d.state, symbol, queued_ns, deadline_ns) == 0:
        d.drafts[symbol].conflated = uint32(replaced)
        bump(d.counters, CONFLATED, 1)
    _count_request(d, symbol)


@internal(void(DESK_TYPE, int64, int64, int64))
def _fail_request(d, symbol, at, now_ns):
    # A request whose own newest row is not finite: it stands for a waiting one too, and neither can be computed.
    _count_request(d, symbol)
    bump(d.counters, CONFLATED, withdraw(d.queue, d.order, d.state, symbol))
    post_without_request(d, at, _FAILED, now_ns)
    bump(d.counters, FAILED_INPUT, 1)
    count_symbol(d.per_symbol, symbol, SYMBOL_FAILED)


@internal(void(DESK_TYPE, int64, int64))
def take_row(d, at, now_ns):
    """Deal with polled row `at`, which is not a barrier."""
    row = d.rows[at]
    symbol = int64(row.symbol_id)
    if row.kind == _ROW_INVALIDATED:
        d.valid_from[symbol] = max(d.valid_from[symbol], row.valid_from)
        set_symbol(d.per_symbol, symbol, SYMBOL_WINDOW_ROWS, 0)
        _invalidate(d, symbol, at, now_ns)
        return
    usable_before = _usable_rows(d.valid_from[symbol], d.held_from[symbol], row.row_sequence)
    stored = append(d.bits, d.newest, d.held_from, symbol, row.row_sequence, d.row_words, at)
    if stored == HOLE:
        repair_window(d, symbol)
        stored = append(d.bits, d.newest, d.held_from, symbol, row.row_sequence, d.row_words, at)
    if stored == HOLE:
        forget_window(d, symbol)
        stored = append(d.bits, d.newest, d.held_from, symbol, row.row_sequence, d.row_words, at)
    bump(d.counters, ROWS, 1)
    count_symbol(d.per_symbol, symbol, SYMBOL_ROWS)
    if row.valid_from > row.row_sequence:
        set_symbol(d.per_symbol, symbol, SYMBOL_WINDOW_ROWS, 0)
        return  # a row of no use, which ends its run: its INVALIDATED follows
    if row.valid_from > d.valid_from[symbol]:
        known = d.valid_from[symbol]
        d.valid_from[symbol] = row.valid_from
        if known != 0:
            _invalidate(d, symbol, at, now_ns)
    if stored == NOT_NEW and row.row_sequence < d.newest[symbol]:
        bump(d.counters, ROWS_KNOWN, 1)
        return
    usable = _usable_rows(d.valid_from[symbol], d.held_from[symbol], row.row_sequence)
    set_symbol(d.per_symbol, symbol, SYMBOL_WINDOW_ROWS, usable)
    if row.trading == 0:
        if invalidate_waiting(d, symbol):
            count_invalidated(d, symbol)
    elif stored == APPENDED_NOT_FINITE:
        bump(d.counters, ROWS_NOT_FINITE, 1)
        if usable_before >= d.loop[0].window_rows:
            _fail_request(d, symbol, at, now_ns)
    elif usable >= d.loop[0].window_rows:
        _request(d, symbol, at, now_ns)


@internal(int64(DESK_TYPE, uint64[::1], int64))
def take_rows(d, consumer, now_ns):
    """Deal with the rows that are there, up to a barrier.

    Args:
        d: The desk.
        consumer: State of the rows ring's consumer.
        now_ns: Monotonic time.

    Returns:
        What was dealt with, or `REATTACH`.
    """
    loop = d.loop[0]
    if loop.barrier_pending != 0 or not has_room(d):
        return 0
    if loop.rows_at == loop.rows_end:
        # SYNC drain: the event loop wants no more rows to be taken.
        if load_acquire(word_of(d.requested, REQUESTED_DRAIN)) != 0:
            return 0
        found = poll(consumer, d.row_words, POLL_ROWS)
        if found == LAPPED:
            bump(d.counters, LOST_ROWS, consumer[LAST_LOST])
            repair_all(d)
            return 1
        if found < 0:
            return found
        commit(consumer)
        loop.rows_at = 0
        loop.rows_end = found
    first = loop.rows_at
    while loop.rows_at < loop.rows_end:
        if d.rows[loop.rows_at].kind == _ROW_BARRIER:
            loop.barrier_pending = 1
            return loop.rows_at - first + 1
        take_row(d, loop.rows_at, now_ns)
        loop.rows_at += 1
    return loop.rows_at - first


@internal(int64(DESK_TYPE, int64))
def pass_barrier_on(d, now_ns):
    """Answer a pending barrier once everything before it has been answered; return 1 if it was."""
    loop = d.loop[0]
    if loop.barrier_pending == 0 or d.state[0].waiting > 0 or d.state[0].in_flight > 0:
        return 0
    post_without_request(d, loop.rows_at, _BARRIER, now_ns)
    bump(d.counters, BARRIERS, 1)
    loop.rows_at += 1
    loop.barrier_pending = 0
    return 1
