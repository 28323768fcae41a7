"""What a restarted router knows from its own signals: what each symbol's newest one says, and what was answered."""

from __future__ import annotations

from numba import from_dtype, int64, uint64, void

from tickwire.kernel import kernel
from tickwire.records import SIGNAL, Action, SignalKind
from tickwire_router.kernels.decode import take_turn
from tickwire_router.kernels.desk import DESK_TYPE


@kernel(void(DESK_TYPE, from_dtype(SIGNAL)[::1]))
def restore(d, signals):
    """Take over the state that published signals show, oldest first.

    Args:
        d: The desk of a router that has decoded nothing yet.
        signals: Records of the signals ring, in order, shape (n,).
    """
    progress = d.progress[0]
    for i in range(signals.size):
        signal = signals[i]
        progress.next_prediction = signal.prediction_sequence + uint64(1)
        progress.prediction_mono_ns = signal.prediction_mono_ns
        symbol = int64(signal.symbol_id)
        if signal.kind == SignalKind.BARRIER or symbol >= d.last_action.size:
            continue
        d.last_action[symbol] = signal.action
        if signal.action != Action.HOLD:
            time_ns = signal.receive_mono_ns
            if d.event_clock[0] != 0:
                time_ns = signal.receive_time_ns
            take_turn(d.acted_ns, d.acted_at, symbol, time_ns)
