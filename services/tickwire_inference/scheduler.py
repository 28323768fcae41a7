"""The scheduler: the compiled loop with its desk, its two rings and the windows store, as the body of a hot thread."""

from __future__ import annotations

from collections.abc import Callable

from tickwire.ring import Consumer, Producer
from tickwire.ring.kernels.state import C_REATTACH
from tickwire.windows import WindowReader
from tickwire_inference.kernels.desk import REQUESTED_DRAIN, Desk
from tickwire_inference.kernels.flight import learn
from tickwire_inference.kernels.loop import run
from tickwire_inference.kernels.repair import forget_all, repair_all
from tickwire_inference.layouts import N_BUCKETS
from tickwire_inference.stats import WINDOW_ROWS_GAUGE

AttachStore = Callable[[], WindowReader]


class Scheduler:
    """Owns the desk while its thread runs; the event loop may only ask it to drain."""

    def __init__(
        self, desk: Desk, rows: Consumer, predictions: Producer, store: WindowReader, attach_store: AttachStore
    ) -> None:
        """Copy the windows that the store holds.

        Args:
            desk: Everything the loop works on.
            rows: Consumer of the rows ring, attached before the store is copied: no row falls between the two.
            predictions: Producer of the predictions ring.
            store: The windows store; closed by this object.
            attach_store: Attaches it anew after it or the ring was replaced.
        """
        self._desk = desk
        self._rows = rows
        self._predictions = predictions
        self._attach_store = attach_store
        self._store = store
        self._copy_windows()

    def expect(self, run_times_ns: tuple[int, ...]) -> None:
        """Start from these run times of the engine's buckets. Before the thread starts."""
        desk = self._desk
        desk.gauges[WINDOW_ROWS_GAUGE] = int(desk.loop["window_rows"][0])
        for bucket in range(N_BUCKETS):
            learn(desk.runs_ns, desk.runs, desk.p99_ns, bucket, run_times_ns[bucket])

    def body(self, stop_address: int) -> int:
        """Run the loop until it is stopped or must re-attach."""
        return int(run(self._desk, self._rows.state, self._predictions.state, stop_address))

    def reattach(self) -> None:
        """Go over to the new rows ring and the windows as the store holds them now. In the scheduler's thread."""
        self._rows.reattach()
        self._store.close()
        self._store = self._attach_store()
        forget_all(self._desk)
        self._copy_windows()

    def check_generation(self) -> bool:
        """Say whether ring or store was replaced; the loop then leaves with REATTACH. Any thread."""
        if self._store.replaced():
            self._rows.state[C_REATTACH] = 1
            return True
        return self._rows.check_generation()

    def request_drain(self) -> None:
        """Ask for answers to everything that waits; no more rows are taken."""
        # SYNC drain: the loop closes what waits with DRAIN from its next turn on.
        self._desk.requested[REQUESTED_DRAIN] = 1

    @property
    def drained(self) -> bool:
        """Whether everything is answered and published after `request_drain`."""
        # SYNC drained: every answer is on the predictions ring.
        return bool(self._desk.drained[0])

    def close(self) -> None:
        """Detach the store. After the thread has ended."""
        self._store.close()

    def _copy_windows(self) -> None:
        self._desk.store[:] = self._store.state
        repair_all(self._desk)
