"""A signal as a strategy sees it: names instead of ids, decimals instead of increments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import overload

import msgspec
import numpy as np

from tickwire.records import Action, EngineKind, RecordArray, SignalKind, SignalReason, SymbolTable


class Signal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One signal. Times are nanoseconds; `*_mono_ns` is CLOCK_MONOTONIC of this host."""

    sequence: int
    """Number on the signals ring."""
    symbol: str
    """`venue:name`."""
    symbol_id: int
    kind: SignalKind
    """SIGNAL, or WITHDRAWN: the symbol's last BUY or SELL no longer holds."""
    action: Action
    reason: SignalReason
    quantity: Decimal
    """0 for HOLD."""
    limit_price: Decimal | None
    """None for HOLD."""
    probability_down: float
    probability_flat: float
    probability_up: float
    model: str
    """`name@version`, empty when no model spoke."""
    engine: EngineKind
    venue_time_ns: int
    """Wall clock of the venue, 0 where it sends none."""
    receive_time_ns: int
    """Wall clock at the socket."""
    receive_mono_ns: int
    publish_mono_ns: int

    @property
    def tick_to_signal_ns(self) -> int | None:
        """Time from the socket to the signal's publication; None for a withdrawal that no tick caused."""
        return self.publish_mono_ns - self.receive_mono_ns if self.receive_mono_ns else None


class SignalBatch(Sequence[Signal]):
    """Signals in the order of the ring. Owns its memory: it stays valid after the next poll."""

    def __init__(self, records: RecordArray, symbols: SymbolTable) -> None:
        """Wrap records of the signals ring.

        Args:
            records: Structured array of dtype `tickwire.records.SIGNAL`; not copied.
            symbols: The symbol table of the ring.
        """
        self.records = records
        """The same signals as a structured numpy array, every stage's stamp included."""
        self._symbols = symbols

    def __len__(self) -> int:
        """Return the number of signals."""
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Signal: ...

    @overload
    def __getitem__(self, index: slice) -> SignalBatch: ...

    def __getitem__(self, index: int | slice) -> Signal | SignalBatch:
        """Return one signal, or a part of the batch."""
        if isinstance(index, slice):
            return SignalBatch(self.records[index], self._symbols)
        return _signal_of(self.records[index], self._symbols)

    def __iter__(self) -> Iterator[Signal]:
        """Iterate over the signals."""
        for record in self.records:
            yield _signal_of(record, self._symbols)


def _signal_of(record: np.void, symbols: SymbolTable) -> Signal:
    symbol_id = int(record["symbol_id"])
    instrument = symbols[symbol_id]
    action = Action(int(record["action"]))
    return Signal(
        sequence=int(record["sequence"]),
        symbol=instrument.label,
        symbol_id=symbol_id,
        kind=SignalKind(int(record["kind"])),
        action=action,
        reason=SignalReason(int(record["reason"])),
        quantity=instrument.quantity(int(record["quantity_units"])),
        limit_price=None if action is Action.HOLD else instrument.price(int(record["limit_price_units"])),
        probability_down=float(record["probability_down"]),
        probability_flat=float(record["probability_flat"]),
        probability_up=float(record["probability_up"]),
        model=record["model"].decode(),
        engine=EngineKind(int(record["engine"])),
        venue_time_ns=int(record["venue_time_ns"]),
        receive_time_ns=int(record["receive_time_ns"]),
        receive_mono_ns=int(record["receive_mono_ns"]),
        publish_mono_ns=int(record["publish_mono_ns"]),
    )
