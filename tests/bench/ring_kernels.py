"""Loops over the shipped ring kernels for the ring's benchmark: ping-pong, one way, throughput."""

from __future__ import annotations

import os

from numba import int64, njit, uint64
from numba.core import config

from tickwire.ring.kernels import BACK_PRESSURE, commit, poll, publish
from tickwire.ring.words import monotonic_ns, pause

# A cache for the processes of one run only: Numba does not see changes in what these loops call.
_FOLDER = os.environ.get("TICKWIRE_BENCH_CACHE", "")
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False, "cache": bool(_FOLDER)}
config.CACHE_DIR = _FOLDER


@njit("void(uint64[::1], uint64[::1], uint64[:, ::1], int64, int64[::1])", **_OPTIONS)
def ping(p, c, words, n, round_trip_ns):
    """Publish one record on `p`, wait for its echo on `c`, n times."""
    for i in range(n):
        start = monotonic_ns()
        publish(p, words, 0, 1)
        while poll(c, words, 1) != 1:
            pause()
        commit(c)
        round_trip_ns[i] = monotonic_ns() - start


@njit("void(uint64[::1], uint64[::1], uint64[:, ::1], int64)", **_OPTIONS)
def echo(p, c, words, n):
    """Send back what comes, n times."""
    for _ in range(n):
        while poll(c, words, 1) != 1:
            pause()
        commit(c)
        publish(p, words, 0, 1)


@njit("void(uint64[::1], uint64[:, ::1], int64, int64)", **_OPTIONS)
def send_paced(p, words, n, gap_ns):
    """Publish one record every `gap_ns`, by the clock, whatever the reader does."""
    due = monotonic_ns() + gap_ns
    for _ in range(n):
        while monotonic_ns() < due:
            pause()
        due += gap_ns
        while publish(p, words, 0, 1) == BACK_PRESSURE:
            pause()


@njit("void(uint64[::1], uint64[:, ::1], int64, int64[::1])", **_OPTIONS)
def receive_paced(c, words, n, one_way_ns):
    """Note how long each record was under way, from its publish stamp."""
    for i in range(n):
        while poll(c, words, 1) != 1:
            pause()
        one_way_ns[i] = monotonic_ns() - int64(words[0, 1])
        commit(c)


@njit("int64(uint64[::1], uint64[:, ::1], int64, int64)", **_OPTIONS)
def produce(p, words, n, batch):
    """Publish n records in batches; return the nanoseconds it took."""
    start = monotonic_ns()
    sent = int64(0)
    while sent < n:
        if publish(p, words, 0, batch) == BACK_PRESSURE:
            pause()
        else:
            sent += batch
    return monotonic_ns() - start


@njit("uint64(uint64[::1], uint64[:, ::1], int64, int64)", **_OPTIONS)
def consume(c, words, n, batch):
    """Read n records, at most `batch` at once; return a sum over them."""
    total = uint64(0)
    got = int64(0)
    while got < n:
        found = poll(c, words, batch)
        if found > 0:
            for i in range(found):
                total += words[i, 2]
            got += found
            commit(c)
        else:
            pause()
    return total
