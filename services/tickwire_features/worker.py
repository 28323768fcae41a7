"""The worker: the compiled loop with its desk, its two rings and the windows store, as the body of a hot thread."""

from __future__ import annotations

from tickwire.records import GapReason
from tickwire.ring import Consumer, Producer
from tickwire.runtime import StatsArrays
from tickwire_features.kernels.desk import Desk
from tickwire_features.kernels.loop import publish_records, run
from tickwire_features.kernels.ticks import invalidate_all


class Worker:
    """Owns the desk while its thread runs."""

    def __init__(self, desk: Desk, ticks: Consumer, rows: Producer, stats: StatsArrays) -> None:
        """Say that no book is known, to whoever still acts on the last process's rows.

        Args:
            desk: Everything the loop works on.
            ticks: Consumer of the ticks ring.
            rows: Producer of the rows ring.
            stats: Where to count.
        """
        self._desk = desk
        self._ticks = ticks
        self._rows = rows
        self._stats = stats
        self._distrust(GapReason.START)

    def body(self, stop_address: int) -> int:
        """Run the loop until it is stopped or must re-attach."""
        return int(run(self._desk, self._ticks.state, self._rows.state, self._stats, stop_address))

    def reattach(self) -> None:
        """Go over to the new ticks ring; what the old one said is not continued. In the worker's thread."""
        self._ticks.reattach()
        self._distrust(GapReason.RESYNC)

    def _distrust(self, reason: GapReason) -> None:
        invalidate_all(self._desk, int(reason))
        publish_records(self._desk, self._rows.state, self._stats)
