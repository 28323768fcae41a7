"""One line a second about what inference answered, and a warning for each kind of loss that grew."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire_inference.stats import INFERENCE_STATS

_WARNINGS = {
    "lost_rows": "ring_lapped",
    "rows_not_finite": "rows_not_finite",
    "expired": "requests_expired",
    "late": "predictions_late",
    "failed_input": "predictions_failed",
    "failed_output": "predictions_failed",
    "failed_overrun": "predictions_failed",
    "failed_engine": "predictions_failed",
    "back_pressure": "predictions_refused",
}
"""Counters whose growth is a loss or a degradation, and the event that says so."""


class Summary:
    """Compares the counters with those of the last line."""

    def __init__(self, log: Any, counters: npt.NDArray[np.uint64]) -> None:
        """Start from the counters as they are."""
        self._log = log
        self._counters = counters
        self._last = counters.copy()

    def log(self) -> None:
        """Log what has happened since the last call; nothing if nothing has."""
        now = self._counters.copy()
        grown = dict(zip(INFERENCE_STATS.counters, (now - self._last).tolist(), strict=True))
        self._last = now
        if not any(grown.values()):
            return
        self._log.info("inference_summary", **{name: value for name, value in grown.items() if value})
        for counter, event in _WARNINGS.items():
            if grown[counter]:
                self._log.warning(event, **{counter: grown[counter]})
