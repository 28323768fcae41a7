"""Writing ticks by hand: what a venue's messages look like on the ticks ring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tickwire.records import TICK, GapReason, RecordArray, Side, TickFlag, TickKind, TradingStatus

Level = tuple[int, int]  # (price_units, quantity_units)


class TickTape:
    """Ticks in order; each call appends one message, at `time_ns` plus what `wait` has added."""

    def __init__(self, time_ns: int = 1_000_000_000_000) -> None:
        self.time_ns = time_ns
        self.number = 0  # venue_sequence of the newest message
        self._ticks: list[RecordArray] = []

    def wait(self, nanoseconds: int) -> TickTape:
        """Let time pass."""
        self.time_ns += nanoseconds
        return self

    def snapshot(self, symbol: int, bids: Sequence[Level], asks: Sequence[Level]) -> TickTape:
        """A complete book."""
        self.number += 1
        self._add(symbol, TickKind.SNAPSHOT_BEGIN, end=False)
        for side, levels in ((Side.BID, bids), (Side.ASK, asks)):
            for price, quantity in levels:
                self._add(symbol, TickKind.SNAPSHOT_LEVEL, side, price, quantity, end=False)
        self._add(symbol, TickKind.SNAPSHOT_END)
        return self

    def deltas(self, symbol: int, *changes: tuple[Side, int, int], end: bool = True) -> TickTape:
        """One message of level changes (side, price, quantity)."""
        self.number += 1
        for i, (side, price, quantity) in enumerate(changes):
            self._add(symbol, TickKind.DELTA, side, price, quantity, end=end and i == len(changes) - 1)
        return self

    def quote(self, symbol: int, bid: Level, ask: Level, ahead: int = 1) -> TickTape:
        """Best bid and ask, `ahead` of the newest message's number (0 or less: not newer than it)."""
        self.number += max(ahead, 0)
        self._add(symbol, TickKind.QUOTE, Side.NONE, *bid)
        tick = self._ticks[-1]
        tick["ask_price_units"], tick["ask_quantity_units"] = ask
        tick["venue_sequence"] = self.number + min(ahead, 0)
        return self

    def trade(self, symbol: int, side: Side, price: int, quantity: int, end: bool = True) -> TickTape:
        """A print."""
        self._add(symbol, TickKind.TRADE, side, price, quantity, end=end)
        return self

    def status(self, symbol: int, status: TradingStatus) -> TickTape:
        """Trading status."""
        self._add(symbol, TickKind.STATUS, status=int(status))
        return self

    def gap(self, symbol: int, reason: GapReason = GapReason.SEQUENCE) -> TickTape:
        """Events are missing."""
        self._add(symbol, TickKind.GAP, status=int(reason))
        return self

    def order(self, symbol: int, kind: TickKind, side: Side, price: int, quantity: int) -> TickTape:
        """An L3 message."""
        self._add(symbol, kind, side, price, quantity)
        return self

    def barrier(self, number: int) -> TickTape:
        """A closed-loop barrier."""
        self._add(0, TickKind.BARRIER)
        self._ticks[-1]["barrier_id"] = number
        return self

    @property
    def ticks(self) -> RecordArray:
        """All of it, shape (n,), ring sequences from 0."""
        ticks = np.concatenate(self._ticks) if self._ticks else np.zeros(0, dtype=TICK)
        ticks["sequence"] = np.arange(len(ticks))
        return ticks

    def _add(
        self,
        symbol: int,
        kind: TickKind,
        side: Side = Side.NONE,
        price: int = 0,
        quantity: int = 0,
        *,
        end: bool = True,
        status: int = 0,
    ) -> None:
        tick = np.zeros(1, dtype=TICK)
        tick["symbol_id"], tick["kind"], tick["side"], tick["status"] = symbol, kind, side, status
        tick["flags"] = TickFlag.EVENT_END if end else 0
        tick["price_units"], tick["quantity_units"] = price, quantity
        tick["venue_sequence"] = self.number
        tick["venue_time_ns"] = self.time_ns - 1_000
        tick["receive_time_ns"] = self.time_ns
        tick["receive_mono_ns"] = self.time_ns + 7
        tick["publish_mono_ns"] = self.time_ns + 9
        self._ticks.append(tick)
