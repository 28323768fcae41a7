"""Which engine serves a batch: the primary behind its breaker, then the fallbacks in order.

I1  The primary is replaced only between two batches, by the engine thread; the old one is handed back for closing.
I2  A batch on which an engine raises goes on to the next one: it fails only when all have failed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from tickwire.errors import EngineError
from tickwire_inference.breaker import Breaker, BreakerState, Outcome, Permit
from tickwire_inference.engines import HostEngine


class Lineup:
    """Engines by preference. `choose` and `settle` belong to the engine thread, `offer` to the event loop."""

    def __init__(self, primary: HostEngine | None, fallbacks: Sequence[HostEngine], breaker: Breaker) -> None:
        """Take the engines, warmed.

        Args:
            primary: The configured engine; None where it is missing and the fallbacks serve.
            fallbacks: Whoever serves while the breaker is open, best first.
            breaker: Guards the primary.

        Raises:
            EngineError: There is no engine, or a fallback needs more rows than the one that it stands in for.
        """
        self.primary = primary
        self.fallbacks = tuple(fallbacks)
        self.breaker = breaker
        engines = [*([primary] if primary is not None else []), *fallbacks]
        if not engines:
            raise EngineError("inference: must have an engine, has none")
        self.window_rows = engines[0].window_rows
        for engine in engines[1:]:
            if engine.window_rows > self.window_rows:
                raise EngineError(
                    f"fallback {engine.label}: must need at most the {self.window_rows} rows of {engines[0].label}, "
                    f"needs {engine.window_rows}"
                )
        self._offered: HostEngine | None = None
        self._replaced: HostEngine | None = None
        self._taken = threading.Event()
        self._lock = threading.Lock()

    @property
    def degraded(self) -> bool:
        """Whether something else than the primary serves."""
        return self.primary is None or self.breaker.state is not BreakerState.CLOSED

    def choose(self, now_ns: int) -> Iterator[tuple[HostEngine, Permit]]:
        """Yield who is to try a batch, one after the other, until one has served it (I2)."""
        self._take_offer()
        if self.primary is not None:
            permit = self.breaker.permit(now_ns)
            if permit is not Permit.FALLBACK or not self.fallbacks:
                yield self.primary, permit
        for engine in self.fallbacks:
            yield engine, Permit.FALLBACK

    def settle(self, permit: Permit, outcome: Outcome, now_ns: int) -> None:
        """Tell the breaker how the primary did; it has no say where nobody else could serve."""
        if self.fallbacks:
            self.breaker.settle(permit, outcome, now_ns)

    def offer(self, engine: HostEngine) -> None:
        """Let the engine thread take `engine` as its primary before the next batch.

        Raises:
            EngineError: It needs another number of rows, so that requests that wait could not be served.
        """
        if engine.window_rows != self.window_rows:
            raise EngineError(
                f"model {engine.label}: must need windows of {self.window_rows} rows as the running one does, needs "
                f"{engine.window_rows}; restart inference with it"
            )
        with self._lock:
            self._taken.clear()
            self._offered = engine

    def wait_taken(self, timeout_s: float) -> bool:
        """Wait until the offered engine serves; say whether it does. If not, it is not offered any more."""
        if self._taken.wait(timeout_s):
            return True
        with self._lock:
            self._offered = None
        return self._taken.is_set()

    def take_replaced(self) -> HostEngine | None:
        """Return the engine that was replaced, once: it runs no more and can be closed."""
        replaced, self._replaced = self._replaced, None
        return replaced

    def idle(self) -> None:
        """Take an offered engine although no batch comes. Engine thread."""
        self._take_offer()

    def close(self) -> None:
        """Give back what the engines hold. After the engine thread has ended."""
        for engine in (self._offered, self._replaced, self.primary, *self.fallbacks):
            if engine is not None:
                engine.close()

    def _take_offer(self) -> None:
        if self._offered is None:
            return
        with self._lock:
            if self._offered is not None:
                self._replaced, self.primary, self._offered = self.primary, self._offered, None
                self.breaker.reset()
                self._taken.set()
