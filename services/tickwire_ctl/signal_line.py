"""A signal as one line of text."""

from __future__ import annotations

import time

from tickwire.client import Signal
from tickwire.records import Action, SignalKind


def signal_line(signal: Signal) -> str:
    """Return receive time, symbol, action, order, probabilities, reason, model and tick-to-signal."""
    seconds, nanoseconds = divmod(signal.receive_time_ns, 1_000_000_000)
    clock = time.strftime("%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1_000_000:03d}"
    action = "WITHDRAWN" if signal.kind is SignalKind.WITHDRAWN else signal.action.name
    order = "" if signal.action is Action.HOLD else f"{signal.quantity:f} @ {signal.limit_price:f}"
    shares = f"{signal.probability_down:.2f}/{signal.probability_flat:.2f}/{signal.probability_up:.2f}"
    took_ns = signal.tick_to_signal_ns
    took = f"{took_ns / 1e3:8.0f} us" if took_ns is not None else " " * 11
    return (
        f"{clock}  {signal.symbol:<22} {action:<9} {order:<26} {shares}  "
        f"{signal.reason.name.lower():<15} {signal.model:<14} {took}"
    )
