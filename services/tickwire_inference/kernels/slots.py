"""The command slots between the scheduler and the engine thread: batch number n travels in slot n mod 2.

I1  Single writers: the scheduler of `SUBMITTED` and a slot's size, the engine thread of `COMPLETED` and its results.
I2  A slot is written again only after its batch was completed and taken: at most two batches are in flight.
I3  Each side stores its count with release after the slot and wakes the other's futex wait on it; waits are bounded.
"""

from __future__ import annotations

from numba import float32, from_dtype, int64, uint8, uint32, uint64, void

from tickwire.kernel import inlined, kernel
from tickwire.records import PREDICTION
from tickwire.ring.words import (
    address_of,
    futex_wait,
    futex_wake_all,
    load_acquire,
    load_acquire_32,
    monotonic_ns,
    pause,
    store_release_32,
)
from tickwire_inference.kernels.windows import BITS_TYPE, SEQUENCES_TYPE, gather
from tickwire_inference.layouts import COMPLETED, MAX_BATCH, N_OUTPUTS, ROW_NOT_FINITE, ROW_OK, SLOT, SUBMITTED

SLOTS_TYPE = from_dtype(SLOT)[::1]
MAILBOX_TYPE = uint32[::1]
RECORDS_TYPE = from_dtype(PREDICTION)[::1]
STATUS_TYPE = uint8[:, ::1]
PROBABILITIES_TYPE = float32[:, :, ::1]

COMMAND = 1
NOTHING = 0
STOPPED = -1

_MAX_PARK_NS = 20_000_000  # how late a stop request is seen at the worst


@inlined
def word_address(mailbox, index):
    """Return the address of one of the mailbox's words."""
    return address_of(mailbox) + uint64(4 * index)


@inlined
def signal(mailbox, index, count):
    """Store a count and wake whoever waits for it (I3)."""
    address = word_address(mailbox, index)
    # SYNC slot: everything in the slots of the batches below `count`.
    store_release_32(address, count)
    futex_wake_all(address)


@kernel(int64(MAILBOX_TYPE, uint32, int64, int64, uint64))
def wait_for_command(mailbox, taken, spin_ns, timeout_ns, stop_address):
    """Wait until more than `taken` batches are submitted, at most `timeout_ns`; spin for `spin_ns`, then sleep.

    Returns:
        `COMMAND`, `NOTHING` at the timeout, `STOPPED` when the u64 at `stop_address` is not 0 and nothing is submitted.
    """
    address = word_address(mailbox, SUBMITTED)
    start_ns = monotonic_ns()
    while True:
        # SYNC slot: the command of the batch after `taken`.
        if load_acquire_32(address) != taken:
            return COMMAND
        if load_acquire(stop_address) != 0:
            return STOPPED
        waited_ns = monotonic_ns() - start_ns
        if waited_ns >= timeout_ns:
            return NOTHING
        if waited_ns < spin_ns:
            pause()
        else:
            futex_wait(address, taken, min(timeout_ns - waited_ns, _MAX_PARK_NS))


@kernel(void(SLOTS_TYPE, int64, RECORDS_TYPE, BITS_TYPE, SEQUENCES_TYPE, BITS_TYPE, STATUS_TYPE))
def take_command(slots, slot, batches, bits, newest, staging, status):
    """Stamp the start of a batch and gather its windows into `staging`, shape (16, T, 48).

    Args:
        slots: The two slots.
        slot: Which one.
        batches: Answers in the making, 16 a slot.
        bits: Host windows.
        newest: Newest row_sequence of each symbol.
        staging: The engine's input as bits.
        status: What became of each row, shape (2, 16), written.
    """
    slots[slot].start_ns = monotonic_ns()
    for i in range(slots[slot].size):
        record = batches[slot * MAX_BATCH + i]
        status[slot, i] = gather(bits, newest, int64(record.symbol_id), record.row_sequence, staging, i)


@kernel(void(SLOTS_TYPE, int64, float32[:, ::1], STATUS_TYPE, PROBABILITIES_TYPE, int64, MAILBOX_TYPE))
def complete(slots, slot, outputs, status, probabilities, engine_failed, mailbox):
    """Hand a batch back: exactly `size` rows of `outputs`, each with its status; a row that is not finite fails alone.

    Args:
        slots: The two slots.
        slot: Which one.
        outputs: The engine's output, shape (16, 3).
        status: What became of each row, shape (2, 16).
        probabilities: Results, shape (2, 16, 3).
        engine_failed: 1 when the engine raised and `outputs` means nothing.
        mailbox: The counts.
    """
    for i in range(slots[slot].size):
        finite = True
        for k in range(N_OUTPUTS):
            value = outputs[i, k]
            finite = finite and value - value == float32(0)
            probabilities[slot, i, k] = value
        if not finite and status[slot, i] == ROW_OK:
            status[slot, i] = ROW_NOT_FINITE
    slots[slot].engine_failed = engine_failed
    slots[slot].end_ns = monotonic_ns()
    signal(mailbox, COMPLETED, uint32(mailbox[COMPLETED] + uint32(1)))
