"""The plain twin of features: every record recomputed from scratch from a list of ticks, by the formulas' text.

Slow on purpose: dictionaries for books, and each row sums over all events of its run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tickwire.records import GapReason, RowKind, Side, TickFlag, TickKind, TradingStatus

LEVELS = 10
FLOW_LEVELS = 5
FAST_TAU_S = 1.0
SLOW_TAU_S = 10.0
TYPICAL_EVENTS = 1000

Levels = list[tuple[int, int]]  # (price, quantity), the best first


@dataclass
class Record:
    """What features says."""

    kind: RowKind
    symbol: int
    row_sequence: int
    valid_from: int
    trading: int = 1
    reason: int = 0
    bid: int = 0
    ask: int = 0
    receive_time_ns: int = 0
    features: np.ndarray = field(default_factory=lambda: np.zeros(48))


@dataclass
class Event:
    """What one event brought into a run."""

    time_s: float
    flow_top: float
    flow_levels: float
    signed: float
    traded: float
    squared_return: float
    mean_quantity: float


class Symbol:
    """One symbol's book, run and numbers."""

    def __init__(self, number: int, head: int = 0) -> None:
        self.number = number
        self.head = head
        self.valid_from = head + 1
        self.trading = 1
        self.building = self.valid = False
        self.sides: dict[Side, dict[int, int]] = {Side.BID: {}, Side.ASK: {}}
        self.update_id = 0
        self.quote: tuple[int, int, int, int, int] | None = None
        self.start_run(0)

    def start_run(self, time_ns: int) -> None:
        self.events: list[Event] = []
        self.trades: list[tuple[int, int]] = []  # (sign, quantity) of the run
        self.pending = 0  # how many of them no event has taken yet
        self.clock_ns = time_ns
        self.before: tuple[Levels, Levels] | None = None

    def invalidate(self, reason: int) -> Record:
        self.valid_from = self.head + 1
        return Record(RowKind.INVALIDATED, self.number, self.head, self.valid_from, self.trading, reason)

    def set_level(self, side: Side, price: int, quantity: int) -> None:
        if quantity > 0:
            self.sides[side][price] = quantity
        else:
            self.sides[side].pop(price, None)

    def view(self) -> tuple[Levels, Levels]:
        bids = sorted(self.sides[Side.BID].items(), reverse=True)
        asks = sorted(self.sides[Side.ASK].items())
        if self.quote is not None:
            _, bid, bid_quantity, ask, ask_quantity = self.quote
            bids = [(bid, bid_quantity)] + [level for level in bids if level[0] < bid]
            asks = [(ask, ask_quantity)] + [level for level in asks if level[0] > ask]
            bids = bids if bid_quantity > 0 else []
            asks = asks if ask_quantity > 0 else []
        return bids[:LEVELS], asks[:LEVELS]

    def usable_view(self) -> tuple[Levels, Levels] | None:
        bids, asks = self.view()
        return (bids, asks) if bids and asks and bids[0][0] < asks[0][0] else None

    def restart(self, time_ns: int) -> None:
        self.start_run(time_ns)
        self.before = self.usable_view()

    def row(self, time_ns: int, poisoned: bool) -> Record | None:
        view = self.usable_view()
        if view is None:
            return None
        features = self._features(view, time_ns)
        self.head += 1
        finite = not poisoned and bool(np.isfinite(features.astype(np.float32)).all())
        if not finite:
            features = np.zeros(48)
            self.valid_from = self.head + 1
        bids, asks = view
        row = Record(RowKind.ROW, self.number, self.head, self.valid_from, self.trading, 0, bids[0][0], asks[0][0])
        row.receive_time_ns = time_ns
        row.features = features
        if finite:
            self.before, self.pending = view, 0
            self.clock_ns = max(self.clock_ns, time_ns)
        else:
            self.start_run(max(self.clock_ns, time_ns))
        return row

    def _features(self, view: tuple[Levels, Levels], time_ns: int) -> np.ndarray:
        bids, asks = view
        now_ns = max(time_ns, self.clock_ns)
        bid, ask = bids[0][0], asks[0][0]
        mid = (bid + ask) / 2
        with np.errstate(all="ignore"):
            self.events.append(self._event(view, mid, now_ns / 1e9))
            typical = running_mean([event.mean_quantity for event in self.events])
            values: list[float] = []
            for i in range(LEVELS):
                for side in (bids, asks):
                    price = side[min(i, len(side) - 1)][0]
                    quantity = side[i][1] if i < len(side) else 0
                    values += [float(np.float64(1e4) * (price - mid) / np.float64(mid)), math.log1p(quantity / typical)]
            quantities = [quantity for _, quantity in self.trades]
            bought = self._decayed("signed", SLOW_TAU_S)
            traded = self._decayed("traded", SLOW_TAU_S)
            values += [
                slog(self._decayed("flow_top", FAST_TAU_S) / typical),
                slog(self._decayed("flow_levels", FAST_TAU_S) / typical),
                bought / (traded + running_mean(quantities)) if quantities else 0.0,
                slog(self._decayed("signed", FAST_TAU_S) / typical),
                ((bid * asks[0][1] + ask * bids[0][1]) / (bids[0][1] + asks[0][1]) - mid) / (ask - bid),
                math.log(ask - bid),
                1e4 * math.sqrt(self._decayed("squared_return", SLOW_TAU_S)),
                math.log1p((now_ns - self.clock_ns) / 1e6),
            ]
            return np.array(values)

    def _event(self, view: tuple[Levels, Levels], mid: float, time_s: float) -> Event:
        bids, asks = view
        flows = [0.0] * FLOW_LEVELS
        squared_return = 0.0
        if self.before is not None:
            bids_before, asks_before = self.before
            for i in range(FLOW_LEVELS):
                flows[i] = side_flow(bids, bids_before, i, 1) - side_flow(asks, asks_before, i, -1)
            mid_before = (bids_before[0][0] + asks_before[0][0]) / 2
            squared_return = float(np.log(np.float64(mid) / np.float64(mid_before)) ** 2)
        pending = self.trades[len(self.trades) - self.pending :]
        return Event(
            time_s=time_s,
            flow_top=flows[0],
            flow_levels=sum(flows) / FLOW_LEVELS,
            signed=sum(sign * quantity for sign, quantity in pending),
            traded=sum(quantity for _, quantity in pending),
            squared_return=squared_return,
            mean_quantity=float(np.mean([quantity for _, quantity in bids + asks])),
        )

    def _decayed(self, name: str, tau_s: float) -> float:
        now = self.events[-1].time_s
        return math.fsum(getattr(event, name) * math.exp(-(now - event.time_s) / tau_s) for event in self.events)


