"""The batching decision: a pure function of the scheduler's state and the time. It touches no clock, ring or engine.

I1  Nothing in flight: what waits goes at once (IDLE). Two in flight: wait.
I2  One in flight: a full batch goes (FULL); otherwise the batch goes when the oldest deadline is no further away than
    the p99 of the running batch's remainder plus that of this batch's own bucket (DEADLINE).
I3  Draining (stopping, or a barrier waits): what waits goes as soon as a slot is free (FULL, and DRAIN for the rest).
I4  Closed loop: nothing goes before the barrier, so that batches depend on the barriers' places alone.
"""

from __future__ import annotations

from numba import int64, types

from tickwire.kernel import inlined, kernel
from tickwire.records import FlushReason
from tickwire_inference.kernels.queue import ORDER_TYPE, QUEUE_TYPE, STATE_TYPE, oldest_deadline
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, MAX_IN_FLIGHT

WAIT = 0
LAUNCH = 1

NEVER_NS = (1 << 63) - 1
"""`next_decision_ns` when only an event can change the decision."""

_NONE = int(FlushReason.NONE)
_FULL = int(FlushReason.FULL)
_DEADLINE = int(FlushReason.DEADLINE)
_IDLE = int(FlushReason.IDLE)
_DRAIN = int(FlushReason.DRAIN)


@inlined
def bucket_of(size):
    """Return the index of the smallest bucket that holds `size`."""
    bucket = 0
    while BUCKETS[bucket] < size:
        bucket += 1
    return bucket


@kernel(types.UniTuple(int64, 3)(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64[::1], int64))
def decide(queue, order, state, p99_ns, now_ns):
    """Decide for this moment; whatever expired must have been taken out.

    Args:
        queue: Requests by symbol, dtype `WAITING`.
        order: Symbols that wait.
        state: The scheduler's state, dtype `STATE`, one entry.
        p99_ns: Learnt run time of each bucket, shape (5,).
        now_ns: Monotonic time.

    Returns:
        `WAIT` or `LAUNCH`, the flush reason, the size of the batch.
    """
    size = min(state[0].waiting, MAX_BATCH)
    wait = (WAIT, _NONE, 0)
    if size == 0 or state[0].in_flight >= MAX_IN_FLIGHT:
        return wait
    if state[0].closed_loop != 0 and state[0].draining == 0:
        return wait
    if size == MAX_BATCH:
        return (LAUNCH, _FULL, size)
    if state[0].draining != 0:
        return (LAUNCH, _DRAIN, size)
    if state[0].in_flight == 0:
        return (LAUNCH, _IDLE, size)
    remainder_ns = max(p99_ns[state[0].running_bucket] - (now_ns - state[0].running_since_ns), 0)
    if oldest_deadline(queue, order, state) - now_ns <= remainder_ns + p99_ns[bucket_of(size)]:
        return (LAUNCH, _DEADLINE, size)
    return wait


@kernel(int64(QUEUE_TYPE, ORDER_TYPE, STATE_TYPE, int64[::1]))
def next_decision_ns(queue, order, state, p99_ns):
    """Return when time alone next expires a request or closes a batch, `NEVER_NS` if it cannot. For after a WAIT.

    With one batch in flight the remainder and the distance to the deadline shrink alike until the running batch is past
    its p99. A decision that was WAIT therefore turns when the oldest deadline is only this bucket's time away.
    """
    if state[0].waiting == 0 or state[0].closed_loop != 0:
        return NEVER_NS
    oldest = oldest_deadline(queue, order, state)
    if state[0].in_flight == 1:
        return oldest - p99_ns[bucket_of(min(state[0].waiting, MAX_BATCH))]
    return oldest
