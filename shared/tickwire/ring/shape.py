"""What a ring's own header says, checked without knowing its records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tickwire.errors import RingLayoutError
from tickwire.ring.layout import (
    CAPACITY_AT,
    FIRST_SEQUENCE_AT,
    GENERATION_AT,
    HEADER_BYTES,
    HEADER_BYTES_AT,
    LAYOUT_VERSION,
    MAGIC,
    MAGIC_AT,
    MAX_CONSUMERS,
    MAX_CONSUMERS_AT,
    MODE_AT,
    SLOT_BYTES_AT,
    VERSION_AT,
)
from tickwire.ring.segment import Segment
from tickwire.ring.spec import RingMode


@dataclass(frozen=True)
class RingShape:
    """What stands in a ring's header."""

    mode: int
    capacity: int
    slot_bytes: int
    max_consumers: int
    first_sequence: int
    generation: int


def read_shape(segment: Segment) -> RingShape:
    """Return what a data segment's own header says, for looking at a ring of unknown records.

    Raises:
        RingLayoutError: It is no ring of this layout version, or its header contradicts itself.
    """
    check_layout(segment)
    shape = RingShape(
        mode=int(_u32(segment, MODE_AT)[0]),
        capacity=int(_u64(segment, CAPACITY_AT)[0]),
        slot_bytes=int(_u32(segment, SLOT_BYTES_AT)[0]),
        max_consumers=int(_u32(segment, MAX_CONSUMERS_AT)[0]),
        first_sequence=int(_u64(segment, FIRST_SEQUENCE_AT)[0]),
        generation=int(_u64(segment, GENERATION_AT)[0]),
    )
    if shape.mode not in tuple(RingMode) or shape.max_consumers > MAX_CONSUMERS:
        raise RingLayoutError(f"ring {segment.name!r}: mode and max_consumers must be possible, are {shape}")
    check_field(segment, "size", HEADER_BYTES + shape.capacity * shape.slot_bytes, segment.size)
    return shape


def check_layout(segment: Segment) -> None:
    """Check that a data segment is a ring of this layout version, of whatever records.

    Raises:
        RingLayoutError: Names the first field that differs.
    """
    if segment.size < HEADER_BYTES:
        raise RingLayoutError(f"ring {segment.name!r}: must be at least {HEADER_BYTES} bytes, is {segment.size}")
    magic = int(_u64(segment, MAGIC_AT)[0])
    if magic != MAGIC:
        raise RingLayoutError(f"ring {segment.name!r}: is no Tickwire ring (magic {magic:#x})")
    check_field(segment, "version", LAYOUT_VERSION, int(_u32(segment, VERSION_AT)[0]))
    check_field(segment, "header_bytes", HEADER_BYTES, int(_u32(segment, HEADER_BYTES_AT)[0]))


def check_field(segment: Segment, field: str, expected: int, found: int) -> None:
    """Compare one field of a header.

    Raises:
        RingLayoutError: It differs.
    """
    if found != expected:
        raise RingLayoutError(
            f"ring {segment.name!r}: {field} must be {expected}, is {found}; both ends need the same release"
        )


def _u64(segment: Segment, offset: int) -> npt.NDArray[np.generic]:
    return segment.array(np.uint64, offset, 1)


def _u32(segment: Segment, offset: int) -> npt.NDArray[np.generic]:
    return segment.array(np.uint32, offset, 1)
