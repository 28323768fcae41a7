"""How a consumer waits: spin, then park on the ring's futex word, always bounded.

I9  Parking: store park_request = 1 (seq_cst), look once more, wait on the futex word. The producer, after publishing,
    fences seq_cst, swaps park_request to 0 and wakes all when it was 1. One of the two sees the other.
"""

from __future__ import annotations

from numba import int64, uint32, uint64

from tickwire.kernel import inlined, kernel
from tickwire.ring.kernels.consumer import REATTACH, is_ready
from tickwire.ring.kernels.state import C_CONTROL, C_DATA, C_PARKS, C_REATTACH, C_SPIN_NS, SPIN_FOREVER
from tickwire.ring.layout import FUTEX_AT, PARK_REQUEST_AT, STOP_AT
from tickwire.ring.words import (
    WAITV_MISSING,
    fence_seq_cst,
    futex_wait,
    futex_wait_two,
    load_acquire,
    load_acquire_32,
    monotonic_ns,
    pause,
    store_seq_cst_32,
)

STOPPED = -1
TIMEOUT = 0
READY = 1
OTHER = 2

MAX_PARK_NS = 20_000_000
"""Longest single sleep: how late a stop request or a new generation is seen at the worst."""
WAITV_FALLBACK_NS = 100_000
"""Longest single sleep where the kernel cannot wait for two words."""
_LOOK_AT_CLOCK_EVERY = 64


@inlined
def _look(c, stop_address):
    # What a waiter has to report now, TIMEOUT for nothing. Records come first: a stop loses none that are published.
    if is_ready(c):
        return int64(READY)
    if c[C_REATTACH] != 0:
        return int64(REATTACH)
    if load_acquire(stop_address) != 0 or load_acquire_32(c[C_DATA] + uint64(STOP_AT)) != 0:
        return int64(STOPPED)
    return int64(TIMEOUT)


@inlined
def _spin(c, stop_address, deadline_ns):
    spun = int64(0)
    while True:
        found = _look(c, stop_address)
        if found != TIMEOUT:
            return found
        pause()
        spun += 1
        if spun % _LOOK_AT_CLOCK_EVERY == 0 and monotonic_ns() >= deadline_ns:
            return int64(TIMEOUT)


@inlined
def _spin_deadline(c, now, deadline_ns):
    spin_ns = int64(c[C_SPIN_NS])
    if spin_ns == SPIN_FOREVER:
        return deadline_ns
    return min(deadline_ns, now + spin_ns)


@inlined
def _request_park(c):
    # SYNC park: pairs with the producer's fence and swap after `published`.
    store_seq_cst_32(c[C_CONTROL] + uint64(PARK_REQUEST_AT), uint32(1))
    fence_seq_cst()
    c[C_PARKS] += uint64(1)


@kernel("int64(uint64[::1], int64, uint64)")
def wait(c, timeout_ns, stop_address):
    """Wait until `poll` has something to report, at most `timeout_ns`.

    Args:
        c: Consumer state.
        timeout_ns: Longest wait; 0 only looks.
        stop_address: Address of a process-local u64; non-zero ends the wait.

    Returns:
        `READY`, `TIMEOUT`, `STOPPED` or `REATTACH`.
    """
    now = monotonic_ns()
    deadline_ns = now + timeout_ns
    found = _spin(c, stop_address, _spin_deadline(c, now, deadline_ns))
    word = c[C_DATA] + uint64(FUTEX_AT)
    while found == TIMEOUT:
        now = monotonic_ns()
        if now >= deadline_ns:
            break
        expected = load_acquire_32(word)
        _request_park(c)
        found = _look(c, stop_address)
        if found == TIMEOUT:
            futex_wait(word, expected, min(deadline_ns - now, MAX_PARK_NS))
            found = _look(c, stop_address)
    return found


@kernel("int64(uint64[::1], uint64, uint32, int64, uint64)")
def wait_or_word(c, word_address, expected_other, deadline_ns, stop_address):
    """Wait until `poll` has something to report, a 4-byte word changes, or the monotonic `deadline_ns`.

    Whoever changes the word wakes it with `futex_wake_all` afterwards.

    Returns:
        `OTHER` when the word no longer holds `expected_other`, else as `wait`.
    """
    now = monotonic_ns()
    spin_until = _spin_deadline(c, now, deadline_ns)
    word = c[C_DATA] + uint64(FUTEX_AT)
    expected = load_acquire_32(word)
    parked = False
    while True:
        if load_acquire_32(word_address) != expected_other:
            return int64(OTHER)
        found = _look(c, stop_address)
        if found != TIMEOUT:
            return found
        now = monotonic_ns()
        if now >= deadline_ns:
            return int64(TIMEOUT)
        if now < spin_until:
            pause()
            continue
        if not parked:
            # The word is read before the request and the last look, else a wake-up between them goes unseen.
            expected = load_acquire_32(word)
            _request_park(c)
            parked = True
            continue
        parked = False
        until = min(deadline_ns, now + MAX_PARK_NS)
        if futex_wait_two(word, expected, word_address, expected_other, until) == WAITV_MISSING:
            futex_wait(word, expected, min(until - now, WAITV_FALLBACK_NS))
