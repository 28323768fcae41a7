"""What the router's kernels keep: every field of a prediction, the place of a restart, the memory of what was said."""

from __future__ import annotations

import numpy as np
import pytest

from tickwire.records import PREDICTION, SIGNAL, Action, PredictionKind, SignalKind, SignalReason
from tickwire.runtime import private_stats
from tickwire_router.config import Rule
from tickwire_router.kernels.decode import decide, decode, take_turn
from tickwire_router.kernels.desk import new_desk
from tickwire_router.kernels.restore import restore
from tickwire_router.kernels.withdrawal import withdraw
from tickwire_router.stats import ROUTER_STATS

RULE = Rule(0.6, 0.4, 7, 2)
RENAMED = {"sequence": "prediction_sequence", "publish_mono_ns": "prediction_mono_ns"}


def make_desk(n_symbols=2, max_signals_per_s=10):
    return new_desk([RULE] * n_symbols, 10**18, max_signals_per_s, False, private_stats(ROUTER_STATS, n_symbols))


def predictions_of(n, up=0.9, **fields):
    """Predictions with distinct values in every field."""
    records = np.zeros(n, PREDICTION)
    for number, name in enumerate(PREDICTION.names or ()):
        if PREDICTION[name].kind in "iu" and name != "reserved":
            records[name] = number + 10 * np.arange(1, n + 1)
    records["symbol_id"] = 0
    records["kind"] = PredictionKind.PREDICTION
    records["probability_down"], records["probability_flat"], records["probability_up"] = 0.03, 0.07, up
    records["model"] = b"a-model-whose-label-takes-up-39@1.2.3456"[:39]
    for name, value in fields.items():
        records[name] = value
    return records


def decoded(desk, records, now_ns=0):
    desk.predictions[: len(records)] = records
    count = decode(desk, len(records), now_ns)
    desk.progress["outbox_end"] = 0
    return desk.outbox[:count].copy()


def counter(desk, name):
    return int(desk.counters[ROUTER_STATS.counter(name)])


def test_decode_prediction_carries_every_field_it_has_in_common():
    """Identity, probabilities, stamps and model label of a prediction stand in its signal."""
    prediction = predictions_of(1)
    (signal,) = decoded(make_desk(), prediction)
    assert signal["kind"] == SignalKind.SIGNAL
    assert signal["action"] == Action.BUY
    assert signal["quantity_units"] == RULE.quantity_units
    assert signal["limit_price_units"] == prediction["ask_price_units"][0] + RULE.limit_offset_increments
    shared = set(PREDICTION.names or ()) & set(SIGNAL.names or ()) - {"kind", "reserved", *RENAMED}
    assert {"model", "barrier_id", "engine_end_mono_ns", "venue_time_ns", "batch_size"} <= shared
    for name in shared:
        assert signal[name] == prediction[name][0], name
    for name, renamed in RENAMED.items():
        assert signal[renamed] == prediction[name][0]


@pytest.mark.parametrize(
    ("last", "down", "up", "expected"),
    [
        (Action.HOLD, 0.0, 0.6, Action.BUY),
        (Action.HOLD, 0.0, 0.59, Action.HOLD),
        (Action.BUY, 0.0, 0.4, Action.BUY),
        (Action.BUY, 0.0, 0.39, Action.HOLD),
        (Action.BUY, 0.6, 0.4, Action.SELL),
        (Action.SELL, 0.4, 0.3, Action.SELL),
        (Action.SELL, 0.3, 0.4, Action.HOLD),
        (Action.HOLD, 0.6, 0.6, Action.BUY),
        (Action.BUY, float("nan"), float("nan"), Action.HOLD),
    ],
)
def test_decide_thresholds_enter_and_leave(last, down, up, expected):
    """I2: an action begins at `enter`, goes on at `leave`, turns round at once, and NaN asks for nothing."""
    assert decide(int(last), *np.float32([down, up, 0.6, 0.4])) == expected


