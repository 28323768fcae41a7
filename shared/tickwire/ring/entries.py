"""The consumers' entries of a control segment: taken by name, held by a liveness lock.

I6  A named lossless consumer finds its entry again and goes on at its cursor; entries survive their process.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np

from tickwire.errors import ConsumerAttachedError, RingError
from tickwire.ring import layout
from tickwire.ring.segment import Segment

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
LOCK_TIMEOUT_S = 2.0
_LOOK_EVERY_S = 0.001


@dataclass(frozen=True)
class Entry:
    """One consumer's place in the control segment."""

    index: int
    offset: int
    resumed_cursor: int | None
    """Cursor of an earlier process of the same name, None for a new consumer."""


def take_entry(
    data: Segment, control: Segment, ring: str, name: str, max_consumers: int, *, lossless: bool, cursor: int
) -> Entry | None:
    """Take the entry of `name`, or a free one, and fill it in; the lock is held until `control` is closed.

    Args:
        data: Data segment of the ring, for the EVICTED flags.
        control: Control segment, writable.
        ring: Name of the ring, for messages.
        name: The consumer's name, at most 63 bytes.
        max_consumers: Entries that the ring has.
        lossless: Whether the consumer holds the producer back.
        cursor: Where a new consumer starts.

    Returns:
        The entry; None for a lossy consumer when all are taken (it then reads unregistered).

    Raises:
        ConsumerAttachedError: A live process uses this name.
        RingError: All entries are taken by live or resumable consumers.
    """
    encoded = name.encode()
    if not 0 < len(encoded) <= layout.NAME_BYTES:
        raise ValueError(f"consumer name: must be 1 to {layout.NAME_BYTES} bytes, was {name!r}")
    _lock_entries(control, ring)
    try:
        name_hash = hash_name(name)
        index = _find(control, name_hash, max_consumers)
        resumed = index is not None
        if index is None:
            index = _find_free(data, control, max_consumers)
        if index is None:
            if lossless:
                raise RingError(f"ring {ring!r}: all {max_consumers} consumers are taken, {name!r} finds no place")
            return None
        offset = layout.ENTRIES_AT + layout.ENTRY_BYTES * index
        if not control.try_lock(offset + layout.LIVENESS_LOCK):
            pid = int(_u32(control, offset + layout.PID))
            raise ConsumerAttachedError(f"ring {ring!r}: consumer {name!r} must be attached once, pid {pid} is alive")
        found = int(control.array(np.uint64, offset + layout.CURSOR, 1)[0]) if resumed else None
        _fill(control, offset, encoded, name_hash, cursor if found is None else found, lossless=lossless)
        return Entry(index, offset, found)
    finally:
        control.unlock(layout.ENTRY_LOCK_AT)


def hash_name(name: str) -> int:
    """Return the 64-bit hash under which a consumer's name stands in its entry; never 0.

    FNV-1a: a few lines in any language, since the C header computes it too.
    Source: http://www.isthe.com/chongo/tech/comp/fnv/
    """
    value = FNV_OFFSET
    for byte in name.encode():
        value = (value ^ byte) * FNV_PRIME % 2**64
    return value | 1


def _fill(control: Segment, offset: int, name: bytes, name_hash: int, cursor: int, *, lossless: bool) -> None:
    control.array(np.uint8, offset + layout.NAME, layout.NAME_BYTES + 1)[:] = np.frombuffer(
        name.ljust(layout.NAME_BYTES + 1, b"\0"), dtype=np.uint8
    )
    control.array(np.uint64, offset + layout.CURSOR, 1)[0] = cursor
    control.array(np.uint64, offset + layout.LOST, 1)[0] = 0
    control.array(np.uint64, offset + layout.NAME_HASH, 1)[0] = name_hash
    control.array(np.uint32, offset + layout.PID, 1)[0] = os.getpid()
    control.array(np.uint32, offset + layout.ATTACHES, 1)[0] += 1
    control.array(np.uint32, offset + layout.STATE, 1)[0] = layout.ACTIVE if lossless else layout.OBSERVER


def _find(control: Segment, name_hash: int, max_consumers: int) -> int | None:
    for i in range(max_consumers):
        offset = layout.ENTRIES_AT + layout.ENTRY_BYTES * i
        if (
            _u32(control, offset + layout.STATE) != layout.FREE
            and int(control.array(np.uint64, offset + layout.NAME_HASH, 1)[0]) == name_hash
        ):
            return i
    return None


def _find_free(data: Segment, control: Segment, max_consumers: int) -> int | None:
    # A free entry, else one of a dead observer, else one of a dead consumer that was evicted.
    dead: list[tuple[bool, int]] = []
    for i in range(max_consumers):
        offset = layout.ENTRIES_AT + layout.ENTRY_BYTES * i
        state = _u32(control, offset + layout.STATE)
        if state == layout.FREE:
            return i
        evicted = _u32(data, layout.EVICTED_AT + layout.ENTRY_BYTES * i) != 0
        if (state == layout.OBSERVER or evicted) and not control.locked_by_other(offset + layout.LIVENESS_LOCK):
            dead.append((evicted, i))
    return min(dead)[1] if dead else None


def _lock_entries(control: Segment, ring: str) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while not control.try_lock(layout.ENTRY_LOCK_AT):
        if time.monotonic() >= deadline:
            raise RingError(f"ring {ring!r}: another process keeps attaching for {LOCK_TIMEOUT_S:g} s; is it stopped?")
        time.sleep(_LOOK_EVERY_S)


def _u32(segment: Segment, offset: int) -> int:
    return int(segment.array(np.uint32, offset, 1)[0])
