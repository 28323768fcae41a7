"""The worker: the compiled loop with its desk and its two rings, as the body of a hot thread."""

from __future__ import annotations

from tickwire.ring import Consumer, Lapped, Producer
from tickwire_router.kernels.desk import Desk
from tickwire_router.kernels.loop import run
from tickwire_router.kernels.outbox import publish_outbox
from tickwire_router.kernels.restore import restore
from tickwire_router.kernels.withdrawal import withdraw


class Worker:
    """Owns the desk while its thread runs; the event loop may only set the kill switch."""

    def __init__(self, desk: Desk, predictions: Consumer, signals: Producer, published: Consumer) -> None:
        """Go on where an earlier process of the router ended.

        Args:
            desk: Everything the loop works on; nothing decoded yet.
            predictions: Consumer of the predictions ring.
            signals: Producer of the signals ring.
            published: Consumer of the signals ring, at its oldest record; read to its end here.
        """
        self._desk = desk
        self._predictions = predictions
        self._signals = signals
        while True:
            found = published.poll()
            if isinstance(found, Lapped):
                continue
            if not len(found):
                break
            restore(desk, found)

    def body(self, stop_address: int) -> int:
        """Run the loop until it is stopped or must re-attach."""
        return int(run(self._desk, self._predictions.state, self._signals.state, stop_address))

    def reattach(self) -> None:
        """Withdraw what the old predictions ring led to and go over to the new one. In the worker's thread."""
        withdraw(self._desk, True)
        publish_outbox(self._desk, self._signals.state)
        self._desk.progress["prediction_mono_ns"] = 0  # the new ring's sequences start anew: nothing is to be skipped
        self._predictions.reattach()
