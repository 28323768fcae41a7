"""Batches in flight and what their run times teach: the newest runs of each bucket give its p99."""

from __future__ import annotations

from numba import int64, void

from tickwire.kernel import kernel
from tickwire_inference.kernels.decision import bucket_of
from tickwire_inference.kernels.queue import STATE_TYPE
from tickwire_inference.layouts import RUNS_KEPT

_LARGEST_IS_P99 = 100  # nearest rank ceil(0.99 n): the largest up to 100 runs, the second largest from there to 128


@kernel(void(STATE_TYPE, int64, int64))
def begin_batch(state, size, now_ns):
    """Count a launched batch in."""
    bucket = bucket_of(size)
    if state[0].in_flight == 0:
        state[0].running_since_ns = now_ns
        state[0].running_bucket = bucket
    else:
        state[0].queued_bucket = bucket
    state[0].in_flight += 1


@kernel(void(int64[:, ::1], int64[::1], int64[::1], int64, int64))
def learn(runs_ns, runs, p99_ns, bucket, elapsed_ns):
    """Keep a run time and set the bucket's p99: the nearest rank over at most its last 128 runs.

    Args:
        runs_ns: Newest run times, shape (5, 128).
        runs: Runs of each bucket so far, shape (5,).
        p99_ns: Learnt p99 of each bucket, shape (5,).
        bucket: Index of `BUCKETS`.
        elapsed_ns: Time of this run.
    """
    runs_ns[bucket, runs[bucket] % RUNS_KEPT] = elapsed_ns
    runs[bucket] += 1
    kept = min(runs[bucket], RUNS_KEPT)
    largest = int64(0)
    second = int64(0)
    for i in range(kept):
        value = runs_ns[bucket, i]
        if value > largest:
            second = largest
            largest = value
        elif value > second:
            second = value
    p99_ns[bucket] = largest if kept <= _LARGEST_IS_P99 else second


@kernel(int64(STATE_TYPE, int64[:, ::1], int64[::1], int64[::1], int64))
def end_batch(state, runs_ns, runs, p99_ns, now_ns):
    """Count the older batch in flight out and learn from its time; return that time in nanoseconds."""
    elapsed_ns = now_ns - state[0].running_since_ns
    learn(runs_ns, runs, p99_ns, state[0].running_bucket, elapsed_ns)
    state[0].in_flight -= 1
    state[0].running_since_ns = now_ns
    state[0].running_bucket = state[0].queued_bucket
    return elapsed_ns
