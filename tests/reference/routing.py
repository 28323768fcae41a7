"""The router's decoding in plain Python: one symbol table, dictionaries, one prediction at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tickwire.records import Action, PredictionKind, SignalKind, SignalReason

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Decision:
    """What a signal says, without its trace."""

    symbol_id: int
    kind: SignalKind
    action: Action
    reason: SignalReason
    quantity_units: int = 0
    limit_price_units: int = 0


@dataclass(frozen=True)
class PlainRule:
    """Thresholds as the 32-bit floats that probabilities are."""

    enter: np.float32
    leave: np.float32
    quantity_units: int
    limit_offset: int


@dataclass
class PlainRouter:
    """Decodes as the kernel does, written for reading."""

    rules: list[PlainRule]
    max_age_ns: int
    max_signals_per_s: int
    closed_loop: bool
    killed_symbols: set[int] = field(default_factory=set)
    killed_globally: bool = False
    said: dict[int, Action] = field(default_factory=dict)
    acted_ns: dict[int, list[int]] = field(default_factory=dict)

    def decode(self, prediction: np.void, now_ns: int) -> Decision | None:
        """The signal that a prediction leads to."""
        kind, symbol = PredictionKind(int(prediction["kind"])), int(prediction["symbol_id"])
        if kind is PredictionKind.BARRIER:
            return Decision(symbol, SignalKind.BARRIER, Action.HOLD, SignalReason.MODEL)
        if symbol >= len(self.rules):
            return None
        decision = self._decide(kind, symbol, prediction, now_ns)
        if decision is not None:
            self.said[symbol] = decision.action
        return decision

    def withdraw_killed(self) -> list[Decision]:
        """What is withdrawn when the kill switch has changed."""
        decisions = []
        for symbol in range(len(self.rules)):
            reason = self._kill_reason(symbol)
            if reason is not None and self._last(symbol) is not Action.HOLD:
                self.said[symbol] = Action.HOLD
                decisions.append(Decision(symbol, SignalKind.WITHDRAWN, Action.HOLD, reason))
        return decisions

    def _decide(self, kind: PredictionKind, symbol: int, prediction: np.void, now_ns: int) -> Decision | None:
        killed = self._kill_reason(symbol)
        unusable = {
            PredictionKind.EXPIRED: SignalReason.EXPIRED,
            PredictionKind.FAILED: SignalReason.ENGINE_FAILED,
            PredictionKind.INVALIDATED: SignalReason.BOOK_INVALID,
        }.get(kind)
        if killed is not None or unusable is not None:
            reason = killed if killed is not None else unusable
            assert reason is not None
            if self._last(symbol) is not Action.HOLD:
                return Decision(symbol, SignalKind.WITHDRAWN, Action.HOLD, reason)
            if reason is SignalReason.BOOK_INVALID:
                return None
            return Decision(symbol, SignalKind.SIGNAL, Action.HOLD, reason)
        return self._act(symbol, prediction, now_ns)

    def _act(self, symbol: int, prediction: np.void, now_ns: int) -> Decision:
        def hold(reason: SignalReason) -> Decision:
            return Decision(symbol, SignalKind.SIGNAL, Action.HOLD, reason)

        rule = self.rules[symbol]
        if not self.closed_loop and now_ns - int(prediction["receive_mono_ns"]) > self.max_age_ns:
            return hold(SignalReason.STALE)
        action = self._wanted(rule, self._last(symbol), prediction["probability_down"], prediction["probability_up"])
        bid, ask = int(prediction["bid_price_units"]), int(prediction["ask_price_units"])
        if action is Action.HOLD:
            return hold(SignalReason.BELOW_THRESHOLD)
        if min(bid, ask) <= 0:
            return hold(SignalReason.BOOK_INVALID)
        time_ns = int(prediction["receive_time_ns" if self.closed_loop else "receive_mono_ns"])
        newest = self.acted_ns.setdefault(symbol, [])[-self.max_signals_per_s :]
        if len(newest) == self.max_signals_per_s and 0 <= time_ns - newest[0] < SECOND_NS:
            return hold(SignalReason.RISK_LIMIT)
        self.acted_ns[symbol].append(time_ns)
        limit = ask + rule.limit_offset if action is Action.BUY else max(bid - rule.limit_offset, 1)
        return Decision(symbol, SignalKind.SIGNAL, action, SignalReason.MODEL, rule.quantity_units, limit)

    @staticmethod
    def _wanted(rule: PlainRule, last: Action, down: np.float32, up: np.float32) -> Action:
        if max(down, up) >= rule.enter:
            return Action.BUY if up >= down else Action.SELL
        if last is Action.BUY and up >= rule.leave:
            return Action.BUY
        if last is Action.SELL and down >= rule.leave:
            return Action.SELL
        return Action.HOLD

    def _last(self, symbol: int) -> Action:
        return self.said.get(symbol, Action.HOLD)

    def _kill_reason(self, symbol: int) -> SignalReason | None:
        if self.killed_globally:
            return SignalReason.KILLED_GLOBAL
        return SignalReason.KILLED_SYMBOL if symbol in self.killed_symbols else None
