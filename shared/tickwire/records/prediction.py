"""Predictions: a model's output for one request, from inference to the router."""

from __future__ import annotations

from enum import IntEnum

from tickwire.records.layout import slot_dtype


class PredictionKind(IntEnum):
    """What a record on the predictions ring says. Each request is answered by exactly one record."""

    PREDICTION = 1
    EXPIRED = 2
    """The deadline passed before the request was launched."""
    FAILED = 3
    """The engine failed, or the output of this row was not finite."""
    INVALIDATED = 4
    """The symbol's book became invalid; also sent when no request was waiting, so that the router withdraws."""
    BARRIER = 5


class FlushReason(IntEnum):
    """Why a batch was closed."""

    NONE = 0
    FULL = 1
    DEADLINE = 2
    IDLE = 3
    DRAIN = 4


class EngineKind(IntEnum):
    """What made a prediction."""

    NONE = 0
    TENSORRT = 1
    ONNXRUNTIME = 2
    RULE = 3
    FUSED = 4


PREDICTION = slot_dtype(
    256,
    [
        ("symbol_id", "<u4"),
        ("kind", "u1"),
        ("flush_reason", "u1"),
        ("engine", "u1"),
        ("batch_size", "u1"),
        ("row_sequence", "<u8"),  # newest row of the window
        ("barrier_id", "<u8"),
        ("batch_sequence", "<u8"),
        ("probability_down", "<f4"),
        ("probability_flat", "<f4"),
        ("probability_up", "<f4"),
        ("conflated", "<u4"),  # rows of this symbol that this request replaced
        ("bid_price_units", "<i8"),  # of the newest row
        ("ask_price_units", "<i8"),
        ("venue_time_ns", "<i8"),
        ("receive_time_ns", "<i8"),
        ("receive_mono_ns", "<i8"),
        ("tick_mono_ns", "<i8"),  # tick published
        ("feature_mono_ns", "<i8"),  # tick taken by features
        ("row_mono_ns", "<i8"),  # row published
        ("request_mono_ns", "<i8"),  # row taken by inference
        ("batch_mono_ns", "<i8"),  # batch closed and launched
        ("engine_start_mono_ns", "<i8"),  # engine took the batch
        ("engine_end_mono_ns", "<i8"),  # engine done
        ("deadline_mono_ns", "<i8"),
        ("model", "S40"),  # name@version of the model that made it
    ],
)
"""dtype of one prediction, 256 bytes."""
