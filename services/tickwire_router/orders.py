"""The seam to an order management system. Off the hot path: an adapter reads the signals ring as a strategy does."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol

from tickwire.client import Action, Lapped, SignalBatch, SignalKind, SignalReader

_SUMMARY_EVERY_S = 1.0


class OrderAdapter(Protocol):
    """Turns signals into orders. Runs in the router's event loop; restarted with back-off when it dies."""

    async def run(self, signals: SignalReader) -> None:
        """Handle signals from now on, until cancelled."""


class LogAdapter:
    """Sends nothing: logs once a second what an order management system would have got."""

    def __init__(self, log: Any) -> None:
        """Remember where to log."""
        self._log = log

    async def run(self, signals: SignalReader) -> None:
        """Log a line for each second in which there was something."""
        while True:
            await asyncio.sleep(_SUMMARY_EVERY_S)
            lost_before = signals.lost
            counts = _count(signals)
            if counts:
                self._log.info("orders_summary", **counts, lost_signals=signals.lost - lost_before)


def _count(signals: SignalReader) -> Counter[str]:
    counts: Counter[str] = Counter()
    while True:
        found = signals.poll()
        if isinstance(found, Lapped):
            continue
        if not len(found) and not signals.wait(0.0):  # a batch is empty also when there were only barriers
            return counts
        counts.update(_names(found))


def _names(batch: SignalBatch) -> Counter[str]:
    records = batch.records
    signals = records[records["kind"] == SignalKind.SIGNAL]
    names: Counter[str] = Counter()
    for action in (Action.BUY, Action.SELL):
        names[f"{action.name.lower()}_signals"] = int((signals["action"] == action).sum())
    names["withdrawn_signals"] = int((records["kind"] == SignalKind.WITHDRAWN).sum())
    return +names
