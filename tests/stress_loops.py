"""Compiled loops over the shipped ring kernels for the stress runs: one publishes, one reads and checks every word.

Each record's payload is a function of its sequence in every word, as in `ring_processes`. The loops report into memory
that is shared with the process that started them, so that a killed process's last report can still be read.

I1  A report is written beside the last one and then made the last one by one store: it is whole at any moment of death.
I2  A reader reports a batch before it commits it. What it has reported and not committed comes again after a restart.
"""

from __future__ import annotations

from numba import int64, njit, uint64

from tickwire.ring.kernels import BACK_PRESSURE, LAPPED, LAST_LOST, commit, poll, publish, wait
from tickwire.ring.kernels.state import C_CURSOR, P_BACK_PRESSURE, P_EVICTIONS, P_NEXT
from tickwire.ring.words import address_of, futex_wait, load_acquire, store_release

# Words of the run's memory, written by the process that started the loops.
STOP = 0  # 1 = the producer ends behind its current batch
DONE = 1  # 1 = END holds
END = 2  # sequence behind the last record; readers end there
RUN_WORDS = 8

# Words of a report.
POSITION = 0  # next sequence
COMMITTED = 1  # a restarted lossless reader starts nowhere before it
RECEIVED = 2
LOST = 3
TORN = 4
DISORDER = 5
LAPS = 6
START = 7
REPORT_WORDS = 8
PRODUCER_BACK_PRESSURE = RECEIVED
PRODUCER_EVICTIONS = LOST

# A reader's or producer's area: the count of reports, then two reports that take turns.
COUNT_AT = 0
REPORTS_AT = 8
AREA_WORDS = REPORTS_AT + 2 * REPORT_WORDS

_PRIME = uint64(0x9E3779B97F4A7C15)
_WAIT_NS = 2_000_000
_BACK_PRESSURE_SLEEP_NS = 20_000
_HOLD_EVERY = 32  # batches; a reader then stays between report and commit for a while, so that some die there
_HOLD_NS = 200_000
_OPTIONS = {"nogil": True, "error_model": "numpy"}


@njit("uint64(uint64, uint64)", **_OPTIONS)
def payload(sequence, k):
    """Return word k of a sequence's record."""
    return (sequence + uint64(1)) * _PRIME + k


@njit("void(uint64[::1], uint64[::1])", **_OPTIONS)
def report(area, values):
    """Make `values` the area's last report (I1)."""
    count = area[COUNT_AT] + uint64(1)
    base = REPORTS_AT + int64(count & uint64(1)) * REPORT_WORDS
    for k in range(REPORT_WORDS):
        area[base + k] = values[k]
    store_release(address_of(area) + uint64(8 * COUNT_AT), count)


@njit("void(uint64[::1], uint64[:, ::1], uint64[::1], uint64[::1], uint64, uint64, int64)", **_OPTIONS)
def produce(p, words, run, area, end, seed, gap_ns):
    """Publish batches of 1 to len(words) until told to stop, or up to `end`; `gap_ns` of sleep between batches."""
    run_address = address_of(run)
    values = area[REPORTS_AT : REPORTS_AT + REPORT_WORDS].copy()
    values[START] = p[P_NEXT]
    dice = seed | uint64(1)
    while load_acquire(run_address + uint64(8 * STOP)) == 0:
        sequence = p[P_NEXT]
        left = end - sequence
        if left == 0:
            futex_wait(run_address + uint64(8 * STOP), 0, _WAIT_NS)
            continue
        dice ^= dice << uint64(13)
        dice ^= dice >> uint64(7)
        dice ^= dice << uint64(17)
        batch = int64(min(left, uint64(1) + dice % uint64(words.shape[0])))
        for i in range(batch):
            for k in range(2, words.shape[1]):
                words[i, k] = payload(sequence + uint64(i), uint64(k))
        while publish(p, words, 0, batch) == BACK_PRESSURE:
            if load_acquire(run_address + uint64(8 * STOP)) != 0:
                break
            futex_wait(run_address + uint64(8 * STOP), 0, _BACK_PRESSURE_SLEEP_NS)
        values[POSITION] = p[P_NEXT]
        values[PRODUCER_BACK_PRESSURE] = p[P_BACK_PRESSURE]
        values[PRODUCER_EVICTIONS] = p[P_EVICTIONS]
        report(area, values)
        if gap_ns > 0:
            futex_wait(run_address + uint64(8 * STOP), 0, gap_ns)


@njit("void(uint64[::1], uint64[:, ::1], uint64[::1], uint64[::1])", **_OPTIONS)
def consume(c, words, run, area):
    """Read, at most len(words) at once, until told the end and arrived there; check order and every payload word."""
    run_address = address_of(run)
    values = area[REPORTS_AT : REPORTS_AT + REPORT_WORDS].copy()
    values[:] = 0
    expected = c[C_CURSOR]
    values[START] = values[POSITION] = values[COMMITTED] = expected
    report(area, values)
    while True:
        found = poll(c, words, words.shape[0])
        values[COMMITTED] = expected
        if found > 0:
            for i in range(found):
                sequence = words[i, 0]
                values[DISORDER] += uint64(sequence != expected)
                whole = True
                for k in range(2, words.shape[1]):
                    whole &= words[i, k] == payload(sequence, uint64(k))
                values[TORN] += uint64(not whole)
                expected += uint64(1)
            values[RECEIVED] += uint64(found)
        elif found == LAPPED:
            values[LOST] += c[LAST_LOST]
            values[LAPS] += uint64(1)
            expected += c[LAST_LOST]
        elif found == 0:
            done = load_acquire(run_address + uint64(8 * DONE)) != 0
            if done and expected >= load_acquire(run_address + uint64(8 * END)):
                return
            wait(c, _WAIT_NS, run_address + uint64(8 * DONE))
            continue
        else:
            return  # REATTACH: no ring is replaced here, and the missing records say so
        values[POSITION] = expected
        report(area, values)  # I2
        if area[COUNT_AT] % uint64(_HOLD_EVERY) == 0:
            futex_wait(run_address + uint64(8 * DONE), 0, _HOLD_NS)
        commit(c)
