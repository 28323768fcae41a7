"""Answers on their way out: every request leaves through here exactly once, in one outbox, in order.

I1  The outbox always has room for an answer for every symbol, to all that is in flight, and what one turn can add.
I2  A refused batch of answers stays where it is and is offered again; nothing is launched meanwhile.
"""

from __future__ import annotations

from numba import boolean, int64, uint8, uint32, uint64, void

from tickwire.records import PREDICTION, PredictionKind
from tickwire.ring.kernels import BACK_PRESSURE, publish
from tickwire.runtime.kernels import bump
from tickwire_inference.kernels.counting import count_symbol
from tickwire_inference.kernels.desk import DESK_TYPE, OUTBOX_SPARE, internal
from tickwire_inference.kernels.queue import withdraw, withdraw_expired
from tickwire_inference.stats import (
    BACK_PRESSURE_COUNT,
    EXPIRED,
    INVALIDATED,
    SYMBOL_EXPIRED,
    SYMBOL_INVALIDATED,
    WITHDRAWN,
)

_RECORD_WORDS = PREDICTION.itemsize // 8
_PUBLISH_AT_ONCE = 64

_EXPIRED = int(PredictionKind.EXPIRED)
_INVALIDATED = int(PredictionKind.INVALIDATED)


@internal(void(DESK_TYPE, int64, int64, int64))
def fill_from_row(d, draft, at, now_ns):
    """Write what polled row `at` says into a draft: identity, prices and the trace up to here."""
    answer = d.drafts[draft]
    row = d.rows[at]
    answer.symbol_id = row.symbol_id
    answer.row_sequence = row.row_sequence
    answer.barrier_id = row.barrier_id
    answer.bid_price_units = row.bid_price_units
    answer.ask_price_units = row.ask_price_units
    answer.venue_time_ns = row.venue_time_ns
    answer.receive_time_ns = row.receive_time_ns
    answer.receive_mono_ns = row.receive_mono_ns
    answer.tick_mono_ns = row.tick_mono_ns
    answer.feature_mono_ns = row.feature_mono_ns
    answer.row_mono_ns = row.publish_mono_ns
    answer.request_mono_ns = now_ns
    answer.conflated = uint32(0)
    answer.deadline_mono_ns = int64(0)


@internal(int64(DESK_TYPE, uint64[:, ::1], int64, int64))
def post(d, words, at, kind):
    """Move a copy of record `at` of `words` into the outbox as `kind`; return its place there."""
    place = d.loop[0].outbox_end
    for k in range(_RECORD_WORDS):
        d.outbox_words[place, k] = words[at, k]
    d.outbox[place].kind = uint8(kind)
    d.loop[0].outbox_end = place + 1
    return place


@internal(void(DESK_TYPE, int64, int64, int64))
def post_without_request(d, at, kind, now_ns):
    """Answer with what polled row `at` says although no request waits."""
    spare = d.budget_ns.size
    fill_from_row(d, spare, at, now_ns)
    post(d, d.draft_words, spare, kind)


@internal(boolean(DESK_TYPE, int64))
def invalidate_waiting(d, symbol):
    """Answer a symbol's waiting request INVALIDATED; return whether there was one. The caller counts the answer."""
    if withdraw(d.queue, d.order, d.state, symbol) == 0:
        return False
    post(d, d.draft_words, symbol, _INVALIDATED)
    bump(d.counters, WITHDRAWN, 1)
    return True


@internal(void(DESK_TYPE, int64))
def count_invalidated(d, symbol):
    """Count one INVALIDATED answer, of a request or not."""
    bump(d.counters, INVALIDATED, 1)
    count_symbol(d.per_symbol, symbol, SYMBOL_INVALIDATED)


@internal(int64(DESK_TYPE))
def post_all_invalidated(d):
    """Answer INVALIDATED for every symbol, whether a request waits or not: the rows are gone; return how many."""
    n = d.budget_ns.size
    for symbol in range(n):
        d.valid_from[symbol] = d.newest[symbol] + uint64(1)  # what is in flight is void too
        if not invalidate_waiting(d, symbol):
            post(d, d.draft_words, symbol, _INVALIDATED)
        count_invalidated(d, symbol)
    return n


@internal(int64(DESK_TYPE, int64))
def post_expired(d, now_ns):
    """Answer everything EXPIRED whose deadline has come; return how many."""
    n = withdraw_expired(d.queue, d.order, d.state, now_ns, d.chosen)
    for i in range(n):
        post(d, d.draft_words, d.chosen[i], _EXPIRED)
        count_symbol(d.per_symbol, d.chosen[i], SYMBOL_EXPIRED)
    bump(d.counters, EXPIRED, n)
    return n


@internal(boolean(DESK_TYPE))
def has_room(d):
    """Say whether rows may be taken without running out of places for their answers (I1)."""
    return d.loop[0].outbox_end + d.budget_ns.size + OUTBOX_SPARE <= d.outbox.size


@internal(int64(DESK_TYPE, uint64[::1]))
def flush(d, producer):
    """Publish the outbox; return how many answers went out. Sets `refused` when the ring takes no more (I2)."""
    loop = d.loop[0]
    sent = int64(0)
    refused = int64(0)
    while loop.outbox_first < loop.outbox_end:
        n = min(loop.outbox_end - loop.outbox_first, _PUBLISH_AT_ONCE)
        if publish(producer, d.outbox_words, loop.outbox_first, n) == BACK_PRESSURE:
            refused = 1
            break
        loop.outbox_first += n
        sent += n
    if refused > loop.refused:
        bump(d.counters, BACK_PRESSURE_COUNT, 1)
    loop.refused = refused
    left = loop.outbox_end - loop.outbox_first
    if loop.outbox_first > 0:
        for i in range(left):
            for k in range(_RECORD_WORDS):
                d.outbox_words[i, k] = d.outbox_words[loop.outbox_first + i, k]
        loop.outbox_first = 0
        loop.outbox_end = left
    return sent