def side_flow(levels: Levels, before: Levels, i: int, sign: int) -> float:
    """One side's part of e_i; a missing level has the worst price of all and no quantity."""
    worst = (-math.inf, 0)
    price, quantity = (sign * levels[i][0], levels[i][1]) if i < len(levels) else worst
    old_price, old_quantity = (sign * before[i][0], before[i][1]) if i < len(before) else worst
    return (price >= old_price) * quantity - (price <= old_price) * old_quantity


def running_mean(values: list[float]) -> float:
    """The mean whose j-th value weighs 1/min(j, TYPICAL_EVENTS) when it comes."""
    weights = 1.0 / np.minimum(np.arange(1, len(values) + 1), TYPICAL_EVENTS)
    kept = np.concatenate([np.cumprod((1.0 - weights)[::-1])[::-1][1:], [1.0]])
    return float(np.sum(np.asarray(values, dtype=np.float64) * weights * kept))


def slog(value: float) -> float:
    """Signed logarithm."""
    return math.copysign(math.log1p(abs(value)), value)


def reference_records(ticks: Iterable[np.void], n_symbols: int, poisoned: frozenset[int] = frozenset()) -> list[Record]:
    """Return every record that features owes for these ticks, in order; rows of `poisoned` ticks are not finite."""
    symbols = [Symbol(number) for number in range(n_symbols)]
    records: list[Record] = []
    for i, tick in enumerate(ticks):
        records += _take(symbols, tick, i in poisoned)
    return records


def _take(symbols: list[Symbol], tick: np.void, poisoned: bool) -> list[Record]:
    kind = TickKind(int(tick["kind"]))
    if kind is TickKind.BARRIER:
        return [Record(RowKind.BARRIER, 0, 0, 0, receive_time_ns=int(tick["receive_time_ns"]))]
    if kind is TickKind.HEARTBEAT:
        return []
    symbol = symbols[int(tick["symbol_id"])]
    time_ns = int(tick["receive_time_ns"])
    price, quantity = int(tick["price_units"]), int(tick["quantity_units"])
    out: list[Record] = []
    if kind is TickKind.GAP:
        symbol.valid = symbol.building = False
        out.append(symbol.invalidate(int(tick["status"])))
    elif kind is TickKind.SNAPSHOT_BEGIN:
        if symbol.valid:
            out.append(symbol.invalidate(GapReason.RESYNC))
        symbol.valid, symbol.building = False, True
        symbol.sides = {Side.BID: {}, Side.ASK: {}}
    elif kind is TickKind.SNAPSHOT_LEVEL and symbol.building:
        symbol.set_level(Side(int(tick["side"])), price, quantity)
    elif kind is TickKind.SNAPSHOT_END and symbol.building:
        symbol.valid, symbol.building = True, False
        symbol.update_id = int(tick["venue_sequence"])
        symbol.quote = None
        symbol.restart(time_ns)
    elif kind is TickKind.STATUS:
        trading = int(tick["status"] in (TradingStatus.TRADING, TradingStatus.UNKNOWN))
        if trading != symbol.trading:
            symbol.trading = trading
            out.append(symbol.invalidate(0))
            symbol.restart(time_ns)
    elif symbol.valid and kind in (TickKind.DELTA, TickKind.QUOTE, TickKind.TRADE):
        _apply(symbol, kind, tick, price, quantity)
        if int(tick["flags"]) & TickFlag.EVENT_END and (row := symbol.row(time_ns, poisoned)) is not None:
            out.append(row)
            if row.valid_from > row.row_sequence:
                out.append(Record(RowKind.INVALIDATED, symbol.number, symbol.head, symbol.valid_from, symbol.trading))
    return out


def _apply(symbol: Symbol, kind: TickKind, tick: np.void, price: int, quantity: int) -> None:
    number = int(tick["venue_sequence"])
    if kind is TickKind.DELTA:
        symbol.set_level(Side(int(tick["side"])), price, quantity)
        symbol.update_id = number
        if symbol.quote is not None and symbol.quote[0] <= number:
            symbol.quote = None
    elif kind is TickKind.QUOTE:
        if number > symbol.update_id and (symbol.quote is None or number >= symbol.quote[0]):
            symbol.quote = (number, price, quantity, int(tick["ask_price_units"]), int(tick["ask_quantity_units"]))
    else:
        sign = {Side.BID: 1, Side.ASK: -1}.get(Side(int(tick["side"])), 0)
        symbol.trades.append((sign, quantity))
        symbol.pending += 1
