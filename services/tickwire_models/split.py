"""Splitting by time, with purge and embargo.

P1  Train, validation and test follow one another in time, for each session (capture and symbol) on its own.
P2  No sample's horizon reaches into the next part, and no window of a part reaches back to the embargo before it:
    no row and no label is shared between two parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

TRAIN, VALIDATION, TEST, NONE = 0, 1, 2, -1


@dataclass(frozen=True)
class SplitRule:
    """Shares of a session's time, and the pause between two parts."""

    train: float = 0.7
    validation: float = 0.1
    embargo_ns: int = 500_000_000


def assign_parts(
    window_start_ns: npt.NDArray[np.int64],
    label_end_ns: npt.NDArray[np.int64],
    session_start_ns: int,
    session_end_ns: int,
    rule: SplitRule,
) -> npt.NDArray[np.int64]:
    """Return TRAIN, VALIDATION, TEST or NONE for each sample of one session.

    Args:
        window_start_ns: Receive time of the oldest row of each sample's window, shape (n,).
        label_end_ns: End of its horizon, shape (n,).
        session_start_ns: First receive time.
        session_end_ns: Last receive time.
        rule: Shares and embargo.
    """
    span = session_end_ns - session_start_ns
    first = session_start_ns + int(span * rule.train)
    second = session_start_ns + int(span * (rule.train + rule.validation))
    parts = np.full(len(window_start_ns), NONE, dtype=np.int64)
    parts[label_end_ns <= first] = TRAIN
    parts[(window_start_ns >= first + rule.embargo_ns) & (label_end_ns <= second)] = VALIDATION
    parts[window_start_ns >= second + rule.embargo_ns] = TEST
    return parts
