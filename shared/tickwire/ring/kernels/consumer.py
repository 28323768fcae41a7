"""The consumer's side of the protocol.

I2  Read at cursor c: stamp = c + 1: copy relaxed words, acquire fence, stamp unchanged or discard. Otherwise load
    `published` (acquire) and then the stamp again (acquire): still not c + 1 and published > c means lapped, else wait.
I4  Lapped: newest = max(published, stamp - 1 if stamp > 0); the cursor jumps to max(c + 1, newest - 3/4 capacity);
    lost = new - old, exact, counted once.
I5  A consumer that finds itself evicted reads on under I2 and asks to be waited for again (REJOINING).
"""

from __future__ import annotations

from numba import int64, uint32, uint64

from tickwire.kernel import inlined, kernel
from tickwire.ring.kernels.state import (
    C_CAPACITY,
    C_CURSOR,
    C_DATA,
    C_ENTRY,
    C_INDEX,
    C_LAPS,
    C_LAST_LOST,
    C_LOSSLESS,
    C_LOST,
    C_REATTACH,
    C_SLOT_BYTES,
)
from tickwire.ring.layout import (
    ACTIVE,
    ATTACHES,
    CURSOR,
    ENTRY_BYTES,
    EVICTED_AT,
    HEADER_BYTES,
    LOST,
    PUBLISHED_AT,
    REJOINING,
    STATE,
)
from tickwire.ring.words import (
    address_of,
    fence_acquire,
    load_acquire,
    load_acquire_32,
    load_relaxed,
    load_relaxed_32,
    store_relaxed,
    store_release,
    store_release_32,
)

LAPPED = -1
"""`poll`: records were overwritten before they were read; `c[LAST_LOST]` says how many. Poll again."""
REATTACH = -2
"""`poll`, `wait`: the segment was replaced; leave the kernel and re-attach."""


@inlined
def slot_address(c, sequence):
    """Return the address of a sequence's slot."""
    return c[C_DATA] + uint64(HEADER_BYTES) + (sequence & (c[C_CAPACITY] - uint64(1))) * c[C_SLOT_BYTES]


@inlined
def is_earlier(stamp, cursor):
    """Say whether a slot still holds the record of an earlier lap: nothing is there yet, without a look at `published`.

    Reading that while the producer stores it costs both sides a cache miss a record.
    """
    return stamp != uint64(0) and stamp <= cursor


@inlined
def is_ready(c):
    """Say whether `poll` has something to report."""
    cursor = c[C_CURSOR]
    stamp = load_acquire(slot_address(c, cursor))
    if is_earlier(stamp, cursor):
        return False
    return stamp == cursor + uint64(1) or load_acquire(c[C_DATA] + uint64(PUBLISHED_AT)) > cursor


@inlined
def rejoin(c):
    """Follow the producer's EVICTED flag with the entry's state (I5)."""
    # SYNC evicted: the producer's decision about this consumer.
    evicted = load_acquire_32(c[C_DATA] + uint64(EVICTED_AT) + c[C_INDEX] * uint64(ENTRY_BYTES)) != 0
    state = load_relaxed_32(c[C_ENTRY] + uint64(STATE))
    if evicted and state == ACTIVE:
        # SYNC cursor: the producer may wait for this cursor from the moment it sees REJOINING.
        store_release(c[C_ENTRY] + uint64(CURSOR), c[C_CURSOR])
        attaches = c[C_ENTRY] + uint64(ATTACHES)
        store_release_32(attaches, uint32(load_relaxed_32(attaches) + uint32(1)))
        store_release_32(c[C_ENTRY] + uint64(STATE), uint32(REJOINING))
    elif state == REJOINING and not evicted:
        store_release_32(c[C_ENTRY] + uint64(STATE), uint32(ACTIVE))


@inlined
def lap(c, published, stamp):
    """Jump the cursor over what was overwritten and count it (I4)."""
    newest = published
    if stamp > 0 and stamp - uint64(1) > newest:
        newest = stamp - uint64(1)
    cursor = c[C_CURSOR]
    resumed = cursor + uint64(1)
    margin = (c[C_CAPACITY] // uint64(4)) * uint64(3)
    if newest > margin and newest - margin > resumed:
        resumed = newest - margin
    c[C_LAST_LOST] = resumed - cursor
    c[C_LOST] += resumed - cursor
    c[C_LAPS] += uint64(1)
    c[C_CURSOR] = resumed


@kernel("void(uint64[::1])")
def commit(c):
    """Let the producer reuse everything that was polled so far."""
    if c[C_ENTRY] != 0:
        store_relaxed(c[C_ENTRY] + uint64(LOST), c[C_LOST])
        # SYNC cursor: all slots below it have been read; they may be overwritten.
        store_release(c[C_ENTRY] + uint64(CURSOR), c[C_CURSOR])


@kernel("int64(uint64[::1], uint64[:, ::1], int64)")
def poll(c, words, limit):
    """Copy up to `limit` records; never blocks. Word 0 of a copy is its sequence, word 1 its publish_mono_ns.

    Does not commit: call `commit` when the records have been dealt with.

    Returns:
        Records copied (0 or more), or `LAPPED` or `REATTACH` with none copied.
    """
    if c[C_REATTACH] != 0:
        return int64(REATTACH)
    if c[C_LOSSLESS] != 0:
        rejoin(c)
    slots = c[C_DATA] + uint64(HEADER_BYTES)
    mask = c[C_CAPACITY] - uint64(1)
    slot_bytes = c[C_SLOT_BYTES]
    n_words = int64(slot_bytes // uint64(8))
    cursor = c[C_CURSOR]
    copy = address_of(words)
    n = int64(0)
    limit = min(limit, words.shape[0])
    while n < limit:
        expected = cursor + uint64(1)
        slot = slots + (cursor & mask) * slot_bytes
        # SYNC stamp: the whole record of this sequence.
        stamp = load_acquire(slot)
        if stamp == expected:
            for k in range(1, n_words):
                store_relaxed(copy + uint64(8 * k), load_relaxed(slot + uint64(8 * k)))
            fence_acquire()
            if load_relaxed(slot) == expected:
                store_relaxed(copy, cursor)
                copy += slot_bytes
                cursor = expected
                n += 1
                continue
        if n > 0 or is_earlier(stamp, cursor):
            break
        # SYNC published: everything below it was stamped before; so a foreign stamp there means overwritten.
        published = load_acquire(c[C_DATA] + uint64(PUBLISHED_AT))
        stamp = load_acquire(slot)
        if stamp == expected:
            continue
        if published <= cursor:
            break
        lap(c, published, stamp)
        return int64(LAPPED)
    c[C_CURSOR] = cursor
    return n


@kernel("int64(uint64[::1], uint64[:, ::1], int64)")
def commit_and_poll(c, words, limit):
    """Commit what was polled before, then poll: for callers from Python, to whom each call costs."""
    commit(c)
    return poll(c, words, limit)
