"""The calibration set of INT8: windows of recorded rows, drawn evenly from the regimes that a market goes through.

A window's regime is that of its newest hundred rows: JUMP if one move of the mid stands out among them or the window is
the first after a gap, a halt or an auction; TRENDING if the net move is a large part of all moves; else QUIET.
Stratified by regime and symbol, deterministic by seed. Its hash is part of the key under which a quantised graph is
kept, so that no graph is used that was calibrated on something else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tickwire.errors import EngineError
from tickwire_models.dataset import Rows

_RECENT = 100
_JUMP_SHARE = 0.5
_TREND_SHARE = 0.6
_AFTER_BREAK_ROWS = 50


class Regime(IntEnum):
    """What a window shows."""

    QUIET = 0
    TRENDING = 1
    JUMP = 2


@dataclass(frozen=True)
class CalibrationSet:
    """Windows with what they stand for."""

    windows: npt.NDArray[np.float32]
    """Shape (n, T, 48)."""
    regimes: dict[str, int]
    """Windows of each regime."""

    @property
    def hash(self) -> str:
        """SHA-256 over all values, shape included."""
        digest = hashlib.sha256(repr(self.windows.shape).encode())
        digest.update(np.ascontiguousarray(self.windows, "<f4").tobytes())
        return digest.hexdigest()


def regimes_of(rows: Rows, window_rows: int) -> npt.NDArray[np.int64]:
    """Return the regime of the window that ends with each row, -1 where there is none; shape (n,)."""
    found = np.full(len(rows.mid), -1, np.int64)
    for i in np.flatnonzero(rows.usable):
        moves = np.diff(rows.mid[max(i - _RECENT, 0) : i + 1])
        path = float(np.abs(moves).sum())
        unbroken = i - window_rows >= 0 and rows.run[i - window_rows] == rows.run[i]
        fresh = not unbroken or not rows.usable[max(int(i) - _AFTER_BREAK_ROWS, 0)]
        if fresh or (path > 0 and np.abs(moves).max() >= _JUMP_SHARE * path):
            found[i] = Regime.JUMP
        elif path > 0 and abs(float(moves.sum())) >= _TREND_SHARE * path:
            found[i] = Regime.TRENDING
        else:
            found[i] = Regime.QUIET
    return found


def draw(sessions: Sequence[Rows], window_rows: int, *, n: int = 192, seed: int = 1) -> CalibrationSet:
    """Draw a calibration set of at most `n` windows, the same share from each regime of each session.

    Raises:
        EngineError: The sessions hold no whole window.
    """
    dice = np.random.default_rng(seed)
    strata: list[tuple[Rows, Regime, npt.NDArray[np.int64]]] = []
    for rows in sessions:
        found = regimes_of(rows, window_rows)
        for regime in Regime:
            places = np.flatnonzero(found == regime)
            if len(places):
                strata.append((rows, regime, places))
    if not strata:
        raise EngineError(f"calibration set: the captures must hold {window_rows} rows in a row, do not")
    share = max(n // len(strata), 1)
    windows, regimes = [], dict.fromkeys((regime.name.lower() for regime in Regime), 0)
    for rows, regime, places in strata:
        for i in np.sort(dice.permutation(places)[:share]):
            windows.append(rows.features[i - window_rows + 1 : i + 1])
            regimes[regime.name.lower()] += 1
    return CalibrationSet(np.ascontiguousarray(np.stack(windows), np.float32), regimes)
