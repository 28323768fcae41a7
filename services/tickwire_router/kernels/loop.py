"""The router's loop, the body of its hot thread: allocates nothing, logs nothing, touches no Python object.

I1  Predictions are committed after their signals are published: a process that dies in between answers them again in
    its next life, less those whose signals are on the ring.
I2  The gauge `kill_generation` is set when every signal published from then on obeys that generation.
I3  A stop ends the loop when no prediction is left, or after a ringful.
"""

from __future__ import annotations

from numba import int64, uint32, uint64

from tickwire.kernel import kernel
from tickwire.ring.kernels import LAPPED, LAST_LOST, REATTACH, STOPPED, commit, poll, wait
from tickwire.ring.words import address_of, futex_wait, load_acquire, monotonic_ns
from tickwire.runtime.kernels import bump, note_turn, set_gauge
from tickwire.topology import PREDICTIONS as RING
from tickwire_router.kernels.counting import show_kill
from tickwire_router.kernels.decode import decode
from tickwire_router.kernels.desk import DESK_TYPE, POLL_PREDICTIONS
from tickwire_router.kernels.outbox import publish_outbox
from tickwire_router.kernels.withdrawal import kill_changed, withdraw
from tickwire_router.stats import KILL_GENERATION, LOST_PREDICTIONS, STALLS, TURN_MAX_NS, TURN_MONO_NS

_PARK_NS = 20_000_000
_TURNS_AFTER_STOP = RING.capacity // POLL_PREDICTIONS


@kernel(int64(DESK_TYPE, uint64[::1], uint64[::1], uint64))
def run(d, consumer, producer, stop_address):
    """Route until told otherwise.

    Args:
        d: The desk.
        consumer: State of the predictions ring's consumer.
        producer: State of the signals ring's producer.
        stop_address: Address of a process-local u64; not 0 ends the loop.

    Returns:
        `STOPPED` or `REATTACH`.
    """
    turns_left = int64(_TURNS_AFTER_STOP)
    busy_since_ns = int64(0)
    while turns_left > 0:
        now_ns = monotonic_ns()
        bump(d.counters, STALLS, note_turn(d.gauges, TURN_MONO_NS, TURN_MAX_NS, busy_since_ns, now_ns))
        busy_since_ns = int64(0)
        if kill_changed(d):
            # SYNC kill_generation: the switch that the withdrawals below obey.
            generation = load_acquire(address_of(d.kill_generation))
            withdraw(d, False)
            publish_outbox(d, producer)
            show_kill(d)
            set_gauge(d.gauges, KILL_GENERATION, generation)
        found = poll(consumer, d.prediction_words, int64(POLL_PREDICTIONS))
        if found == REATTACH:
            return int64(REATTACH)
        if found != 0:
            busy_since_ns = now_ns
        if found == LAPPED:
            bump(d.counters, LOST_PREDICTIONS, consumer[LAST_LOST])
            withdraw(d, True)
            publish_outbox(d, producer)
        elif found > 0:
            decode(d, found, monotonic_ns())
            publish_outbox(d, producer)
            commit(consumer)
        elif wait(consumer, int64(_PARK_NS), stop_address) == STOPPED:
            if load_acquire(stop_address) != 0:
                break
            # The ring's owner asked its consumers to stop; a new producer may take that back.
            futex_wait(address_of(d.kill_turn), uint32(d.progress[0].kill_turn), int64(_PARK_NS))
        if load_acquire(stop_address) != 0:
            turns_left -= 1
    return int64(STOPPED)
