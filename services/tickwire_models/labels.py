"""Labels: where the mid will be a fixed time of receive time from now - down, flat or up.

L1  A label needs the whole horizon to be seen: a later row of the same unbroken run at or behind its end.
L2  Without it there is no label; nothing is invented (the tail, a gap, a halt, a session's border).
L3  The mid at the horizon's end is that of the last row at or before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DOWN, FLAT, UP = 0, 1, 2
CLASS_NAMES = ("down", "flat", "up")


class Moves(NamedTuple):
    """Relative moves of the mid over the horizon."""

    value: npt.NDArray[np.float64]
    """mid(t + horizon) / mid(t) - 1, shape (n,); 0 where there is none."""
    known: npt.NDArray[np.bool_]
    """Whether the whole horizon was seen (L1), shape (n,)."""
    end_ns: npt.NDArray[np.int64]
    """Receive time of the horizon's end, shape (n,)."""


def moves_of(
    receive_time_ns: npt.NDArray[np.int64],
    mid: npt.NDArray[np.float64],
    run: npt.NDArray[np.int64],
    horizon_ns: int,
) -> Moves:
    """Return each row's move over the horizon.

    Args:
        receive_time_ns: Times of one symbol's rows in order, shape (n,).
        mid: Their mids, in any unit.
        run: Number of the unbroken run each row belongs to; changes at a gap, halt, snapshot or session border.
        horizon_ns: How far ahead.
    """
    end_ns = receive_time_ns + horizon_ns
    value = np.zeros(len(mid))
    known = np.zeros(len(mid), dtype=np.bool_)
    borders = np.flatnonzero(np.diff(run)) + 1
    for part in np.split(np.arange(len(run)), borders):
        if not len(part):
            continue
        times = np.maximum.accumulate(receive_time_ns[part])
        last = np.searchsorted(times, end_ns[part], side="right") - 1
        known[part] = times[-1] >= end_ns[part]
        value[part] = mid[part][np.maximum(last, 0)] / mid[part] - 1.0
    value[~known] = 0.0
    return Moves(value, known, end_ns)


def choose_threshold(moves: npt.NDArray[np.float64]) -> float:
    """Return the relative move from which on a label is down or up: the lower third of |move| is flat.

    Call it with moves of the training part only. Where more than a third do not move at all, only these are flat.

    Raises:
        ValueError: There are no moves.
    """
    if not len(moves):
        raise ValueError("label threshold: needs at least one labelled training row, got none")
    return float(np.quantile(np.abs(moves), 1 / 3))


def classify(moves: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.int64]:
    """Return DOWN, FLAT or UP for each move."""
    return np.where(moves > threshold, UP, np.where(moves < -threshold, DOWN, FLAT)).astype(np.int64)
