"""The records that travel through the rings, the symbol table and the feature table: numpy dtypes, little-endian."""

from tickwire.records.layout import (
    RECORD_VERSION,
    SLOT_HEADER_BYTES,
    RecordArray,
    Words,
    as_words,
    schema_hash,
    slot_dtype,
)
from tickwire.records.prediction import PREDICTION, EngineKind, FlushReason, PredictionKind
from tickwire.records.row import N_FEATURES, ROW, WINDOW_ROWS, RowKind
from tickwire.records.signal import SIGNAL, Action, SignalKind, SignalReason
from tickwire.records.symbols import Instrument, SymbolTable
from tickwire.records.tick import TICK, GapReason, Side, TickFlag, TickKind, TradingStatus

__all__ = [
    "N_FEATURES",
    "PREDICTION",
    "RECORD_VERSION",
    "ROW",
    "SIGNAL",
    "SLOT_HEADER_BYTES",
    "TICK",
    "WINDOW_ROWS",
    "Action",
    "EngineKind",
    "FlushReason",
    "GapReason",
    "Instrument",
    "PredictionKind",
    "RecordArray",
    "RowKind",
    "Side",
    "SignalKind",
    "SignalReason",
    "SymbolTable",
    "TickFlag",
    "TickKind",
    "TradingStatus",
    "Words",
    "as_words",
    "schema_hash",
    "slot_dtype",
]
