"""The single writer of a windows store: the features process."""

from __future__ import annotations

import os
from types import TracebackType

import numpy as np
import numpy.typing as npt

from tickwire.errors import ProducerAttachedError
from tickwire.ring.segment import Segment
from tickwire.windows import layout
from tickwire.windows.header import open_or_create
from tickwire.windows.kernels import W_ADDRESS, W_WORDS, head_of, invalidate, valid_from_of, write_row


class WindowWriter:
    """Writes rows; one live writer a store, guarded by a lock that dies with the process. Not thread-safe.

    The store outlives its writer. A new one goes on behind each symbol's `head`, with every run empty (W3): what the
    last writer's books were is not known.
    """

    def __init__(self, segment: Segment, n_symbols: int) -> None:
        """Wrap an attached segment; use `attach`."""
        self._segment = segment
        self.n_symbols = n_symbols
        self.state: npt.NDArray[np.uint64] = np.zeros(W_WORDS, dtype=np.uint64)
        self.state[W_ADDRESS] = segment.address

    @classmethod
    def attach(cls, prefix: str, n_symbols: int, *, symbol_table_hash: int = 0) -> WindowWriter:
        """Become the store's writer; create the store if it does not exist.

        Raises:
            ProducerAttachedError: Another live process is the writer.
            RingLayoutError: The store exists for other features, symbols or another layout.
            RingError: No memory or no permission.
        """
        segment = open_or_create(prefix, n_symbols, symbol_table_hash)
        try:
            if not segment.try_lock(layout.WRITER_LOCK_AT):
                pid = int(segment.array(np.uint32, layout.WRITER_PID_AT, 1)[0])
                raise ProducerAttachedError(f"windows {segment.name!r}: must have one writer, pid {pid} is alive")
            segment.array(np.uint32, layout.WRITER_PID_AT, 1)[0] = os.getpid()
            segment.array(np.uint32, layout.EPOCH_AT, 1)[0] += 1
            writer = cls(segment, n_symbols)
            for symbol in range(n_symbols):
                writer.invalidate(symbol)
        except BaseException:
            segment.close()
            raise
        return writer

    def write(self, symbol: int, features: npt.NDArray[np.float32], *, usable: bool = True) -> int:
        """Store a symbol's next row, shape (48,); return its row_sequence. See `kernels.write_row`."""
        return int(write_row(self.state, symbol, np.ascontiguousarray(features).view(np.uint64), usable))

    def invalidate(self, symbol: int) -> int:
        """End a symbol's run; return the new `valid_from`."""
        return int(invalidate(self.state, symbol))

    def head(self, symbol: int) -> int:
        """Return the row_sequence of a symbol's newest row, 0 before the first."""
        return int(head_of(self.state, symbol))

    def valid_from(self, symbol: int) -> int:
        """Return the first row_sequence of a symbol's run."""
        return int(valid_from_of(self.state, symbol))

    def close(self) -> None:
        """Detach and free the lock; removes nothing. No kernel may use `state` any more."""
        self._segment.close()

    def __enter__(self) -> WindowWriter:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach."""
        self.close()
