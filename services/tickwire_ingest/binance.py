"""Binance: depth, trade and bookTicker streams with REST snapshots, spot and USD-M futures.

Where it stands: first stage of the tick path, in ingest's feed thread.

I1  A depth message that cannot be read is a gap: its symbol is invalid until the next snapshot joins.
I2  Trades and quotes never change the book; one that cannot be read is only counted.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from tickwire.records import GapReason, Side, TickKind
from tickwire_ingest.binance_sync import DeltaIds, DepthSync, Verdict
from tickwire_ingest.desk import COUNTER, Desk
from tickwire_ingest.feed import REASONS, Complaint, Feed, text_of
from tickwire_ingest.frames import Frame
from tickwire_ingest.kernels.events import mark
from tickwire_ingest.kernels.levels import levels_to_ticks, quote_to_tick
from tickwire_ingest.messages import BinanceData, BinanceMessage, decode_binance

MILLISECOND = 1_000_000
_SNAPSHOT_LEVEL, _DELTA = int(TickKind.SNAPSHOT_LEVEL), int(TickKind.DELTA)
_QUOTE, _TRADE = int(TickKind.QUOTE), int(TickKind.TRADE)
_BID, _ASK = int(Side.BID), int(Side.ASK)
_QUOTES, _TRADES, _DELTAS, _SNAPSHOTS = (COUNTER[name] for name in ("quotes", "trades", "deltas", "snapshots"))
_MARKET = "MARKET"

Delta = tuple[BinanceData, Frame]


class BinanceFeed(Feed):
    """One combined stream of Binance. A REST snapshot names no symbol: a capture holds one."""

    def __init__(self, desk: Desk, path: Path, complain: Complaint, *, futures: bool) -> None:
        """Write to `desk`."""
        self.venue = "binance_usdm" if futures else "binance_spot"
        super().__init__(desk, path, complain)
        self._futures = futures
        self._syncs: dict[int, DepthSync[Delta]] = {}
        self._seen: int | None = None
        self._unused_ns = np.zeros(1, dtype=np.int64)

    def take(self, frame: Frame) -> None:
        """Turn one line into ticks."""
        if frame.fault is not None:
            return self._unreadable(frame, frame.fault)
        try:
            message = decode_binance(frame.payload)
        except msgspec.MsgspecError as error:
            return self._unreadable(frame, f"not a Binance message: {error}")
        data = message.data
        if data is None:
            if message.last_update_id is None:
                return self.unknown(frame, "message: neither a stream's nor a depth snapshot")
            return self._snapshot(message, frame)
        symbol_id = self.symbol_ids.get(data.symbol)
        if symbol_id is None:
            self.symbol_of(data.symbol)
            return None
        if data.kind == "bookTicker":
            return self._quote(symbol_id, data, frame)
        if data.kind == "trade":
            return self._trade(symbol_id, data, frame)
        if data.kind == "depthUpdate":
            self._seen = symbol_id
            return self._delta(symbol_id, data, frame)
        return self.unknown(frame, f"event {data.kind!r}")

    def restart(self) -> None:
        """Forget all synchronisation."""
        self._syncs.clear()
        self._seen = None

    def _quote(self, symbol_id: int, data: BinanceData, frame: Frame) -> None:
        ticks = self.desk.ticks
        mark(ticks, 0, symbol_id, _QUOTE)
        text = text_of(b"".join((data.bids, data.bid_quantity, data.asks, data.ask_quantity)))
        reason = quote_to_tick(ticks, 0, text, _QUOTE, self.desk.scales[symbol_id])
        if reason:
            return self.corrupt(frame, f"bookTicker: {REASONS[reason]}")
        return self.desk.emit(1, data.last, data.event_time_ms * MILLISECOND, frame.receive_time_ns, _QUOTES)

    def _trade(self, symbol_id: int, data: BinanceData, frame: Frame) -> None:
        if data.origin != _MARKET:
            return self.desk.count("ignored_trades")
        ticks = self.desk.ticks
        mark(ticks, 0, symbol_id, _TRADE)
        text = text_of(b"".join((data.price, data.quantity)))
        reason = quote_to_tick(ticks, 0, text, _TRADE, self.desk.scales[symbol_id])
        if reason:
            return self.corrupt(frame, f"trade: {REASONS[reason]}")
        # The maker is the passive side: a buyer who is maker was hit by a seller.
        ticks[0]["side"] = _ASK if data.buyer_is_maker else _BID
        return self.desk.emit(1, data.trade_id, data.event_time_ms * MILLISECOND, frame.receive_time_ns, _TRADES)

    def _delta(self, symbol_id: int, data: BinanceData, frame: Frame) -> None:
        sync = self._sync(symbol_id)
        ids = DeltaIds(data.first, data.last, data.previous)
        verdict = sync.on_delta(ids, (data, frame))
        if verdict is Verdict.STALE:
            self.desk.count("stale_deltas")
        elif verdict is Verdict.GAP:
            self.desk.count("gaps")
            self.lose(symbol_id, GapReason.SEQUENCE, frame.receive_time_ns)
        elif verdict is Verdict.APPLY:
            self._apply_delta(symbol_id, data, frame)

    def _apply_delta(self, symbol_id: int, data: BinanceData, frame: Frame) -> None:
        n = self._levels(0, symbol_id, data.bids, _DELTA, _BID)
        if n >= 0:
            n = self._levels(n, symbol_id, data.asks, _DELTA, _ASK)
        if n < 0:
            self.corrupt(frame, f"depthUpdate: {REASONS[n]}")
            self._sync(symbol_id).reset()
            return self.lose(symbol_id, GapReason.CORRUPT, frame.receive_time_ns)
        if n == 0:
            return self.desk.count("deltas")  # updates that cancelled each other out
        self.desk.apply(n, symbol_id, data.last)
        return self.desk.emit(n, data.last, data.event_time_ms * MILLISECOND, frame.receive_time_ns, _DELTAS)

    def _snapshot(self, message: BinanceMessage, frame: Frame) -> None:
        symbol_id = self._seen if self._seen is not None else self._only_symbol()
        if symbol_id is None:
            return self.unknown(frame, "depth snapshot: no symbol has been seen that it could belong to")
        sync = self._sync(symbol_id)
        if sync.last is not None:
            return None  # in step: the deltas are newer than any snapshot
        n = mark(self.desk.ticks, 0, symbol_id, int(TickKind.SNAPSHOT_BEGIN))
        n = self._levels(n, symbol_id, message.bids, _SNAPSHOT_LEVEL, _BID)
        if n >= 0:
            n = self._levels(n, symbol_id, message.asks, _SNAPSHOT_LEVEL, _ASK)
        if n < 0 or n == len(self.desk.ticks):
            return self.corrupt(frame, f"depth snapshot: {REASONS[min(n, -1)]}")
        assert message.last_update_id is not None
        waiting = sync.on_snapshot(message.last_update_id)
        if waiting is None:
            self.desk.count("stale_snapshots")
            return self._complain(
                f"{self.path}:{frame.line}", "depth snapshot is too old to join the deltas; not applied"
            )
        n = mark(self.desk.ticks, n, symbol_id, int(TickKind.SNAPSHOT_END))
        self.desk.apply(n, symbol_id, message.last_update_id)
        self.desk.set_valid(symbol_id, True)
        venue_time_ns = message.event_time_ms * MILLISECOND
        self.desk.emit(n, message.last_update_id, venue_time_ns, frame.receive_time_ns, _SNAPSHOTS)
        for _, (data, buffered) in waiting:
            # Buffered deltas arrive, for everybody behind, with the snapshot that made them usable.
            self._delta(symbol_id, data, buffered._replace(receive_time_ns=frame.receive_time_ns))
        return None

    def _levels(self, n: int, symbol_id: int, text: msgspec.Raw, kind: int, side: int) -> int:
        desk = self.desk
        return int(
            levels_to_ticks(
                desk.ticks, n, text_of(text), symbol_id, kind, side, desk.scales[symbol_id], self._unused_ns
            )
        )

    def _unreadable(self, frame: Frame, reason: str) -> None:
        # The line may have been a depth message of any symbol of this stream: none can be trusted (I1).
        self.corrupt(frame, reason)
        for symbol_id, sync in self._syncs.items():
            if sync.last is not None:
                sync.reset()
                self.lose(symbol_id, GapReason.CORRUPT, frame.receive_time_ns)

    def _sync(self, symbol_id: int) -> DepthSync[Delta]:
        sync = self._syncs.get(symbol_id)
        if sync is None:
            sync = self._syncs[symbol_id] = DepthSync(self._futures)
        return sync

    def _only_symbol(self) -> int | None:
        return next(iter(self.symbol_ids.values())) if len(self.symbol_ids) == 1 else None
