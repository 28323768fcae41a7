"""The batching rules of inference once more, in plain Python and from the rules alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

BUCKETS = (1, 2, 4, 8, 16)


@dataclass
class Request:
    """A waiting request; `queued_ns` is the age of the oldest row that it stands for."""

    queued_ns: int
    deadline_ns: int


@dataclass
class Batcher:
    """Requests by symbol, batches in flight by (start, bucket), run times by bucket."""

    handicaps_ns: list[int]
    closed_loop: bool = False
    draining: bool = False
    waiting: dict[int, Request] = field(default_factory=dict)
    flying: list[int] = field(default_factory=list)
    running_since_ns: int = 0
    runs: dict[int, list[int]] = field(default_factory=lambda: {i: [] for i in range(len(BUCKETS))})

    def submit(self, symbol: int, now_ns: int, deadline_ns: int) -> int:
        """Queue a symbol; 0 when it was waiting."""
        if symbol in self.waiting:
            self.waiting[symbol].deadline_ns = deadline_ns
            return 0
        self.waiting[symbol] = Request(now_ns, deadline_ns)
        return 1

    def expire(self, now_ns: int) -> set[int]:
        """Remove and return the symbols whose deadline has come."""
        if self.closed_loop:
            return set()
        gone = {symbol for symbol, request in self.waiting.items() if request.deadline_ns <= now_ns}
        for symbol in gone:
            del self.waiting[symbol]
        return gone

    def p99_ns(self, bucket: int) -> int:
        """Nearest-rank p99 of the bucket's last 128 runs, 0 without any."""
        kept = sorted(self.runs[bucket][-128:])
        return kept[math.ceil(0.99 * len(kept)) - 1] if kept else 0

    def decide(self, now_ns: int) -> tuple[bool, str, int]:
        """Whether to launch, why, how many."""
        size = min(len(self.waiting), 16)
        if not size or len(self.flying) == 2 or (self.closed_loop and not self.draining):
            return False, "NONE", 0
        if size == 16:
            return True, "FULL", 16
        if self.draining:
            return True, "DRAIN", size
        if not self.flying:
            return True, "IDLE", size
        remainder_ns = max(self.p99_ns(self.flying[0]) - (now_ns - self.running_since_ns), 0)
        oldest_ns = min(request.deadline_ns for request in self.waiting.values())
        if oldest_ns - now_ns <= remainder_ns + self.p99_ns(self.bucket(size)):
            return True, "DEADLINE", size
        return False, "NONE", 0

    def launch(self, size: int, now_ns: int) -> list[int]:
        """Remove and return the symbols that go first, in order."""
        ranked = sorted(self.waiting, key=lambda s: (self.waiting[s].queued_ns + self.handicaps_ns[s], s))
        batch = ranked[:size]
        for symbol in batch:
            del self.waiting[symbol]
        if not self.flying:
            self.running_since_ns = now_ns
        self.flying.append(self.bucket(size))
        return batch

    def finish(self, now_ns: int) -> None:
        """End the older batch in flight."""
        self.runs[self.flying.pop(0)].append(now_ns - self.running_since_ns)
        self.running_since_ns = now_ns

    @staticmethod
    def bucket(size: int) -> int:
        """Index of the smallest bucket that holds `size`."""
        return next(i for i, bucket in enumerate(BUCKETS) if bucket >= size)
