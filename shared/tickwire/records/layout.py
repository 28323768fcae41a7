"""How records are laid out in slots: little-endian, explicit offsets, every 8-byte word aligned, hashed.

A record dtype describes a whole ring slot. Its first two words belong to the ring: `sequence` (in shared memory the
slot stamp, in a polled record the ring sequence) and `publish_mono_ns`. A producer fills everything behind them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

RECORD_VERSION = 1
"""Version of all record layouts; part of every schema hash."""

SLOT_HEADER_BYTES = 16
"""The ring's own words at the start of a slot: stamp and publish time."""

FieldSpec = tuple[str, str] | tuple[str, str, tuple[int, ...]]

RecordArray = npt.NDArray[np.void]
"""A structured array of one of the record dtypes, shape (n,)."""

Words = npt.NDArray[np.uint64]
"""The same memory as 8-byte words, shape (n, slot_bytes / 8): what kernels copy."""


def slot_dtype(slot_bytes: int, fields: Sequence[FieldSpec]) -> np.dtype[np.void]:
    """Return a packed dtype of exactly `slot_bytes`, the ring's header first.

    Raises:
        ValueError: A field is not aligned to its size, or the fields do not fit in the slot.
    """
    specs: list[Any] = [("sequence", "<u8"), ("publish_mono_ns", "<i8"), *fields]
    packed = np.dtype(specs)
    for name in packed.names or ():
        assert packed.fields is not None
        field, offset = packed.fields[name][:2]
        unit = min(field.base.itemsize, 8) if field.base.kind != "S" else 8
        if offset % unit:
            raise ValueError(f"field {name!r}: must be aligned to {unit} bytes, is at offset {offset}")
    spare = slot_bytes - packed.itemsize
    if spare < 0 or slot_bytes % 64:
        raise ValueError(f"slot: must be a multiple of 64 bytes and hold {packed.itemsize}, was {slot_bytes}")
    if spare:
        specs.append(("reserved", "u1", (spare,)))
    return np.dtype(specs, align=True)


def schema_hash(dtype: np.dtype[np.void], *extra: str) -> int:
    """Return the 64-bit hash of a record layout (names, types, offsets, version) and of what else must agree."""
    text = repr((RECORD_VERSION, dtype.descr, extra))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def as_words(records: RecordArray) -> Words:
    """Return a record array's own memory as words, shape (n, words a slot).

    Raises:
        ValueError: The array is not C-contiguous.
    """
    if not records.flags.c_contiguous:
        raise ValueError("records: must be C-contiguous to be viewed as words")
    return records.view(np.uint64).reshape(len(records), records.dtype.itemsize // 8)
