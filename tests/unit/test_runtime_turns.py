"""The turns of a hot loop: the longest one with work is kept, stalls are counted, waiting is neither."""

from __future__ import annotations

import numpy as np
import pytest
from numba import int64, uint64

from tickwire.kernel import kernel
from tickwire.runtime.kernels import STALL_NS, note_turn

TURN, LONGEST = 1, 2


@kernel(int64(uint64[::1], int64, int64))
def note(gauges, busy_since_ns, now_ns):
    return note_turn(gauges, TURN, LONGEST, busy_since_ns, now_ns)


@pytest.fixture
def gauges():
    return np.array([7, 0, 0, 7], dtype=np.uint64)


def test_note_turn_after_waiting_notes_its_begin_only(gauges):
    """A loop that had nothing to do may wait as long as it likes."""
    assert note(gauges, 0, 5 * STALL_NS) == 0
    assert gauges.tolist() == [7, 5 * STALL_NS, 0, 7]


def test_note_turn_with_work_keeps_the_longest(gauges):
    """A shorter turn leaves the maximum; neither is a stall."""
    for begin_ns, end_ns in ((100, 400), (400, 450)):
        assert note(gauges, begin_ns, end_ns) == 0
    assert gauges.tolist() == [7, 450, 300, 7]


def test_note_turn_longer_than_the_limit_is_a_stall(gauges):
    """The limit itself is none."""
    assert note(gauges, 10, 10 + STALL_NS) == 0
    assert note(gauges, 10, 11 + STALL_NS) == 1
    assert gauges[LONGEST] == STALL_NS + 1
