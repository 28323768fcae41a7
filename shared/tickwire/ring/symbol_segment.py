"""The symbol table in shared memory, so that a strategy needs the prefix and nothing else."""

from __future__ import annotations

import numpy as np

from tickwire.errors import RingError, RingLayoutError
from tickwire.records import SymbolTable
from tickwire.ring.segment import Segment, segment_name

NAME = "symbols"
MAGIC = int.from_bytes(b"TWSYMB01", "little")
HEADER_BYTES = 64
LENGTH_AT = 8  # u64 bytes of the JSON text behind the header
HASH_AT = 16  # u64 hash of the table, the one that stands in every ring
_MODE = 0o640


def publish_symbols(prefix: str, table: SymbolTable) -> None:
    """Create the symbol segment, or check that the existing one holds the same table.

    Raises:
        RingLayoutError: It holds another one.
        RingError: No memory or no permission.
    """
    text = table.encode()

    def fill(segment: Segment) -> None:
        segment.array(np.uint64, LENGTH_AT, 1)[0] = len(text)
        segment.array(np.uint64, HASH_AT, 1)[0] = table.hash
        segment.array(np.uint8, HEADER_BYTES, len(text))[:] = np.frombuffer(text, dtype=np.uint8)
        segment.array(np.uint64, 0, 1)[0] = MAGIC

    name = segment_name(prefix, NAME)
    try:
        Segment.create(name, HEADER_BYTES + len(text), mode=_MODE, fill=fill).close()
    except RingError:
        if read_symbols(prefix).hash != table.hash:
            raise RingLayoutError(f"segment {name!r}: holds another symbol table; use another prefix") from None


def read_symbols(prefix: str) -> SymbolTable:
    """Return the symbol table of a prefix.

    Raises:
        RingNotFoundError: There is none.
        RingLayoutError: The segment is something else.
    """
    segment = Segment.open(segment_name(prefix, NAME), writable=False)
    try:
        if segment.size < HEADER_BYTES or int(segment.array(np.uint64, 0, 1)[0]) != MAGIC:
            raise RingLayoutError(f"segment {segment.name!r}: is no Tickwire symbol table")
        length = int(segment.array(np.uint64, LENGTH_AT, 1)[0])
        if length > segment.size - HEADER_BYTES:
            raise RingLayoutError(f"segment {segment.name!r}: must hold {length} bytes, is cut off")
        return SymbolTable.decode(segment.array(np.uint8, HEADER_BYTES, length).tobytes())
    finally:
        segment.close()
