"""One line a second about what the router said, and a warning for each kind of loss that grew."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire.runtime import Stats
from tickwire_router.stats import ROUTER_STATS

_WARNINGS = {
    "lost_predictions": "ring_lapped",
    "predictions_failed": "predictions_failed",
    "predictions_unknown": "predictions_unknown",
    "reason_stale": "predictions_stale",
}
"""Counters whose growth is a loss or a degradation, and the event that says so."""


class Summary:
    """Compares the counters with those of the last line."""

    def __init__(self, log: Any, stats: Stats) -> None:
        """Start from the counters as they are."""
        self._log = log
        self._stats = stats
        self._last: npt.NDArray[np.uint64] = stats.counters.copy()

    def log(self) -> None:
        """Log what has happened since the last call; nothing if nothing has."""
        now = self._stats.counters.copy()
        grown = dict(zip(ROUTER_STATS.counters, (now - self._last).tolist(), strict=True))
        self._last = now
        if not any(grown.values()):
            return
        self._log.info("router_summary", **{name: value for name, value in grown.items() if value})
        for counter, event in _WARNINGS.items():
            if grown[counter]:
                self._log.warning(event, **{counter: grown[counter]})
