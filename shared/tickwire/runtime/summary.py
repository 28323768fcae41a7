"""One line a second about what a service did, and a warning for each kind of loss that grew."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire.runtime.stats import StatsSpec

EVERY_S = 1.0


class CounterSummary:
    """Compares a service's counters with those of the last line."""

    def __init__(
        self,
        log: Any,
        event: str,
        spec: StatsSpec,
        counters: npt.NDArray[np.uint64],
        warnings: Mapping[str, str],
    ) -> None:
        """Start from the counters as they are.

        Args:
            log: A structlog logger.
            event: Name of the line.
            spec: Names of the counters.
            counters: Shape (n,); go on changing.
            warnings: Counters whose growth is a loss or a degradation, and the event that says so.
        """
        self._log = log
        self._event = event
        self._spec = spec
        self._counters = counters
        self._warnings = warnings
        self._last = counters.copy()

    def log(self) -> None:
        """Log what has happened since the last call; nothing if nothing has."""
        now = self._counters.copy()
        grown = dict(zip(self._spec.counters, (now - self._last).tolist(), strict=True))
        self._last = now
        if not any(grown.values()):
            return
        self._log.info(self._event, **{name: value for name, value in grown.items() if value})
        for counter, event in self._warnings.items():
            if grown[counter]:
                self._log.warning(event, **{counter: grown[counter]})

    async def run(self) -> None:
        """Log once a second; a task of the service."""
        while True:
            await asyncio.sleep(EVERY_S)
            self.log()
