"""The producer's side of the protocol.

I1  Write: stamp = 0; release fence; payload in relaxed 8-byte words; stamp = sequence + 1 (release); `published`
    (release) once a batch.
I3  No slot is invalidated while `published <= sequence - capacity`; hence a batch is at most capacity / 2.
I5  Lossless: a claim that does not fit is refused as a value. A consumer is evicted only when a claim has been refused
    for `stall_timeout` without a break.
I9  Parking: after publishing, fence seq_cst and look at park_request; swap in 0 and wake all when it was 1.
"""

from __future__ import annotations

from numba import int64, uint32, uint64

from tickwire.kernel import inlined, kernel
from tickwire.ring.kernels.state import (
    P_BACK_PRESSURE,
    P_CAPACITY,
    P_CONTROL,
    P_DATA,
    P_EVICTIONS,
    P_GATE,
    P_LOSSLESS,
    P_MAX_CONSUMERS,
    P_NEXT,
    P_SLOT_BYTES,
    P_STALL_SINCE,
    P_STALL_TIMEOUT,
    P_WAKES,
)
from tickwire.ring.layout import (
    ACTIVE,
    ATTACHES,
    CURSOR,
    ENTRIES_AT,
    ENTRY_BYTES,
    EVICTED_AT,
    FREE,
    FUTEX_AT,
    HEADER_BYTES,
    HEARTBEAT_AT,
    OBSERVER,
    PARK_REQUEST_AT,
    PUBLISHED_AT,
    REJOINING,
    STATE,
)
from tickwire.ring.words import (
    address_of,
    exchange_32,
    fence_release,
    fence_seq_cst,
    futex_wake_all,
    load_acquire,
    load_acquire_32,
    load_relaxed,
    load_relaxed_32,
    monotonic_ns,
    store_relaxed,
    store_release,
    store_release_32,
)

BACK_PRESSURE = -1
"""`publish`: a lossless consumer is a whole ring behind; nothing was published."""
BATCH_TOO_LARGE = -3
"""`publish`: more than capacity / 2 records at once (I3); nothing was published."""


@inlined
def gate_of(p, evict_before):
    """Return the lowest cursor that holds the producer back; evict active consumers whose cursor is below a limit.

    `evict_before` 0 evicts nobody. A consumer that came back after an eviction counts again from here on.
    """
    following = p[P_NEXT]
    gate = following
    for i in range(int64(p[P_MAX_CONSUMERS])):
        entry = p[P_CONTROL] + uint64(ENTRIES_AT + ENTRY_BYTES * i)
        flag = p[P_DATA] + uint64(EVICTED_AT + ENTRY_BYTES * i)
        state = load_acquire_32(entry + uint64(STATE))
        if state in (FREE, OBSERVER):
            continue
        # SYNC cursor: all slots below it have been read; they may be overwritten.
        cursor = load_acquire(entry + uint64(CURSOR))
        if cursor > following:
            cursor = following  # an entry is writable by the group: never trust it beyond the producer's own count
        if load_relaxed_32(flag) != 0:
            if state != REJOINING or following - cursor > p[P_CAPACITY]:
                continue
            # SYNC evicted: the consumer holds the producer back again.
            store_release_32(flag, uint32(0))
        elif state == ACTIVE and cursor < evict_before:
            # SYNC evicted: from here on the consumer's slots may be overwritten.
            store_release_32(flag, uint32(1))
            p[P_EVICTIONS] += uint64(1)
            continue
        gate = min(gate, cursor)
    return gate


@inlined
def claim(p, count):
    """Return whether `count` more records may be written; counts back-pressure and evicts after the stall timeout."""
    if p[P_LOSSLESS] == 0:
        return True
    end = p[P_NEXT] + uint64(count)
    if end - p[P_GATE] <= p[P_CAPACITY]:
        return True
    gate = gate_of(p, uint64(0))
    if end - gate > p[P_CAPACITY]:
        now = uint64(monotonic_ns())
        if p[P_STALL_SINCE] == 0:
            p[P_STALL_SINCE] = now
        if now - p[P_STALL_SINCE] < p[P_STALL_TIMEOUT]:
            p[P_BACK_PRESSURE] += uint64(1)
            return False
        gate = gate_of(p, end - p[P_CAPACITY])
    p[P_GATE] = gate
    p[P_STALL_SINCE] = uint64(0)
    return True


