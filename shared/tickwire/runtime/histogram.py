"""A copy of a latency histogram, for readers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tickwire.runtime.buckets import COUNT, FIRST_BUCKET, MAX_NS, OVERFLOW, SUM_NS, UNDERFLOW, bucket_edges_ns


@dataclass(frozen=True)
class Histogram:
    """Counts of durations, copied at one moment from words that go on changing."""

    words: npt.NDArray[np.uint64]
    """Shape (HISTOGRAM_WORDS,)."""

    @property
    def count(self) -> int:
        """Durations counted."""
        return int(self.words[COUNT])

    @property
    def mean_ns(self) -> float:
        """Mean, 0 when empty."""
        return float(self.words[SUM_NS]) / self.count if self.count else 0.0

    @property
    def max_ns(self) -> int:
        """Largest duration, exact."""
        return int(self.words[MAX_NS])

    @property
    def counts(self) -> npt.NDArray[np.uint64]:
        """Underflow, buckets, overflow: shape (N_BUCKETS + 2,)."""
        buckets = self.words[FIRST_BUCKET:]
        return np.concatenate((self.words[UNDERFLOW : UNDERFLOW + 1], buckets, self.words[OVERFLOW : OVERFLOW + 1]))

    def quantile(self, q: float) -> int:
        """Return the duration in nanoseconds below which a share `q` lies: its bucket's middle, at most the maximum.

        Raises:
            ValueError: `q` is not between 0 and 1.
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"quantile: must be between 0 and 1, was {q}")
        cumulated = np.cumsum(self.counts)
        total = int(cumulated[-1])
        if total == 0:
            return 0
        rank = max(1, int(np.ceil(q * total)))
        bucket = int(np.searchsorted(cumulated, rank))
        edges = bucket_edges_ns()
        if bucket == 0:
            return int(min(edges[0] // 2, self.max_ns))
        if bucket == len(edges):
            return self.max_ns
        return int(min((edges[bucket - 1] + edges[bucket]) // 2, self.max_ns))

    @property
    def p50_ns(self) -> int:
        """Median."""
        return self.quantile(0.5)

    @property
    def p99_ns(self) -> int:
        """99th percentile."""
        return self.quantile(0.99)

    @property
    def p999_ns(self) -> int:
        """99.9th percentile."""
        return self.quantile(0.999)
