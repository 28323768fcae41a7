"""Rows: one feature row a record, from features to inference."""

from __future__ import annotations

from enum import IntEnum

from tickwire.records.layout import slot_dtype

N_FEATURES = 48
"""F: features in a row."""

WINDOW_ROWS = 1024
"""Rows a symbol kept in the `windows` store, at row_sequence mod 1,024."""


class RowKind(IntEnum):
    """What a record on the rows ring says."""

    ROW = 1
    INVALIDATED = 2
    """The symbol's book became invalid: no prediction until rows from `valid_from` on fill the window again."""
    BARRIER = 3


ROW = slot_dtype(
    320,
    [
        ("symbol_id", "<u4"),
        ("kind", "u1"),
        ("reason", "u1"),  # INVALIDATED: the GapReason, 0 for a row with a non-finite value or a trading halt
        ("trading", "u1"),  # 1 in continuous trading, 0 in a halt or auction
        ("spare", "u1"),
        ("row_sequence", "<u8"),  # per symbol, from 1
        ("valid_from", "<u8"),  # first row_sequence of the unbroken run that ends here
        ("tick_sequence", "<u8"),  # ring sequence of the tick that completed the row
        ("barrier_id", "<u8"),
        ("bid_price_units", "<i8"),
        ("ask_price_units", "<i8"),
        ("venue_time_ns", "<i8"),
        ("receive_time_ns", "<i8"),
        ("receive_mono_ns", "<i8"),
        ("tick_mono_ns", "<i8"),  # tick published
        ("feature_mono_ns", "<i8"),  # tick taken by features
        ("features", "<f4", (N_FEATURES,)),
    ],
)
"""dtype of one row, 320 bytes. `publish_mono_ns` is when the row was published."""
