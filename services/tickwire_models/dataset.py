"""From captures to samples, through the live parser and the live feature kernels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tickwire.errors import FeedError
from tickwire.models import DataSource
from tickwire.records import N_FEATURES, Instrument, RecordArray, RowKind, SymbolTable
from tickwire_features.offline import rows_from_ticks
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.offline import read_ticks
from tickwire_models.labels import Moves, moves_of
from tickwire_models.split import TRAIN, SplitRule, assign_parts

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Session:
    """One symbol over one stretch of recorded time."""

    instrument: Instrument
    captures: tuple[CaptureConfig, ...]
    """Files that continue one another."""
    skip_s: float = 0.0
    """Leave out so much at the start (what the demo replays is not trained on)."""


@dataclass(frozen=True)
class Rows:
    """The rows of one session, in order."""

    label: str
    features: npt.NDArray[np.float32]
    """Shape (n, F), raw."""
    receive_time_ns: npt.NDArray[np.int64]
    mid: npt.NDArray[np.float64]
    run: npt.NDArray[np.int64]
    """Changes where a window may not reach across."""
    usable: npt.NDArray[np.bool_]
    """Whether T rows of one run end with this row, in continuous trading."""


@dataclass(frozen=True)
class Samples:
    """The samples of one session: indices of the newest row of each window."""

    rows: Rows
    newest: npt.NDArray[np.int64]
    moves: npt.NDArray[np.float64]
    part: npt.NDArray[np.int64]


def read_session(session: Session, folder: Path, window_rows: int) -> Rows:
    """Return the rows of a session.

    Raises:
        FeedError: A capture is missing, or gives no row.
    """
    table = SymbolTable([session.instrument])
    ticks = read_ticks(session.captures, table, folder=folder, align="absolute")
    chunks = [rows_of(records) for records in rows_from_ticks(ticks, 1)]
    if not sum(map(len, chunks)):
        raise FeedError(f"captures of {session.instrument.label}: must give at least one row, gave none")
    records = np.concatenate(chunks)
    # The skipped time is processed, so that the book is right, and its rows are dropped.
    start_ns = int(records["receive_time_ns"][0]) + int(session.skip_s * NANOSECONDS)
    return to_rows(session.instrument.label, records[records["receive_time_ns"] >= start_ns], window_rows)


def to_rows(label: str, records: RecordArray, window_rows: int) -> Rows:
    """Return one symbol's ROW records as arrays for training."""
    run = records["valid_from"].astype(np.int64)
    unbroken = records["row_sequence"].astype(np.int64) - run + 1
    return Rows(
        label=label,
        features=np.ascontiguousarray(records["features"]).reshape(len(records), N_FEATURES),
        receive_time_ns=records["receive_time_ns"].astype(np.int64),
        mid=(records["bid_price_units"] + records["ask_price_units"]) / 2.0,
        run=run,
        usable=(unbroken >= window_rows) & (records["trading"] == 1),
    )


def rows_of(records: RecordArray) -> RecordArray:
    """Keep the rows among records of the rows ring, and of these the ones that are part of a run."""
    keep = (records["kind"] == RowKind.ROW) & (records["valid_from"] <= records["row_sequence"])
    kept: RecordArray = records[keep]
    return kept


def to_samples(rows: Rows, window_rows: int, horizon_ns: int, rule: SplitRule) -> Samples:
    """Return the labelled windows of a session and the part each belongs to."""
    moves: Moves = moves_of(rows.receive_time_ns, rows.mid, rows.run, horizon_ns)
    newest = np.flatnonzero(rows.usable & moves.known)
    newest = newest[newest >= window_rows - 1]
    part = assign_parts(
        rows.receive_time_ns[newest - window_rows + 1],
        moves.end_ns[newest],
        int(rows.receive_time_ns[0]),
        int(rows.receive_time_ns[-1]),
        rule,
    )
    return Samples(rows, newest, moves.value[newest], part)


def windows_of(rows: Rows, newest: npt.NDArray[np.int64], window_rows: int) -> npt.NDArray[np.float32]:
    """Return the windows that end with the given rows, shape (n, T, F)."""
    view = np.lib.stride_tricks.sliding_window_view(rows.features, window_rows, axis=0)  # (n - T + 1, F, T)
    return np.ascontiguousarray(view[newest - window_rows + 1].transpose(0, 2, 1))


def train_rows(samples: list[Samples]) -> npt.NDArray[np.float32]:
    """Return the newest rows of all training samples, shape (n, F): what normalisation is fitted on."""
    return np.concatenate([s.rows.features[s.newest[s.part == TRAIN]] for s in samples])


def source_of(path: Path, rows: int) -> DataSource:
    """Return a file's entry for the manifest."""
    return DataSource(name=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), rows=rows)
