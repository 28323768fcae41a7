"""Creating the two segments of a ring and checking that they are what this process expects."""

from __future__ import annotations

import secrets
import time

import numpy as np
import numpy.typing as npt

from tickwire.errors import RingError, RingLayoutError, RingNotFoundError
from tickwire.ring.layout import (
    CAPACITY_AT,
    CONTROL_BYTES,
    CONTROL_GENERATION_AT,
    CONTROL_MAGIC,
    DATA_OFFSET_AT,
    FIRST_SEQUENCE_AT,
    GENERATION_AT,
    HEADER_BYTES,
    HEADER_BYTES_AT,
    LAYOUT_VERSION,
    MAGIC,
    MAGIC_AT,
    MAX_CONSUMERS_AT,
    MODE_AT,
    PAYLOAD_BYTES_AT,
    PUBLISHED_AT,
    SCHEMA_HASH_AT,
    SLOT_BYTES_AT,
    STOP_AT,
    SYMBOL_TABLE_HASH_AT,
    VERSION_AT,
)
from tickwire.ring.segment import Segment, segment_name
from tickwire.ring.shape import check_field, check_layout
from tickwire.ring.spec import RingSpec

DATA_MODE = 0o640
CONTROL_MODE = 0o660
CONTROL_SUFFIX = ".ctl"
_LOOK_EVERY_S = 0.005


def data_name(prefix: str, spec: RingSpec) -> str:
    """Return the name of a ring's data segment."""
    return segment_name(prefix, spec.name)


def control_name(prefix: str, spec: RingSpec) -> str:
    """Return the name of a ring's control segment."""
    return data_name(prefix, spec) + CONTROL_SUFFIX


def create_ring(prefix: str, spec: RingSpec, symbol_table_hash: int) -> None:
    """Create both segments if the ring does not exist; do nothing if it does (I8).

    Raises:
        RingError: No memory or no permission.
    """
    generation = secrets.randbits(64) | 1

    def fill_data(segment: Segment) -> None:
        for offset, value in (
            (CAPACITY_AT, spec.capacity),
            (DATA_OFFSET_AT, HEADER_BYTES),
            (SCHEMA_HASH_AT, spec.schema_hash),
            (SYMBOL_TABLE_HASH_AT, symbol_table_hash),
            (GENERATION_AT, generation),
            (FIRST_SEQUENCE_AT, spec.first_sequence),
            (PUBLISHED_AT, spec.first_sequence),
        ):
            _u64(segment, offset)[0] = value
        for offset, value in (
            (VERSION_AT, LAYOUT_VERSION),
            (HEADER_BYTES_AT, HEADER_BYTES),
            (SLOT_BYTES_AT, spec.slot_bytes),
            (PAYLOAD_BYTES_AT, spec.payload_bytes),
            (MODE_AT, int(spec.mode)),
            (MAX_CONSUMERS_AT, spec.max_consumers),
        ):
            _u32(segment, offset)[0] = value
        _u64(segment, MAGIC_AT)[0] = MAGIC

    def fill_control(segment: Segment) -> None:
        _u64(segment, CONTROL_GENERATION_AT)[0] = generation
        _u64(segment, 0)[0] = CONTROL_MAGIC

    if _exists(data_name(prefix, spec)):
        return
    # The control segment comes first: whoever finds the data segment finds its partner.
    control = Segment.create(
        control_name(prefix, spec), CONTROL_BYTES, mode=CONTROL_MODE, fill=fill_control, replace=True
    )
    control.close()
    try:
        Segment.create(data_name(prefix, spec), spec.data_bytes, mode=DATA_MODE, fill=fill_data).close()
    except RingError:
        if not _exists(data_name(prefix, spec)):
            raise


def open_ring(prefix: str, spec: RingSpec, *, producer: bool, timeout_s: float) -> tuple[Segment, Segment]:
    """Attach to both segments, waiting at most `timeout_s` for them to appear, and check them.

    Returns:
        The data segment (writable for the producer) and the control segment (writable).

    Raises:
        RingNotFoundError: The ring did not appear in time.
        RingLayoutError: It is not the ring that `spec` describes.
        RingError: No permission.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            data = Segment.open(data_name(prefix, spec), writable=producer)
            control = Segment.open(control_name(prefix, spec), writable=True)
        except RingNotFoundError as error:
            if time.monotonic() >= deadline:
                raise RingNotFoundError(
                    f"ring '{prefix}.{spec.name}': must exist, did not appear within {timeout_s:g} s; "
                    "is its producer (or `tickwire up`) running with this prefix and this /dev/shm?"
                ) from error
            time.sleep(_LOOK_EVERY_S)
            continue
        try:
            check_header(data, spec)
            if _u64(control, CONTROL_GENERATION_AT)[0] == _u64(data, GENERATION_AT)[0]:
                return data, control
        except BaseException:
            data.close()
            control.close()
            raise
        data.close()  # caught between the removal of one generation and the creation of the next
        control.close()
        if time.monotonic() >= deadline:
            raise RingLayoutError(f"ring '{prefix}.{spec.name}': its control segment belongs to another generation")
        time.sleep(_LOOK_EVERY_S)


def check_header(segment: Segment, spec: RingSpec) -> None:
    """Compare a data segment's header with what is expected.

    Raises:
        RingLayoutError: Names the first field that differs.
    """
    check_layout(segment)
    for field, expected, found in (
        ("capacity", spec.capacity, _u64(segment, CAPACITY_AT)[0]),
        ("slot_bytes", spec.slot_bytes, _u32(segment, SLOT_BYTES_AT)[0]),
        ("mode", int(spec.mode), _u32(segment, MODE_AT)[0]),
        ("max_consumers", spec.max_consumers, _u32(segment, MAX_CONSUMERS_AT)[0]),
        ("data_offset", HEADER_BYTES, _u64(segment, DATA_OFFSET_AT)[0]),
        ("schema_hash", spec.schema_hash, _u64(segment, SCHEMA_HASH_AT)[0]),
        ("size", spec.data_bytes, segment.size),
    ):
        check_field(segment, field, expected, int(found))


def check_symbol_table(segment: Segment, symbol_table_hash: int) -> None:
    """Compare the symbol table a ring was made for.

    Raises:
        RingLayoutError: It is another one.
    """
    found = int(_u64(segment, SYMBOL_TABLE_HASH_AT)[0])
    if found != symbol_table_hash:
        raise RingLayoutError(
            f"ring {segment.name!r}: symbol table hash must be {symbol_table_hash:#x}, is {found:#x}; "
            "all processes need the same [[symbols]]"
        )


def request_stop(prefix: str, spec: RingSpec) -> None:
    """Set a ring's stop word, as its owner does before removing it: waits of its consumers end. No ring is no error."""
    try:
        data = Segment.open(data_name(prefix, spec), writable=True)
    except RingNotFoundError:
        return
    if data.size >= HEADER_BYTES:
        _u32(data, STOP_AT)[0] = 1
    data.close()


def _exists(name: str) -> bool:
    try:
        Segment.open(name, writable=False).close()
    except RingNotFoundError:
        return False
    return True


def _u64(segment: Segment, offset: int) -> npt.NDArray[np.generic]:
    return segment.array(np.uint64, offset, 1)


def _u32(segment: Segment, offset: int) -> npt.NDArray[np.generic]:
    return segment.array(np.uint32, offset, 1)
