"""Processes for client tests: `python tests/signal_processes.py PREFIX COUNT BATCH` publishes numbered signals.

Prints `ready` when the ring exists, waits for a line on its standard input, publishes, prints `done`, and keeps the
ring until its standard input ends.
"""

from __future__ import annotations

import sys

import numpy as np

from tickwire.records import SIGNAL, Action, Instrument, RecordArray, SignalKind, SymbolTable
from tickwire.ring import Producer
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.topology import SIGNALS

SYMBOLS = SymbolTable(
    [
        Instrument(venue="v", name="A", price_increment="0.01", quantity_increment="0.001"),
        Instrument(venue="w", name="B/USD", price_increment="0.5", quantity_increment="10"),
    ]
)


def signals_of(first: int, count: int) -> RecordArray:
    """Signals whose every value follows from their number; every seventh is a WITHDRAWN."""
    numbers = np.arange(first, first + count)
    records: RecordArray = np.zeros(count, SIGNAL)
    records["symbol_id"] = numbers % len(SYMBOLS)
    records["kind"] = np.where(numbers % 7 == 0, SignalKind.WITHDRAWN, SignalKind.SIGNAL)
    records["action"] = np.where(numbers % 7 == 0, Action.HOLD, 1 + numbers % 2)
    records["prediction_sequence"] = numbers
    records["quantity_units"] = np.where(numbers % 7 == 0, 0, 3)
    records["limit_price_units"] = np.where(numbers % 7 == 0, 0, numbers)
    records["receive_mono_ns"] = 1 + numbers
    records["model"] = b"test@1"
    return records


def main(prefix: str, count: int, batch: int) -> None:
    publish_symbols(prefix, SYMBOLS)
    with Producer.attach(prefix, SIGNALS, symbol_table_hash=SYMBOLS.hash) as producer:
        print("ready", flush=True)
        sys.stdin.readline()
        for first in range(0, count, batch):
            producer.publish(signals_of(first, min(batch, count - first)))
        print("done", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
