"""Signals: the router's decision, what strategies subscribe to."""

from __future__ import annotations

from enum import IntEnum

from tickwire.records.layout import slot_dtype


class SignalKind(IntEnum):
    """What a record on the signals ring says."""

    SIGNAL = 1
    WITHDRAWN = 2
    """The symbol's last signal no longer holds (book invalid, kill switch); action is HOLD."""
    BARRIER = 3


class Action(IntEnum):
    """What to do."""

    HOLD = 0
    BUY = 1
    SELL = 2


class SignalReason(IntEnum):
    """Why the action is what it is."""

    MODEL = 0
    """The model's probabilities and the symbol's thresholds."""
    BELOW_THRESHOLD = 1
    STALE = 2
    """Older than the staleness cut-off."""
    KILLED_GLOBAL = 3
    KILLED_SYMBOL = 4
    EXPIRED = 5
    ENGINE_FAILED = 6
    BOOK_INVALID = 7
    RISK_LIMIT = 8
    NOT_TRADING = 9


SIGNAL = slot_dtype(
    256,
    [
        ("symbol_id", "<u4"),
        ("kind", "u1"),
        ("action", "u1"),
        ("reason", "u1"),
        ("engine", "u1"),
        ("row_sequence", "<u8"),
        ("prediction_sequence", "<u8"),  # ring sequence of the prediction
        ("barrier_id", "<u8"),
        ("probability_down", "<f4"),
        ("probability_flat", "<f4"),
        ("probability_up", "<f4"),
        ("batch_size", "<u4"),
        ("quantity_units", "<i8"),  # 0 for HOLD
        ("limit_price_units", "<i8"),  # 0 for HOLD
        ("venue_time_ns", "<i8"),
        ("receive_time_ns", "<i8"),
        ("receive_mono_ns", "<i8"),
        ("tick_mono_ns", "<i8"),
        ("feature_mono_ns", "<i8"),
        ("row_mono_ns", "<i8"),
        ("request_mono_ns", "<i8"),
        ("batch_mono_ns", "<i8"),
        ("engine_start_mono_ns", "<i8"),
        ("engine_end_mono_ns", "<i8"),
        ("prediction_mono_ns", "<i8"),  # prediction published
        ("model", "S40"),
    ],
)
"""dtype of one signal, 256 bytes. `publish_mono_ns` is when the signal was published."""
