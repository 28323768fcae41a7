"""The scheduler's loop, the body of inference's hot thread: allocates nothing, logs nothing, touches no Python object.

One turn: results, rows, expiry, batches, answers; when none of them had anything to do, it parks.

I1  It parks with a deadline: the next moment at which time alone changes something, 20 ms at most. It never spins
    longer than the wait strategy of its consumer says.
I2  It leaves with REATTACH only when nothing is in flight and every symbol has been answered INVALIDATED.
"""

from __future__ import annotations

from numba import boolean, int64, uint32, uint64, void

from tickwire.kernel import kernel
from tickwire.ring.kernels import REATTACH, STOPPED, wait_or_word
from tickwire.ring.words import futex_wait, load_acquire, monotonic_ns, store_release
from tickwire.runtime.kernels import bump, note_turn
from tickwire_inference.kernels.answers import flush, has_room, post_all_invalidated, post_expired
from tickwire_inference.kernels.batches import launch_batches, take_results
from tickwire_inference.kernels.decision import next_decision_ns
from tickwire_inference.kernels.desk import DESK_TYPE, REQUESTED_DRAIN, internal
from tickwire_inference.kernels.rows import pass_barrier_on, take_rows
from tickwire_inference.kernels.slots import word_address
from tickwire_inference.kernels.windows import word_of
from tickwire_inference.layouts import COMPLETED
from tickwire_inference.stats import SCHEDULER_STALLS, SCHEDULER_TURN_MAX_NS, SCHEDULER_TURN_MONO_NS

_MAX_PARK_NS = 20_000_000
_REFUSED_PARK_NS = 200_000  # how soon a full predictions ring is tried again; its consumer wakes nobody


@internal(void(DESK_TYPE, uint64[::1], boolean, int64, uint64))
def _park(d, consumer, listening, now_ns, stop_address):
    loop = d.loop[0]
    until_ns = now_ns + _REFUSED_PARK_NS
    if loop.refused == 0:
        until_ns = min(now_ns + _MAX_PARK_NS, next_decision_ns(d.queue, d.order, d.state, d.p99_ns))
    completed = word_address(d.mailbox, COMPLETED)
    taken = uint32(loop.batch_sequence - uint64(d.state[0].in_flight))
    if listening and wait_or_word(consumer, completed, taken, until_ns, stop_address) != STOPPED:
        return
    if load_acquire(stop_address) == 0 and until_ns > now_ns:
        futex_wait(completed, taken, until_ns - now_ns)  # rows are not wanted, or their ring has ended


@internal(boolean(DESK_TYPE))
def _is_idle(d):
    return d.state[0].waiting == 0 and d.state[0].in_flight == 0 and d.loop[0].outbox_end == 0


@kernel(int64(DESK_TYPE, uint64[::1], uint64[::1], uint64))
def run(d, consumer, producer, stop_address):
    """Schedule until told otherwise.

    Args:
        d: The desk.
        consumer: State of the rows ring's consumer.
        producer: State of the predictions ring's producer.
        stop_address: Address of a process-local u64; not 0 ends the loop.

    Returns:
        `STOPPED` or `REATTACH` (I2).
    """
    loop = d.loop[0]
    leaving = False
    busy_since_ns = int64(0)
    while load_acquire(stop_address) == 0:
        turn_ns = monotonic_ns()
        now_ns = turn_ns
        stalled = note_turn(d.gauges, SCHEDULER_TURN_MONO_NS, SCHEDULER_TURN_MAX_NS, busy_since_ns, now_ns)
        bump(d.counters, SCHEDULER_STALLS, stalled)
        turned = take_results(d, now_ns)
        if not leaving:
            found = take_rows(d, consumer, now_ns)
            if found == REATTACH:
                leaving = True
                loop.rows_at = 0  # what was polled belongs to the old ring
                loop.rows_end = 0
                turned += 1 + post_all_invalidated(d)
            else:
                turned += found
            now_ns = monotonic_ns()
        # SYNC drain: the event loop wants everything answered and no more rows taken.
        drain = load_acquire(word_of(d.requested, REQUESTED_DRAIN)) != 0
        d.state[0].draining = int64(drain or loop.barrier_pending != 0)
        turned += post_expired(d, now_ns)
        if loop.refused == 0:
            turned += launch_batches(d, now_ns)
        turned += pass_barrier_on(d, now_ns)
        turned += flush(d, producer)
        if leaving and d.state[0].in_flight == 0:
            return int64(REATTACH)
        busy_since_ns = turn_ns if turned > 0 else int64(0)
        if turned == 0:
            if drain and _is_idle(d):
                # SYNC drained: every answer is on the predictions ring.
                store_release(word_of(d.drained, 0), uint64(1))
            listening = not (leaving or drain or loop.barrier_pending != 0) and has_room(d)
            _park(d, consumer, listening, now_ns, stop_address)
    return int64(STOPPED)
