"""One line a second about what features did, and a warning for each kind of loss that grew."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire.runtime import Stats
from tickwire_features.stats import FEATURES_STATS

_WARNINGS = {
    "lost_ticks": "ring_lapped",
    "rows_not_finite": "rows_not_finite",
    "orders_ignored": "orders_ignored",
    "ticks_unknown": "ticks_unknown",
    "levels_dropped": "levels_dropped",
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
        grown = dict(zip(FEATURES_STATS.counters, (now - self._last).tolist(), strict=True))
        self._last = now
        if not any(grown.values()):
            return
        self._log.info("features_summary", **{name: value for name, value in grown.items() if value})
        for counter, event in _WARNINGS.items():
            if grown[counter]:
                self._log.warning(event, **{counter: grown[counter]})
