"""Which signals reach the terminal, and how one line of them reads."""

from __future__ import annotations

import numpy as np
import pytest

from signal_processes import SYMBOLS
from tickwire.client.signal import SignalBatch
from tickwire.records import SIGNAL, Action, SignalKind, SignalReason
from tickwire_ctl.signal_line import signal_line
from tickwire_ctl.stream import LINES_PER_SECOND, SAMPLES_PER_SECOND, SignalStream


def batch_of(*actions: tuple[int, Action], kind: SignalKind = SignalKind.SIGNAL) -> SignalBatch:
    """One signal for each symbol id and action."""
    records = np.zeros(len(actions), SIGNAL)
    records["symbol_id"] = [symbol_id for symbol_id, _ in actions]
    records["action"] = [action for _, action in actions]
    records["kind"] = kind
    records["quantity_units"] = [3 if action else 0 for _, action in actions]
    records["limit_price_units"] = [5 if action else 0 for _, action in actions]
    return SignalBatch(records, SYMBOLS)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def stream(lines) -> SignalStream:
    return SignalStream(lines.append)


def actions_in(lines: list[str]) -> list[str]:
    return [line.split()[2] for line in lines]


def test_stream_change_of_action_is_printed_beyond_the_samples(stream, lines):
    """When the second's samples are used up, a symbol's new action still gets its line."""
    hold, buy = (0, Action.HOLD), (0, Action.BUY)
    stream.show(batch_of(*[hold] * 50), 10.0)
    assert actions_in(lines) == ["HOLD"] * SAMPLES_PER_SECOND
    stream.show(batch_of(buy, buy, hold), 10.1)
    assert actions_in(lines[SAMPLES_PER_SECOND:]) == ["BUY", "HOLD"]


def test_stream_symbols_change_on_their_own(stream, lines):
    """A symbol's action is compared with its own last one, not with the last line's."""
    stream.show(batch_of(*[(0, Action.HOLD)] * SAMPLES_PER_SECOND), 10.0)
    del lines[:]
    stream.show(batch_of((0, Action.BUY), (1, Action.SELL), (0, Action.BUY), (1, Action.SELL)), 10.0)
    assert [line.split()[1:3] for line in lines] == [["v:A", "BUY"], ["w:B/USD", "SELL"]]


@pytest.mark.parametrize("first", [Action.HOLD, Action.BUY])
def test_stream_lines_of_a_second_are_bounded_and_all_signals_counted(stream, lines, first):
    """However fast actions change, a second has so many lines; the next one starts anew; nothing goes uncounted."""
    flips = [(0, Action.BUY), (0, Action.SELL)] * 100
    steady = [(1, first)] * 100
    stream.show(batch_of(*flips, *steady), 10.0)
    assert len(lines) == LINES_PER_SECOND
    stream.show(batch_of(*flips, *steady), 10.9)
    assert len(lines) == LINES_PER_SECOND
    stream.show(batch_of(*steady, *flips), 11.0)
    assert len(lines) == 2 * LINES_PER_SECOND
    assert stream.seen == 900


def test_stream_withdrawal_of_a_standing_action_is_a_change(stream, lines):
    """A WITHDRAWN after a BUY is printed as what it is."""
    stream.show(batch_of((0, Action.BUY)), 10.0)
    stream.show(batch_of((0, Action.HOLD), kind=SignalKind.WITHDRAWN), 10.0)
    assert actions_in(lines) == ["BUY", "WITHDRAWN"]


def test_stream_empty_batch_prints_nothing(stream, lines):
    """Barriers alone make an empty batch."""
    stream.show(batch_of(), 10.0)
    assert (stream.seen, lines) == (0, [])


def test_signal_line_has_every_value_with_its_unit():
    """Time of day, symbol, action, order, probabilities, reason, model, microseconds."""
    batch = batch_of((1, Action.SELL))
    record = batch.records[0]
    record["receive_time_ns"] = ((13 * 60 + 5) * 60 + 9) * 1_000_000_000 + 87_654_321
    record["probability_down"], record["probability_flat"], record["probability_up"] = 0.7, 0.2, 0.1
    record["reason"], record["model"] = SignalReason.MODEL, b"transformer@1"
    record["receive_mono_ns"], record["publish_mono_ns"] = 1_000, 1_235_000
    assert signal_line(batch[0]).split() == [
        "13:05:09.087",
        "w:B/USD",
        "SELL",
        "30",
        "@",
        "2.5",
        "0.70/0.20/0.10",
        "model",
        "transformer@1",
        "1234",
        "us",
    ]


def test_signal_line_of_a_withdrawal_without_a_tick_has_no_latency():
    """No order, no model, and no time that nobody measured."""
    (signal,) = batch_of((0, Action.HOLD), kind=SignalKind.WITHDRAWN)
    assert signal_line(signal).split() == ["00:00:00.000", "v:A", "WITHDRAWN", "0.00/0.00/0.00", "model"]
