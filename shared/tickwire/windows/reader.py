"""A reader of a windows store: inference when it starts or was lapped, tools at any time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType

import numpy as np
import numpy.typing as npt

from tickwire.errors import RingNotFoundError
from tickwire.records import N_FEATURES
from tickwire.ring.segment import Segment, segment_name
from tickwire.windows import layout
from tickwire.windows.header import check_header
from tickwire.windows.kernels import (
    INVALID,
    MAX_READ_ROWS,
    TOO_SHORT,
    TORN,
    W_ADDRESS,
    W_WORDS,
    head_of,
    read_window,
    valid_from_of,
)

_LOOK_EVERY_S = 0.005


class WindowFault(IntEnum):
    """Why a window could not be read."""

    TOO_SHORT = TOO_SHORT
    """The run has fewer rows than asked for."""
    INVALID = INVALID
    """The run ended while it was copied."""
    TORN = TORN
    """Rows were overwritten while they were copied; try again."""


@dataclass(frozen=True)
class WindowRows:
    """A whole window."""

    newest: int
    """row_sequence of the last row."""
    features: npt.NDArray[np.float32]
    """Shape (rows, 48), the oldest first; the caller's own."""


class WindowReader:
    """Reads windows of a store it may not write. Any number of readers, any thread."""

    def __init__(self, segment: Segment, n_symbols: int) -> None:
        """Wrap an attached segment; use `attach`."""
        self._segment = segment
        self.n_symbols = n_symbols
        self.state: npt.NDArray[np.uint64] = np.zeros(W_WORDS, dtype=np.uint64)
        self.state[W_ADDRESS] = segment.address

    @classmethod
    def attach(cls, prefix: str, *, symbol_table_hash: int | None = None, timeout_s: float = 30.0) -> WindowReader:
        """Attach to a store, waiting at most `timeout_s` for it to exist.

        Raises:
            RingNotFoundError: The store did not appear in time.
            RingLayoutError: It is for other features, symbols or another layout.
            RingError: No permission.
        """
        name = segment_name(prefix, layout.SEGMENT_NAME)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                segment = Segment.open(name, writable=False)
                break
            except RingNotFoundError as error:
                if time.monotonic() >= deadline:
                    raise RingNotFoundError(
                        f"windows {name!r}: must exist, did not appear within {timeout_s:g} s; "
                        "is features running with this prefix and this /dev/shm?"
                    ) from error
                time.sleep(_LOOK_EVERY_S)
        try:
            return cls(segment, check_header(segment, symbol_table_hash))
        except BaseException:
            segment.close()
            raise

    def read(self, symbol: int, rows: int) -> WindowRows | WindowFault:
        """Copy a symbol's newest `rows` rows.

        Raises:
            ValueError: `symbol` or `rows` is out of range.
        """
        if not 0 <= symbol < self.n_symbols or not 0 < rows <= MAX_READ_ROWS:
            raise ValueError(
                f"windows: symbol must be below {self.n_symbols} and rows 1 to {MAX_READ_ROWS}, were {symbol}, {rows}"
            )
        features = np.empty((rows, N_FEATURES), dtype=np.float32)
        newest = int(read_window(self.state, symbol, rows, features.view(np.uint64)))
        return WindowRows(newest, features) if newest > 0 else WindowFault(newest)

    def head(self, symbol: int) -> int:
        """Return the row_sequence of a symbol's newest row, 0 before the first."""
        return int(head_of(self.state, symbol))

    def valid_from(self, symbol: int) -> int:
        """Return the first row_sequence of a symbol's run."""
        return int(valid_from_of(self.state, symbol))

    def replaced(self) -> bool:
        """Say whether the name now means another store: then attach anew."""
        return self._segment.replaced()

    def close(self) -> None:
        """Detach; removes nothing. No kernel may use `state` any more."""
        self._segment.close()

    def __enter__(self) -> WindowReader:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach."""
        self.close()
