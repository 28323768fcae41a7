"""When the next frame of a replay is due."""

from __future__ import annotations


class Pacer:
    """Maps capture time to the monotonic clock. Pure: time is an argument."""

    def __init__(self, speed: float | None) -> None:
        """`speed`: capture seconds a second; None never waits."""
        self._speed = speed
        self._origin_ns: int | None = None
        self._origin_due_ns = 0

    def emission_ns(self, due_ns: int, now_ns: int) -> int:
        """Return the monotonic time at which a frame is due; the first frame starts the clock.

        Args:
            due_ns: The frame's place on the capture's time line.
            now_ns: Monotonic time now.
        """
        if self._speed is None:
            return now_ns
        if self._origin_ns is None:
            self._origin_ns = now_ns
            self._origin_due_ns = due_ns
        return self._origin_ns + int((due_ns - self._origin_due_ns) / self._speed)
