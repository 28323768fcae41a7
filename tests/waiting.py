"""Waiting for a condition in tests, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_EVERY_S = 0.002


def eventually(predicate: Callable[[], T], timeout_s: float = 60.0, what: str = "the condition") -> T:
    """Return the predicate's first true value; fail, saying what was waited for, when there is none in time."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        found = predicate()
        if found:
            return found
        assert time.monotonic() < deadline_s, f"{what} did not come true within {timeout_s:g} s"
        time.sleep(_LOOK_EVERY_S)
