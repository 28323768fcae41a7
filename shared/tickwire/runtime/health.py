"""Whether a service lives and whether it is ready: judged from its statistics, with the time as an argument.

I1  Alive: every hot thread that has begun has turned within `LIVE_WITHIN_S`. That the event loop turns is shown by its
    answering at all.
I2  Ready: READY, alive, and data came within `data_fresh_s`, counted from READY on where none has come yet: services
    wait for one another's readiness before the first tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tickwire.runtime.context import ServiceContext
from tickwire.runtime.lifecycle import ServiceState

LIVE_WITHIN_S = 5.0
"""Hot threads turn at least ten times a second, whether there is work or not; one batch of an engine is one turn."""

_TURN = "turn_mono_ns"


class Health:
    """Looks at one service from within its event loop."""

    def __init__(self, context: ServiceContext[Any]) -> None:
        """Judge the service of this context."""
        self._context = context
        self._data_total = 0
        self._data_mono_ns = 0

    def look(self, now_ns: int) -> None:
        """Note whether data has come since the last look; call it a few times a second."""
        total = sum(
            int(stats.counters[spec.counter(spec.data_counter)])
            for spec, stats in self._context.stats
            if spec.data_counter is not None
        )
        if total != self._data_total:
            self._data_total, self._data_mono_ns = total, now_ns

    def data_age_s(self, now_ns: int) -> float | None:
        """Return how long no data has come (I2); None before READY and for a service that takes no data."""
        takes_data = any(spec.data_counter is not None for spec, _ in self._context.stats)
        if self._context.state is not ServiceState.READY or not takes_data:
            return None
        return max(now_ns - max(self._data_mono_ns, self._context.state_mono_ns), 0) / 1e9

    def why_not_live(self, now_ns: int) -> str | None:
        """Return which hot thread hangs, None if all is well (I1)."""
        for thread, turn_ns in self._turns():
            age_s = (now_ns - turn_ns) / 1e9
            if turn_ns and age_s > LIVE_WITHIN_S:
                return f"hot thread {thread!r}: must turn within {LIVE_WITHIN_S:g} s, last did {age_s:.1f} s ago"
        return None

    def why_not_ready(self, now_ns: int) -> str | None:
        """Return why the service is not to be relied on, None if it is (I2)."""
        state = self._context.state
        if state is not ServiceState.READY:
            return f"service {self._context.name!r}: must be READY, is {state.name}"
        age_s, fresh_s = self.data_age_s(now_ns), self._context.run.table.data_fresh_s
        if age_s is not None and age_s > fresh_s:
            name = next(spec.data_counter for spec, _ in self._context.stats if spec.data_counter is not None)
            return f"data: must have come within {fresh_s:g} s, no {name} for {age_s:.1f} s"
        return self.why_not_live(now_ns)

    def _turns(self) -> Iterator[tuple[str, int]]:
        # A finished feed has ended its thread on purpose: the service then ends by itself.
        for spec, stats in self._context.stats:
            for name, value in zip(spec.gauges, stats.gauges.view(np.int64).tolist(), strict=True):
                if name.endswith(_TURN):
                    yield name.removesuffix(_TURN).rstrip("_") or self._context.name, value
