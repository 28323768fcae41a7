"""What the service asks of an engine.

Every engine has an identity and is warmed before it serves. A `HostEngine` is called by the engine thread, batch by
batch. An engine on an accelerator, which the scheduler launches itself, keeps its own windows and needs no `run`: that
is another protocol with the same base.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from tickwire.records import EngineKind


class Engine(Protocol):
    """Identity and life of any engine."""

    kind: EngineKind
    label: str
    """What stands in every prediction: `name@version`, at most 39 bytes."""
    window_rows: int
    """T: rows of a window."""

    def warm_up(self) -> tuple[int, ...]:
        """Run every bucket; return a run time for each in nanoseconds, in the order of `BUCKETS`.

        Raises:
            EngineError: A bucket does not run, or gives no probabilities.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


class HostEngine(Engine, Protocol):
    """An engine that the engine thread calls. One thread at a time."""

    windows: npt.NDArray[np.float32]
    """Input of every run, shape (16, T, 48), owned by the engine and filled by the caller."""
    probabilities: npt.NDArray[np.float32]
    """Output of every run, shape (16, 3): down, flat, up."""

    def run(self, size: int) -> None:
        """Compute `probabilities[:size]` from `windows[:size]`; rows behind them mean nothing.

        May raise anything: the batch is then answered FAILED.
        """
        ...
