"""Creating the windows store and checking that it is what this process expects."""

from __future__ import annotations

import numpy as np

from tickwire.errors import RingError, RingLayoutError
from tickwire.records import N_FEATURES, WINDOW_ROWS
from tickwire.records.features import feature_hash
from tickwire.ring.segment import Segment, segment_name
from tickwire.windows import layout


def open_or_create(prefix: str, n_symbols: int, symbol_table_hash: int) -> Segment:
    """Return the store, writable; create it with empty runs if it does not exist.

    Raises:
        RingLayoutError: It exists for other features, symbols or another layout.
        RingError: No memory or no permission.
    """
    name = segment_name(prefix, layout.SEGMENT_NAME)

    def fill(segment: Segment) -> None:
        for offset, value in (
            (layout.FEATURE_HASH_AT, feature_hash()),
            (layout.SYMBOL_TABLE_HASH_AT, symbol_table_hash),
            (layout.N_SYMBOLS_AT, n_symbols),
        ):
            segment.array(np.uint64, offset, 1)[0] = value
        for offset, value in (
            (layout.VERSION_AT, layout.LAYOUT_VERSION),
            (layout.HEADER_BYTES_AT, layout.HEADER_BYTES),
            (layout.WINDOW_ROWS_AT, WINDOW_ROWS),
            (layout.N_FEATURES_AT, N_FEATURES),
            (layout.ROW_BYTES_AT, layout.ROW_BYTES),
        ):
            segment.array(np.uint32, offset, 1)[0] = value
        for symbol in range(n_symbols):
            block = layout.HEADER_BYTES + symbol * layout.SYMBOL_BYTES
            segment.array(np.uint64, block + layout.VALID_FROM, 1)[0] = 1
        segment.array(np.uint64, layout.MAGIC_AT, 1)[0] = layout.MAGIC

    try:
        return Segment.create(name, layout.window_bytes(n_symbols), mode=layout.SEGMENT_MODE, fill=fill)
    except RingError as error:
        try:
            segment = Segment.open(name, writable=True)
        except RingError:
            raise error from None
    try:
        found = check_header(segment, symbol_table_hash)
        if found != n_symbols:
            raise RingLayoutError(f"windows {name!r}: n_symbols must be {n_symbols}, is {found}")
    except BaseException:
        segment.close()
        raise
    return segment


def check_header(segment: Segment, symbol_table_hash: int | None) -> int:
    """Compare a store's header with what is expected; return its number of symbols.

    Raises:
        RingLayoutError: Names the first field that differs.
    """
    subject = f"windows {segment.name!r}"
    if segment.size < layout.HEADER_BYTES:
        raise RingLayoutError(f"{subject}: must be at least {layout.HEADER_BYTES} bytes, is {segment.size}")
    if (magic := _u64(segment, layout.MAGIC_AT)) != layout.MAGIC:
        raise RingLayoutError(f"{subject}: is no Tickwire windows store (magic {magic:#x})")
    n_symbols = _u64(segment, layout.N_SYMBOLS_AT)
    for field, expected, found in (
        ("version", layout.LAYOUT_VERSION, _u32(segment, layout.VERSION_AT)),
        ("header_bytes", layout.HEADER_BYTES, _u32(segment, layout.HEADER_BYTES_AT)),
        ("window_rows", WINDOW_ROWS, _u32(segment, layout.WINDOW_ROWS_AT)),
        ("n_features", N_FEATURES, _u32(segment, layout.N_FEATURES_AT)),
        ("row_bytes", layout.ROW_BYTES, _u32(segment, layout.ROW_BYTES_AT)),
        ("feature_hash", feature_hash(), _u64(segment, layout.FEATURE_HASH_AT)),
        ("size", layout.window_bytes(n_symbols), segment.size),
    ):
        if found != expected:
            raise RingLayoutError(f"{subject}: {field} must be {expected}, is {found}; both ends need the same release")
    found = _u64(segment, layout.SYMBOL_TABLE_HASH_AT)
    if symbol_table_hash is not None and found != symbol_table_hash:
        raise RingLayoutError(
            f"{subject}: symbol table hash must be {symbol_table_hash:#x}, is {found:#x}; "
            "all processes need the same [[symbols]]"
        )
    return n_symbols


def _u64(segment: Segment, offset: int) -> int:
    return int(segment.array(np.uint64, offset, 1)[0])


def _u32(segment: Segment, offset: int) -> int:
    return int(segment.array(np.uint32, offset, 1)[0])
