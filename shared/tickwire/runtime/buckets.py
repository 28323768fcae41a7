"""Buckets of a latency histogram: log-linear, 32 to an octave, integer arithmetic only.

Each bucket is at most 1/32 = 3.2 % wide. The first starts at 32 ns, the last ends at 2^34 ns = 17.2 s, which covers
50 ns to 10 s. Source of the scheme: Gil Tene, HdrHistogram.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SUB_BITS = 5
SUB_BUCKETS = 1 << SUB_BITS
FIRST_EXPONENT = 5  # 32 ns
END_EXPONENT = 34  # 17.2 s
N_BUCKETS = (END_EXPONENT - FIRST_EXPONENT) * SUB_BUCKETS

COUNT = 0
SUM_NS = 1
MAX_NS = 2
UNDERFLOW = 3
OVERFLOW = 4
FIRST_BUCKET = 8
HISTOGRAM_WORDS = FIRST_BUCKET + N_BUCKETS
"""8-byte words of one histogram: count, sum, maximum, underflow, overflow, three spare, then the buckets."""


def bucket_edges_ns() -> npt.NDArray[np.int64]:
    """Return the lower edges of all buckets and the upper edge of the last, shape (N_BUCKETS + 1,), nanoseconds."""
    octaves = np.repeat(np.arange(FIRST_EXPONENT, END_EXPONENT), SUB_BUCKETS)
    within = np.tile(np.arange(SUB_BUCKETS), END_EXPONENT - FIRST_EXPONENT)
    lower = (SUB_BUCKETS + within) << (octaves - SUB_BITS)
    return np.append(lower, 1 << END_EXPONENT).astype(np.int64)
