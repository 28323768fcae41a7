"""The circuit breaker in front of the primary engine: a pure state machine, time is an argument.

CLOSED: the primary serves. `threshold` timeouts in a row, or one fault, open it. OPEN: the fallback serves until
`cooldown_ns` have passed. HALF_OPEN: one batch at a time probes the primary, all others go to the fallback; a good
probe closes the breaker, a bad one starts the cool-down anew. A timeout is a batch that was finished after the latest
deadline in it; what expires in the queue never counts. Source of the pattern: M. Nygard, "Release It!", 2007, ch. 5.

I1  At most one probe is out at any time.
I2  A probe's permit is never lost: not settled within a cool-down, it counts as failed and the next look may probe.
I3  What was permitted before the breaker opened and is settled afterwards neither closes it nor extends the cool-down.
"""

from __future__ import annotations

from enum import IntEnum


class BreakerState(IntEnum):
    """What the gauge `breaker_state` says."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


class Permit(IntEnum):
    """Who may serve a batch."""

    PRIMARY = 0
    PROBE = 1
    FALLBACK = 2


class Outcome(IntEnum):
    """How the primary did."""

    GOOD = 0
    TIMEOUT = 1
    FAULT = 2


class Breaker:
    """One breaker; used by one thread."""

    def __init__(self, threshold: int, cooldown_ns: int) -> None:
        """Start closed.

        Args:
            threshold: Timeouts in a row that open it.
            cooldown_ns: Time from opening to the first probe.
        """
        self.state = BreakerState.CLOSED
        self.opened = 0
        """How often it has opened."""
        self._threshold = threshold
        self._cooldown_ns = cooldown_ns
        self._timeouts = 0
        self._retry_ns = 0
        self._probing = False

    def permit(self, now_ns: int) -> Permit:
        """Say who serves the next batch; each permit but FALLBACK is to be settled."""
        if self.state is BreakerState.CLOSED:
            return Permit.PRIMARY
        if now_ns < self._retry_ns:
            return Permit.FALLBACK
        # Either the cool-down is over, or a probe has not been heard of for as long (I2).
        self.state = BreakerState.HALF_OPEN
        self._probing = True
        self._retry_ns = now_ns + self._cooldown_ns
        return Permit.PROBE

    def settle(self, permit: Permit, outcome: Outcome, now_ns: int) -> None:
        """Take in how a permitted batch went."""
        if permit is Permit.PROBE:
            if not self._probing:
                return
            self._probing = False
            if outcome is Outcome.GOOD:
                self.state = BreakerState.CLOSED
                self._timeouts = 0
            else:
                self._open(now_ns)
        elif permit is Permit.PRIMARY and self.state is BreakerState.CLOSED:
            self._timeouts = self._timeouts + 1 if outcome is Outcome.TIMEOUT else 0
            if outcome is Outcome.FAULT or self._timeouts >= self._threshold:
                self._open(now_ns)

    def open(self, now_ns: int) -> None:
        """Open it by hand: there is no primary that could serve."""
        self._open(now_ns)

    def reset(self) -> None:
        """Close it: the primary is another one."""
        self.state = BreakerState.CLOSED
        self._timeouts = 0
        self._probing = False

    def _open(self, now_ns: int) -> None:
        self.state = BreakerState.OPEN
        self.opened += 1
        self._timeouts = 0
        self._retry_ns = now_ns + self._cooldown_ns
