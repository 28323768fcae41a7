"""What a strategy imports, and nothing else: the reader of the signals ring.

    from tickwire.client import Action, Lapped, SignalReader

    with SignalReader("tickwire") as reader:  # the run's prefix
        while not reader.stopped:
            batch = reader.poll() if reader.wait(timeout_s=1.0) else ()
            if isinstance(batch, Lapped):
                print("too slow, lost", batch.lost)
                continue
            for signal in batch:
                if signal.action is not Action.HOLD:
                    print(signal.symbol, signal.action.name, signal.quantity, signal.limit_price)

Needs the base dependencies only.
"""

from tickwire.client.reader import SignalReader
from tickwire.client.signal import Signal, SignalBatch
from tickwire.records import Action, SignalKind, SignalReason
from tickwire.ring import Lapped, Start, WaitStrategy

__all__ = [
    "Action",
    "Lapped",
    "Signal",
    "SignalBatch",
    "SignalKind",
    "SignalReader",
    "SignalReason",
    "Start",
    "WaitStrategy",
]
