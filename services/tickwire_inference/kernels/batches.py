"""Batches: closed and launched here, and taken back from the engine thread as answers."""

from __future__ import annotations

from numba import int64, uint8, uint32, uint64, void

from tickwire.records import PREDICTION, PredictionKind
from tickwire.ring.words import load_acquire_32
from tickwire.runtime.kernels import bump, record_ns, set_gauge
from tickwire_inference.kernels.answers import count_invalidated, post
from tickwire_inference.kernels.counting import count_symbol
from tickwire_inference.kernels.decision import LAUNCH, decide
from tickwire_inference.kernels.desk import DESK_TYPE, MODEL_WORDS, internal
from tickwire_inference.kernels.flight import begin_batch, end_batch
from tickwire_inference.kernels.queue import withdraw_batch
from tickwire_inference.kernels.slots import signal, word_address
from tickwire_inference.layouts import (
    COMPLETED,
    MAX_BATCH,
    MAX_IN_FLIGHT,
    ROW_OK,
    ROW_OVERRUN,
    SUBMITTED,
)
from tickwire_inference.stats import (
    BATCHES,
    ENGINE_ALIVE,
    ENGINE_NS,
    FAILED_BATCHES,
    FAILED_ENGINE,
    FAILED_OUTPUT,
    FAILED_OVERRUN,
    FIRST_BATCH_SIZE,
    FIRST_FLUSH_REASON,
    LATE,
    PREDICTIONS,
    QUEUE_WAIT_NS,
    ROW_TO_PREDICTION_NS,
    SYMBOL_FAILED,
    SYMBOL_PREDICTIONS,
    WITHDRAWN,
)

_RECORD_WORDS = PREDICTION.itemsize // 8
_MODEL_AT = PREDICTION.fields["model"][1] // 8  # type: ignore[index]

_PREDICTION = int(PredictionKind.PREDICTION)
_FAILED = int(PredictionKind.FAILED)
_INVALIDATED = int(PredictionKind.INVALIDATED)


@internal(void(DESK_TYPE, int64, int64, int64))
def _launch(d, reason, size, now_ns):
    loop = d.loop[0]
    slot = int64(loop.batch_sequence % uint64(MAX_IN_FLIGHT))
    n = withdraw_batch(d.queue, d.order, d.state, size, d.chosen)
    begin_batch(d.state, n, now_ns)
    loop.batch_sequence += uint64(1)
    latest_ns = int64(0)
    for i in range(n):
        place = slot * MAX_BATCH + i
        for k in range(_RECORD_WORDS):
            d.batch_words[place, k] = d.draft_words[d.chosen[i], k]
        answer = d.batches[place]
        answer.flush_reason = uint8(reason)
        answer.batch_size = uint8(n)
        answer.batch_sequence = loop.batch_sequence
        answer.batch_mono_ns = now_ns
        latest_ns = max(latest_ns, answer.deadline_mono_ns)
        record_ns(d.histograms[QUEUE_WAIT_NS], now_ns - answer.row_mono_ns)
    d.slots[slot].size = n
    d.slots[slot].deadline_ns = latest_ns
    bump(d.counters, BATCHES, 1)
    bump(d.counters, FIRST_BATCH_SIZE + n - 1, 1)
    bump(d.counters, FIRST_FLUSH_REASON + reason - 1, 1)
    signal(d.mailbox, SUBMITTED, uint32(loop.batch_sequence))


@internal(int64(DESK_TYPE, int64))
def launch_batches(d, now_ns):
    """Close and launch batches as long as the decision says so; return how many."""
    n = int64(0)
    while True:
        action, reason, size = decide(d.queue, d.order, d.state, d.p99_ns, now_ns)
        if action != LAUNCH:
            return n
        _launch(d, reason, size, now_ns)
        n += 1


@internal(int64(DESK_TYPE, int64, int64))
def _outcome(d, slot, i):
    # What one row of a finished batch is answered with; counts it.
    answer = d.batches[slot * MAX_BATCH + i]
    symbol = int64(answer.symbol_id)
    status = d.status[slot, i]
    if answer.row_sequence < d.valid_from[symbol]:
        bump(d.counters, WITHDRAWN, 1)  # the book became void while the batch ran
        count_invalidated(d, symbol)
        return _INVALIDATED
    if d.slots[slot].engine_failed == 0 and status == ROW_OK:
        bump(d.counters, PREDICTIONS, 1)
        count_symbol(d.per_symbol, symbol, SYMBOL_PREDICTIONS)
        return _PREDICTION
    if status == ROW_OVERRUN:
        bump(d.counters, FAILED_OVERRUN, 1)
    elif d.slots[slot].engine_failed != 0:
        bump(d.counters, FAILED_ENGINE, 1)
    else:
        bump(d.counters, FAILED_OUTPUT, 1)
    count_symbol(d.per_symbol, symbol, SYMBOL_FAILED)
    return _FAILED


@internal(void(DESK_TYPE, int64, int64))
def _take_back(d, slot, now_ns):
    command = d.slots[slot]
    for i in range(command.size):
        kind = _outcome(d, slot, i)
        place = post(d, d.batch_words, slot * MAX_BATCH + i, kind)
        for k in range(MODEL_WORDS):
            d.outbox_words[place, _MODEL_AT + k] = d.model_words[slot, k]
        answer = d.outbox[place]
        answer.engine = uint8(command.engine)
        answer.engine_start_mono_ns = command.start_ns
        answer.engine_end_mono_ns = command.end_ns
        if kind == _PREDICTION:
            answer.probability_down = d.probabilities[slot, i, 0]
            answer.probability_flat = d.probabilities[slot, i, 1]
            answer.probability_up = d.probabilities[slot, i, 2]
            record_ns(d.histograms[ROW_TO_PREDICTION_NS], now_ns - answer.row_mono_ns)
            if command.end_ns > answer.deadline_mono_ns:
                bump(d.counters, LATE, 1)
    bump(d.counters, FAILED_BATCHES, command.engine_failed)
    set_gauge(d.gauges, ENGINE_ALIVE, 1 - command.engine_failed)
    record_ns(d.histograms[ENGINE_NS], command.end_ns - command.start_ns)
    end_batch(d.state, d.runs_ns, d.runs, d.p99_ns, command.end_ns)


@internal(int64(DESK_TYPE, int64))
def take_results(d, now_ns):
    """Turn the batches that the engine thread has finished into answers; return how many batches."""
    n = int64(0)
    while d.state[0].in_flight > 0:
        taken = d.loop[0].batch_sequence - uint64(d.state[0].in_flight)
        # SYNC slot: the results of every batch below the count.
        if load_acquire_32(word_address(d.mailbox, COMPLETED)) == uint32(taken):
            break
        _take_back(d, int64(taken % uint64(MAX_IN_FLIGHT)), now_ns)
        n += 1
    return n