def test_take_turn_any_second_holds_at_most_the_limit():
    """I4: the next action after a full second's worth is allowed exactly one second after the oldest of them."""
    second_ns = 1_000_000_000
    acted_ns, acted_at = np.full((1, 2), -(2**62)), np.zeros(1, np.int64)
    times_ns = [0, 400, 400, second_ns - 1, second_ns, second_ns + 399, second_ns + 400]
    allowed = [take_turn(acted_ns, acted_at, 0, time_ns) for time_ns in times_ns]
    assert allowed == [True, True, False, False, True, False, True]


def test_take_turn_clock_that_starts_over_is_allowed():
    """I4: a capture that starts over is not held back by times of its last round."""
    acted_ns, acted_at = np.full((1, 1), -(2**62)), np.zeros(1, np.int64)
    assert take_turn(acted_ns, acted_at, 0, 50_000_000_000)
    assert take_turn(acted_ns, acted_at, 0, 0)
    assert not take_turn(acted_ns, acted_at, 0, 1)


def test_decode_unknown_symbol_or_kind_is_counted_and_says_nothing():
    """A record of a symbol or a kind that does not exist neither writes out of bounds nor makes a signal."""
    desk = make_desk()
    assert len(decoded(desk, predictions_of(1, symbol_id=2))) == 0
    assert len(decoded(desk, predictions_of(1, symbol_id=2**32 - 1, sequence=50))) == 0
    assert len(decoded(desk, predictions_of(1, kind=77, sequence=60))) == 0
    assert counter(desk, "predictions_unknown") == 3


def test_restore_own_signals_skip_what_was_answered_and_withdraw_what_was_said():
    """A restarted router answers nothing twice, goes on with the hysteresis, and withdraws an old BUY."""
    before = make_desk()
    said = decoded(before, predictions_of(3, symbol_id=[0, 1, 0]))
    after = make_desk()
    restore(after, said)
    assert after.last_action.tolist() == [Action.BUY, Action.BUY]
    again = predictions_of(4, symbol_id=[0, 1, 0, 1], up=0.45)
    found = decoded(after, again)
    assert found["prediction_sequence"].tolist() == again["sequence"][3:].tolist()
    assert found["action"].tolist() == [Action.BUY], "0.45 is below enter and above leave: a BUY that goes on"
    assert counter(after, "predictions_skipped") == 3
    invalid = predictions_of(2, symbol_id=0, kind=PredictionKind.INVALIDATED)
    invalid["sequence"] += 100
    (signal,) = decoded(after, invalid)
    assert (signal["kind"], signal["reason"]) == (SignalKind.WITHDRAWN, SignalReason.BOOK_INVALID)


def test_restore_new_predictions_ring_with_low_sequences_skips_nothing():
    """Predictions that were published after the newest signal's are new, whatever their sequence says."""
    desk = make_desk()
    restore(desk, decoded(make_desk(), predictions_of(1, sequence=900)))
    fresh = predictions_of(1, sequence=0, publish_mono_ns=10_000)
    assert len(decoded(desk, fresh)) == 1


def test_restore_rate_limit_counts_signals_of_the_last_process():
    """I4: a restart does not open the rate limit anew."""
    desk = make_desk(max_signals_per_s=2)
    restore(desk, decoded(make_desk(), predictions_of(2)))
    third = predictions_of(1, sequence=500)
    assert decoded(desk, third)["reason"].tolist() == [SignalReason.RISK_LIMIT]


def test_withdraw_everything_withdraws_each_standing_signal_once():
    """Lost predictions withdraw every BUY and SELL, once, as of the newest prediction."""
    desk = make_desk(3)
    newest = decoded(desk, predictions_of(2, symbol_id=[0, 2]))["prediction_sequence"][-1]
    assert withdraw(desk, True) == 2
    found = desk.outbox[:2]
    assert found["symbol_id"].tolist() == [0, 2]
    assert (found["kind"] == SignalKind.WITHDRAWN).all()
    assert (found["prediction_sequence"] == newest).all()
    desk.progress["outbox_end"] = 0
    assert withdraw(desk, True) == 0
