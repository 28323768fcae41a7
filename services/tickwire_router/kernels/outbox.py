"""Signals on their way out: made here, published as one batch."""

from __future__ import annotations

from numba import int64, uint8, uint32, uint64

from tickwire.kernel import inlined, kernel
from tickwire.records import PREDICTION, SIGNAL
from tickwire.ring.kernels import publish
from tickwire.ring.words import monotonic_ns
from tickwire_router.kernels.counting import time_signal
from tickwire_router.kernels.desk import DESK_TYPE

_SIGNAL_WORDS = SIGNAL.itemsize // 8
_MODEL_WORDS = SIGNAL["model"].itemsize // 8


def _first_word(dtype, field):
    return dict(dtype.fields)[field][1] // 8


_MODEL_IN_SIGNAL = _first_word(SIGNAL, "model")
_MODEL_IN_PREDICTION = _first_word(PREDICTION, "model")


@inlined
def new_signal(d, symbol, kind, action, reason):
    """Put a signal without a trace in the outbox; return its place there."""
    progress = d.progress[0]
    place = progress.outbox_end
    progress.outbox_end = place + 1
    d.timed[place] = uint8(0)
    for k in range(_SIGNAL_WORDS):
        d.outbox_words[place, k] = uint64(0)
    signal = d.outbox[place]
    signal.symbol_id = uint32(symbol)
    signal.kind = uint8(kind)
    signal.action = uint8(action)
    signal.reason = uint8(reason)
    signal.prediction_sequence = progress.next_prediction - uint64(1)
    signal.prediction_mono_ns = progress.prediction_mono_ns
    return place


@inlined
def copy_trace(d, place, at):
    """Copy what polled prediction `at` says into a signal: identity, probabilities, stamps, model."""
    signal = d.outbox[place]
    prediction = d.predictions[at]
    signal.engine = prediction.engine
    signal.row_sequence = prediction.row_sequence
    signal.barrier_id = prediction.barrier_id
    signal.probability_down = prediction.probability_down
    signal.probability_flat = prediction.probability_flat
    signal.probability_up = prediction.probability_up
    signal.batch_size = uint32(prediction.batch_size)
    signal.venue_time_ns = prediction.venue_time_ns
    signal.receive_time_ns = prediction.receive_time_ns
    signal.receive_mono_ns = prediction.receive_mono_ns
    signal.tick_mono_ns = prediction.tick_mono_ns
    signal.feature_mono_ns = prediction.feature_mono_ns
    signal.row_mono_ns = prediction.row_mono_ns
    signal.request_mono_ns = prediction.request_mono_ns
    signal.batch_mono_ns = prediction.batch_mono_ns
    signal.engine_start_mono_ns = prediction.engine_start_mono_ns
    signal.engine_end_mono_ns = prediction.engine_end_mono_ns
    for k in range(_MODEL_WORDS):
        d.outbox_words[place, _MODEL_IN_SIGNAL + k] = d.prediction_words[at, _MODEL_IN_PREDICTION + k]


@kernel(int64(DESK_TYPE, uint64[::1]))
def publish_outbox(d, producer):
    """Publish the outbox as one batch and record how long its signals took; return how many they were."""
    progress = d.progress[0]
    count = publish(producer, d.outbox_words, int64(0), progress.outbox_end)
    now_ns = monotonic_ns()
    for place in range(count):
        if d.timed[place] != 0:
            time_signal(d, place, now_ns)
    progress.outbox_end = 0
    return count
