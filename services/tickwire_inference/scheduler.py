"""The scheduler: the compiled loop with its desk and its two rings, as the body of a hot thread."""

from __future__ import annotations

from collections.abc import Callable

from tickwire.ring import Consumer, Producer
from tickwire_inference.engines import HostEngine
from tickwire_inference.kernels.desk import REQUESTED_DRAIN, Desk
from tickwire_inference.kernels.flight import learn
from tickwire_inference.kernels.loop import run
from tickwire_inference.kernels.rows import REPAIR
from tickwire_inference.layouts import N_BUCKETS
from tickwire_inference.stats import ENGINE_ALIVE, WINDOW_ROWS_GAUGE


class Scheduler:
    """Owns the desk while its thread runs; the event loop may only ask it to drain."""

    def __init__(self, desk: Desk, rows: Consumer, predictions: Producer, repair: Callable[[], None]) -> None:
        """Put the parts together.

        Args:
            desk: Everything the loop works on.
            rows: Consumer of the rows ring.
            predictions: Producer of the predictions ring.
            repair: Copies all windows from the store into the desk; called in the scheduler's thread.
        """
        self._desk = desk
        self._rows = rows
        self._predictions = predictions
        self._repair = repair

    def serve_with(self, engine: HostEngine, run_times_ns: tuple[int, ...]) -> None:
        """Make predictions carry this engine's identity and start from its run times. Before the thread starts."""
        desk = self._desk
        desk.model_words.view("u1")[:] = 0
        label = engine.label.encode()
        desk.model_words.view("u1")[: len(label)] = memoryview(label)
        desk.loop["engine"] = int(engine.kind)
        desk.gauges[ENGINE_ALIVE] = 1
        desk.gauges[WINDOW_ROWS_GAUGE] = engine.window_rows
        for bucket in range(N_BUCKETS):
            learn(desk.runs_ns, desk.runs, desk.p99_ns, bucket, run_times_ns[bucket])

    def body(self, stop_address: int) -> int:
        """Run the loop until it is stopped or must re-attach; repairs are dealt with here."""
        while True:
            left = int(run(self._desk, self._rows.state, self._predictions.state, stop_address))
            if left != REPAIR:
                return left
            self._repair()

    def reattach(self) -> None:
        """Go over to the new rows ring, with windows as the store holds them now."""
        self._rows.reattach()
        self._repair()

    def request_drain(self) -> None:
        """Ask for answers to everything that waits; no more rows are taken."""
        self._desk.requested[REQUESTED_DRAIN] = 1

    @property
    def drained(self) -> bool:
        """Whether everything is answered and published after `request_drain`."""
        return bool(self._desk.drained[0])
