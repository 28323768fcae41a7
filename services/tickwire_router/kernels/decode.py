"""Decoding: one prediction becomes at most one signal.

I1  A prediction of a symbol in play becomes one signal: BUY or SELL with quantity and limit, or HOLD with the reason.
I2  Hysteresis continues what was published last: whatever makes a signal HOLD ends the BUY or SELL for good.
I3  Killed, expired, failed or invalidated: WITHDRAWN, once, when the symbol's newest signal is BUY or SELL. Otherwise
    HOLD with the reason, and nothing for an invalidated book.
I4  Within any second at most `max_signals_per_s` BUY and SELL signals of a symbol.
"""

from __future__ import annotations

from numba import boolean, float32, int64, uint8, uint64

from tickwire.kernel import inlined, kernel
from tickwire.records import Action, PredictionKind, SignalKind, SignalReason
from tickwire.runtime.kernels import bump
from tickwire_router.kernels.counting import count_signal
from tickwire_router.kernels.desk import DESK_TYPE
from tickwire_router.kernels.outbox import copy_trace, new_signal
from tickwire_router.stats import (
    BARRIERS,
    PREDICTIONS,
    PREDICTIONS_EXPIRED,
    PREDICTIONS_FAILED,
    PREDICTIONS_INVALIDATED,
    PREDICTIONS_SKIPPED,
    PREDICTIONS_UNKNOWN,
)

_HOLD, _BUY, _SELL = int(Action.HOLD), int(Action.BUY), int(Action.SELL)
_SIGNAL, _WITHDRAWN, _BARRIER = int(SignalKind.SIGNAL), int(SignalKind.WITHDRAWN), int(SignalKind.BARRIER)
_SECOND_NS = 1_000_000_000


@kernel(int64(int64, float32, float32, float32, float32))
def decide(last_action, down, up, enter, leave):
    """Return the action that probabilities ask for (I2); NaN asks for HOLD.

    Args:
        last_action: What the symbol's newest signal says.
        down: Probability of a fall.
        up: Probability of a rise.
        enter: From here on a BUY or SELL begins; the greater probability decides, a tie is a BUY.
        leave: From here on one goes on.
    """
    if up >= enter and up >= down:
        return int64(_BUY)
    if down >= enter and down > up:
        return int64(_SELL)
    if (last_action == _BUY and up >= leave) or (last_action == _SELL and down >= leave):
        return int64(last_action)
    return int64(_HOLD)


@kernel(boolean(int64[:, ::1], int64[::1], int64, int64))
def take_turn(acted_ns, acted_at, symbol, time_ns):
    """Return whether the rate allows a BUY or SELL now, and remember it if so (I4).

    A time before the oldest remembered one is that of a new run of the clock (a capture that starts over): allowed.
    """
    at = acted_at[symbol]
    since = time_ns - acted_ns[symbol, at]
    if 0 <= since < _SECOND_NS:
        return False
    acted_ns[symbol, at] = time_ns
    acted_at[symbol] = (at + 1) % acted_ns.shape[1]
    return True


@inlined
def kill_reason(d, symbol):
    """Return why the symbol is killed, -1 if it is not."""
    if d.killed[d.killed.size - 1] != 0:
        return int64(SignalReason.KILLED_GLOBAL)
    if d.killed[symbol] != 0:
        return int64(SignalReason.KILLED_SYMBOL)
    return int64(-1)


@inlined
def _say(d, at, kind, action, reason):
    # A signal about polled prediction `at` goes out; its place in the outbox.
    prediction = d.predictions[at]
    symbol = int64(prediction.symbol_id)
    place = new_signal(d, symbol, kind, action, reason)
    copy_trace(d, place, at)
    d.last_action[symbol] = uint8(action)
    count_signal(d, symbol, kind, action, reason)
    return place


@inlined
def _give_up(d, at, reason):
    # The symbol has no usable prediction (I3).
    symbol = int64(d.predictions[at].symbol_id)
    if d.last_action[symbol] != _HOLD:
        _say(d, at, _WITHDRAWN, _HOLD, reason)
    elif reason != SignalReason.BOOK_INVALID:
        _say(d, at, _SIGNAL, _HOLD, reason)


