"""The decode kernel against its twin in plain Python."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.routing import PlainRouter, PlainRule
from tickwire.records import PREDICTION, Action, PredictionKind, SignalKind, SignalReason
from tickwire.runtime import private_stats
from tickwire_router.config import Rule
from tickwire_router.kernels.decode import decode
from tickwire_router.kernels.desk import new_desk
from tickwire_router.kernels.withdrawal import kill_changed, set_kill, withdraw
from tickwire_router.stats import ROUTER_STATS

N_SYMBOLS = 3
BASE_NS = 1_000_000_000_000
MAX_AGE_NS = 400_000_000
FIELDS = ("symbol_id", "kind", "action", "reason", "quantity_units", "limit_price_units")

# Few values, so that ties, exact thresholds and the edges of the rate's second are common.
probability = st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
price = st.sampled_from([0, 1, 3, 1000])
rule = st.builds(
    lambda low, high, quantity, offset: Rule(max(low, high, 0.1), max(min(low, high), 0.1), quantity, offset),
    probability,
    probability,
    st.integers(1, 50),
    st.integers(-2, 5),
)
prediction = st.fixed_dictionaries(
    {
        "symbol_id": st.integers(0, N_SYMBOLS),  # the last one does not exist
        "kind": st.sampled_from([PredictionKind.PREDICTION] * 8 + list(PredictionKind)),
        "probability_down": probability,
        "probability_up": probability,
        "bid_price_units": price,
        "ask_price_units": price,
        "step_ns": st.sampled_from([0, 1, 250_000_000, 500_000_000, 999_999_999, 1_000_000_000, -3_000_000_000]),
        "age_ns": st.sampled_from([0, MAX_AGE_NS, MAX_AGE_NS + 1]),
    }
)
kill = st.fixed_dictionaries({"symbols": st.sets(st.integers(0, N_SYMBOLS - 1)), "everything": st.booleans()})


def records_of(rows, first_sequence, time_ns):
    """Predictions as they come from the ring, and the time at which each is decoded."""
    records = np.zeros(len(rows), PREDICTION)
    now_ns = []
    for i, row in enumerate(rows):
        time_ns += row["step_ns"]
        for name in PREDICTION.names or ():
            if name in row:
                records[name][i] = row[name]
        records["sequence"][i] = first_sequence + i
        records["publish_mono_ns"][i] = BASE_NS + first_sequence + i
        records["receive_mono_ns"][i] = time_ns
        records["receive_time_ns"][i] = 7 * BASE_NS + time_ns
        now_ns.append(time_ns + row["age_ns"])
    return records, now_ns, time_ns


def take(desk):
    """The outbox's signals as plain tuples; empties it."""
    count = int(desk.progress["outbox_end"][0])
    desk.progress["outbox_end"] = 0
    return [tuple(int(signal[name]) for name in FIELDS) for signal in desk.outbox[:count]]


def plain(decisions):
    return [tuple(int(value) for value in astuple(decision)) for decision in decisions if decision is not None]


@settings(max_examples=150, deadline=None)
@given(
    rules=st.lists(rule, min_size=N_SYMBOLS, max_size=N_SYMBOLS),
    max_signals_per_s=st.integers(1, 3),
    closed_loop=st.booleans(),
    steps=st.lists(st.one_of(st.lists(prediction, min_size=1, max_size=12), kill), max_size=8),
)
def test_decode_any_predictions_and_kills_equals_the_plain_twin(rules, max_signals_per_s, closed_loop, steps):
    """I1-I4: kernel and twin give the same signals for any predictions, thresholds, prices, ages and kills."""
    stats = private_stats(ROUTER_STATS, N_SYMBOLS)
    desk = new_desk(rules, MAX_AGE_NS, max_signals_per_s, closed_loop, stats)
    twin = PlainRouter(
        [
            PlainRule(
                np.float32(r.enter_probability),
                np.float32(r.exit_probability),
                r.quantity_units,
                r.limit_offset_increments,
            )
            for r in rules
        ],
        MAX_AGE_NS,
        max_signals_per_s,
        closed_loop,
    )
    sequence, time_ns, said = 0, BASE_NS, []
    for generation, step in enumerate(steps, 1):
        if isinstance(step, dict):
            killed = np.zeros(N_SYMBOLS + 1, np.uint8)
            killed[list(step["symbols"])] = 1
            killed[-1] = step["everything"]
            set_kill(desk, killed, generation)
            assert kill_changed(desk)
            withdraw(desk, False)
            twin.killed_symbols, twin.killed_globally = step["symbols"], step["everything"]
            expected = twin.withdraw_killed()
        else:
            records, now_ns, time_ns = records_of(step, sequence, time_ns)
            expected = []
            for record, now in zip(records, now_ns, strict=True):
                desk.predictions[0] = record
                decode(desk, 1, now)
                expected.append(twin.decode(record, now))
            sequence += len(records)
        found = take(desk)
        assert found == plain(expected)
        said += found
    assert not kill_changed(desk)
    check_counters(stats, said)


def check_counters(stats, said):
    """Counters by action, reason and symbol agree with the signals."""

    def counter(name):
        return int(stats.counters[ROUTER_STATS.counter(name)])

    own = [signal for signal in said if signal[1] != SignalKind.BARRIER]
    for action in Action:
        signals = [s for s in own if s[1] == SignalKind.SIGNAL and s[2] == action]
        assert counter(f"signals_{action.name.lower()}") == len(signals)
        for symbol in range(N_SYMBOLS):
            column = ROUTER_STATS.symbol_column(action.name.lower())
            assert stats.per_symbol[symbol, column] == sum(s[0] == symbol for s in signals)
    assert counter("signals_withdrawn") == sum(s[1] == SignalKind.WITHDRAWN for s in own)
    assert counter("barriers") == len(said) - len(own)
    for reason in SignalReason:
        assert counter(f"reason_{reason.name.lower()}") == sum(s[3] == reason for s in own)