@inlined
def wake(p):
    """Wake the parked consumers, if one asked for it (I9)."""
    # SYNC park: pairs with the consumer's store of park_request and its last look at the stamp.
    fence_seq_cst()
    request = p[P_CONTROL] + uint64(PARK_REQUEST_AT)
    if load_relaxed_32(request) != 0 and exchange_32(request, uint32(0)) != 0:
        word = p[P_DATA] + uint64(FUTEX_AT)
        store_release_32(word, uint32(load_relaxed_32(word) + uint32(1)))
        futex_wake_all(word)
        p[P_WAKES] += uint64(1)


@inlined
def publish_from(p, source, count):
    """Publish `count` records that lie one behind the other from address `source` on; see `publish`."""
    if count <= 0:
        return int64(0)
    capacity = p[P_CAPACITY]
    if uint64(count) > capacity // uint64(2):
        return int64(BATCH_TOO_LARGE)
    if not claim(p, count):
        return int64(BACK_PRESSURE)
    data = p[P_DATA]
    slots = data + uint64(HEADER_BYTES)
    mask = capacity - uint64(1)
    slot_bytes = p[P_SLOT_BYTES]
    n_words = int64(slot_bytes // uint64(8))
    sequence = p[P_NEXT]
    now = uint64(monotonic_ns())  # one stamp a batch: reading the clock costs as much as writing several records
    for _ in range(count):
        slot = slots + (sequence & mask) * slot_bytes
        store_relaxed(slot, uint64(0))
        fence_release()
        store_relaxed(slot + uint64(8), now)
        for k in range(2, n_words):
            store_relaxed(slot + uint64(8 * k), load_relaxed(source + uint64(8 * k)))
        sequence += uint64(1)
        # SYNC stamp: the whole record of this sequence.
        store_release(slot, sequence)
        source += slot_bytes
    p[P_NEXT] = sequence
    # SYNC published: every stamp below it was stored before.
    store_release(data + uint64(PUBLISHED_AT), sequence)
    wake(p)
    return count


@kernel("int64(uint64[::1], uint64[:, ::1], int64, int64)")
def publish(p, words, first, count):
    """Publish `words[first : first + count]` as one batch with one wake-up.

    Args:
        p: Producer state.
        words: Records as words, shape (n, slot words); words 0 and 1 of each are the ring's and ignored.
        first: Index of the first record.
        count: Records to publish.

    Returns:
        `count`, or `BACK_PRESSURE` or `BATCH_TOO_LARGE`, with nothing published.
    """
    return publish_from(p, address_of(words) + uint64(first) * p[P_SLOT_BYTES], count)


@kernel("int64(uint64[::1], uint64[::1])")
def publish_all(p, words):
    """Publish all records of a flat array of words as one batch, as `publish` does: for callers from Python."""
    return publish_from(p, address_of(words), int64(uint64(len(words)) * uint64(8) // p[P_SLOT_BYTES]))


@kernel("uint64(uint64[::1])")
def recover(p):
    """Return the sequence a restarted producer goes on with: behind the last whole record (I6)."""
    slots = p[P_DATA] + uint64(HEADER_BYTES)
    mask = p[P_CAPACITY] - uint64(1)
    sequence = load_acquire(p[P_DATA] + uint64(PUBLISHED_AT))
    end = sequence + p[P_CAPACITY]
    while sequence < end:
        if load_acquire(slots + (sequence & mask) * p[P_SLOT_BYTES]) != sequence + uint64(1):
            break
        sequence += uint64(1)
    p[P_NEXT] = sequence
    p[P_GATE] = gate_of(p, uint64(0))
    store_release(p[P_DATA] + uint64(PUBLISHED_AT), sequence)
    return sequence


@kernel("int64(uint64[::1])")
def attaches(p):
    """Return how often consumers have attached or come back after an eviction, over all entries."""
    total = int64(0)
    for i in range(int64(p[P_MAX_CONSUMERS])):
        total += int64(load_acquire_32(p[P_CONTROL] + uint64(ENTRIES_AT + ENTRY_BYTES * i + ATTACHES)))
    return total


@kernel("void(uint64[::1])")
def beat(p):
    """Store the producer's heartbeat."""
    store_release(p[P_DATA] + uint64(HEARTBEAT_AT), uint64(monotonic_ns()))