@inlined
def _order(d, at, action):
    # BUY or SELL with quantity and limit, unless prices or the rate forbid it.
    prediction = d.predictions[at]
    symbol = int64(prediction.symbol_id)
    if prediction.bid_price_units <= 0 or prediction.ask_price_units <= 0:
        _say(d, at, _SIGNAL, _HOLD, SignalReason.BOOK_INVALID)
        return
    time_ns = prediction.receive_mono_ns
    if d.event_clock[0] != 0:
        time_ns = prediction.receive_time_ns
    if not take_turn(d.acted_ns, d.acted_at, symbol, time_ns):
        _say(d, at, _SIGNAL, _HOLD, SignalReason.RISK_LIMIT)
        return
    signal = d.outbox[_say(d, at, _SIGNAL, action, SignalReason.MODEL)]
    signal.quantity_units = d.quantity_units[symbol]
    if action == _BUY:
        signal.limit_price_units = prediction.ask_price_units + d.limit_offset[symbol]
    else:
        signal.limit_price_units = max(prediction.bid_price_units - d.limit_offset[symbol], int64(1))


@inlined
def _decode_prediction(d, at, now_ns):
    bump(d.counters, PREDICTIONS, 1)
    prediction = d.predictions[at]
    symbol = int64(prediction.symbol_id)
    max_age_ns = d.max_age_ns[0]
    if max_age_ns >= 0 and now_ns - prediction.receive_mono_ns > max_age_ns:
        _say(d, at, _SIGNAL, _HOLD, SignalReason.STALE)
    else:
        action = decide(
            int64(d.last_action[symbol]),
            prediction.probability_down,
            prediction.probability_up,
            d.enter[symbol],
            d.leave[symbol],
        )
        if action == _HOLD:
            _say(d, at, _SIGNAL, _HOLD, SignalReason.BELOW_THRESHOLD)
        else:
            _order(d, at, action)
    d.timed[d.progress[0].outbox_end - 1] = 1


@inlined
def _decode_answer(d, at, now_ns):
    kind = int64(d.predictions[at].kind)
    killed = kill_reason(d, int64(d.predictions[at].symbol_id))
    if kind == PredictionKind.PREDICTION and killed < 0:
        _decode_prediction(d, at, now_ns)
        return
    reason = int64(SignalReason.BOOK_INVALID)
    if kind == PredictionKind.PREDICTION:
        bump(d.counters, PREDICTIONS, 1)
    elif kind == PredictionKind.EXPIRED:
        bump(d.counters, PREDICTIONS_EXPIRED, 1)
        reason = int64(SignalReason.EXPIRED)
    elif kind == PredictionKind.FAILED:
        bump(d.counters, PREDICTIONS_FAILED, 1)
        reason = int64(SignalReason.ENGINE_FAILED)
    elif kind == PredictionKind.INVALIDATED:
        bump(d.counters, PREDICTIONS_INVALIDATED, 1)
    else:
        bump(d.counters, PREDICTIONS_UNKNOWN, 1)
        return
    _give_up(d, at, killed if killed >= 0 else reason)


@kernel(int64(DESK_TYPE, int64, int64))
def decode(d, count, now_ns):
    """Turn the first `count` polled predictions into signals in the outbox.

    Args:
        d: The desk; its outbox has room for `count` signals.
        count: Polled predictions.
        now_ns: Monotonic time that ages are counted from.

    Returns:
        Signals in the outbox.
    """
    progress = d.progress[0]
    for at in range(count):
        prediction = d.predictions[at]
        if prediction.sequence < progress.next_prediction and prediction.publish_mono_ns <= progress.prediction_mono_ns:
            bump(d.counters, PREDICTIONS_SKIPPED, 1)
            continue
        progress.next_prediction = prediction.sequence + uint64(1)
        progress.prediction_mono_ns = prediction.publish_mono_ns
        if prediction.kind == PredictionKind.BARRIER:
            bump(d.counters, BARRIERS, 1)
            copy_trace(d, new_signal(d, int64(prediction.symbol_id), _BARRIER, _HOLD, int64(0)), at)
        elif int64(prediction.symbol_id) >= d.last_action.size:
            bump(d.counters, PREDICTIONS_UNKNOWN, 1)
        else:
            _decode_answer(d, at, now_ns)
    return progress.outbox_end
