"""When Binance's depth stream and a REST snapshot make a book: the venue's rules as pure state machines.

Sources: Binance Spot API "How to manage a local order book correctly"; USD-M Futures API, the same title.

I1  A snapshot that does not join the buffered deltas is refused, never applied.
I2  Deltas apply without a break: spot by U = previous u + 1, futures by pu = previous u.
I3  After a break nothing is applied until a snapshot joins again; the buffer is bounded.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

M = TypeVar("M")

MAX_BUFFERED = 10_000


class Verdict(Enum):
    """What is to be done with a delta."""

    APPLY = "apply"
    STALE = "stale"
    """Older than the book: dropped."""
    BUFFER = "buffer"
    """No book yet: kept for the next snapshot."""
    GAP = "gap"
    """Updates are missing: the book is invalid; the delta is kept for the next snapshot."""


class DeltaIds(NamedTuple):
    """The update ids of one depth message."""

    first: int
    """U"""
    last: int
    """u"""
    previous: int
    """pu, futures only"""


@dataclass
class DepthSync(Generic[M]):
    """One symbol's synchronisation. `M` is whatever the caller keeps of a delta."""

    futures: bool
    last: int | None = None
    """Update id up to which the book is complete; None while there is no book."""
    fresh: bool = False
    """The next delta is the first behind a snapshot."""
    buffer: deque[tuple[DeltaIds, M]] = field(default_factory=lambda: deque(maxlen=MAX_BUFFERED))

    def on_delta(self, ids: DeltaIds, message: M) -> Verdict:
        """Judge a delta; one that is not applied may be buffered."""
        if self.last is None:
            self.buffer.append((ids, message))
            return Verdict.BUFFER
        verdict = self._judge(ids)
        if verdict is Verdict.APPLY:
            self.last = ids.last
            self.fresh = False
        elif verdict is Verdict.GAP:
            self.reset()
            self.buffer.append((ids, message))
        return verdict

    def on_snapshot(self, last_update_id: int) -> list[tuple[DeltaIds, M]] | None:
        """Join a snapshot and the buffer.

        Returns:
            The buffered deltas that are not older than the snapshot, to be judged by `on_delta` in this order once the
            snapshot is applied; None if the snapshot is too old to join them (I1).
        """
        waiting = [(ids, message) for ids, message in self.buffer if not self._is_stale(ids, last_update_id)]
        if waiting and not self._joins(waiting[0][0], last_update_id):
            return None
        self.buffer.clear()
        self.last = last_update_id
        self.fresh = True
        return waiting

    def reset(self) -> None:
        """Forget the book and the buffer (I3)."""
        self.last = None
        self.fresh = False
        self.buffer.clear()

    def _judge(self, ids: DeltaIds) -> Verdict:
        assert self.last is not None
        if self.fresh:
            if self._is_stale(ids, self.last):
                return Verdict.STALE
            return Verdict.APPLY if self._joins(ids, self.last) else Verdict.GAP
        if ids.last <= self.last:
            return Verdict.STALE
        continues = ids.previous == self.last if self.futures else ids.first == self.last + 1
        return Verdict.APPLY if continues else Verdict.GAP

    def _is_stale(self, ids: DeltaIds, last_update_id: int) -> bool:
        # Spot drops u <= lastUpdateId, futures u < lastUpdateId.
        return ids.last < last_update_id if self.futures else ids.last <= last_update_id

    def _joins(self, ids: DeltaIds, last_update_id: int) -> bool:
        # Futures: U <= lastUpdateId <= u. Spot: lastUpdateId + 1 within [U, u].
        return ids.first <= (last_update_id if self.futures else last_update_id + 1) and not self._is_stale(
            ids, last_update_id
        )
