"""What a strategy imports, and nothing else: the reader of the signals ring.

    from tickwire.client import Action, Lapped, SignalReader

    with SignalReader("tickwire") as reader:
        while reader.wait(timeout_s=1.0):
            batch = reader.poll()

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
