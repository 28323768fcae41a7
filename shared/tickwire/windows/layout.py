"""The bytes of the windows store, little-endian; every shared word has one writer, the features process.

    <prefix>.windows           0640, written by features, mapped read-only by everybody else
    +--------+---------------------------------------------------------------+
    | 0x0000 | u64 magic, stored last                                        |
    | 0x0008 | u32 version            u32 header_bytes                       |
    | 0x0010 | u64 feature_hash  symbol_table_hash  n_symbols                |
    | 0x0028 | u32 window_rows        u32 n_features                         |
    | 0x0030 | u32 row_bytes                                                 |
    | 0x0100 | liveness lock of the writer (one byte, an OFD lock)           |
    | 0x0108 | u32 writer pid         u32 epoch, +1 at each attach           |
    | 0x1000 | symbols, SYMBOL_BYTES each:                                   |
    |        |   0x00 u64 head         row_sequence of the newest row        |
    |        |   0x08 u64 valid_from   first row of the unbroken run         |
    |        |   0x80 1,024 rows at row_sequence mod 1,024, 256 bytes each:  |
    |        |        48 f32 features | u64 stamp = row_sequence | spare     |
    +--------+---------------------------------------------------------------+

A stamp is 0 while its row is written. Row sequences start at 1. A run that is empty has valid_from = head + 1.
"""

from __future__ import annotations

from tickwire.records import N_FEATURES, WINDOW_ROWS

MAGIC = int.from_bytes(b"TWWIND01", "little")
LAYOUT_VERSION = 1
SEGMENT_NAME = "windows"
SEGMENT_MODE = 0o640

HEADER_BYTES = 0x1000
MAGIC_AT = 0x000
VERSION_AT = 0x008
HEADER_BYTES_AT = 0x00C
FEATURE_HASH_AT = 0x010
SYMBOL_TABLE_HASH_AT = 0x018
N_SYMBOLS_AT = 0x020
WINDOW_ROWS_AT = 0x028
N_FEATURES_AT = 0x02C
ROW_BYTES_AT = 0x030
WRITER_LOCK_AT = 0x100
WRITER_PID_AT = 0x108
EPOCH_AT = 0x10C

ROW_WORDS = N_FEATURES // 2
"""8-byte words of a row's features."""
STAMP = 4 * N_FEATURES
ROW_BYTES = 256
"""Features, stamp, padding to a multiple of the cache line."""

HEAD = 0x00
VALID_FROM = 0x08
ROWS = 0x80
SYMBOL_BYTES = ROWS + WINDOW_ROWS * ROW_BYTES


def window_bytes(n_symbols: int) -> int:
    """Return the size of the store of so many symbols."""
    return HEADER_BYTES + n_symbols * SYMBOL_BYTES
