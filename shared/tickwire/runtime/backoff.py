"""Exponential back-off with full jitter and a cap. Source: AWS Architecture Blog, "Exponential Backoff And Jitter"."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Backoff:
    """Delays between attempts: each is drawn between half and all of first_s * 2^n, at most cap_s."""

    first_s: float = 0.1
    cap_s: float = 10.0
    steady_s: float = 30.0
    """After running this long without a fault the count starts anew."""
    dice: random.Random = field(default_factory=random.Random)
    attempts: int = 0

    def next_delay_s(self) -> float:
        """Return the next delay and count the attempt."""
        whole = min(self.cap_s, self.first_s * 2.0 ** min(self.attempts, 60))
        self.attempts += 1
        return whole * self.dice.uniform(0.5, 1.0)

    def ran_for(self, seconds: float) -> None:
        """Forget earlier attempts when the last one lasted."""
        if seconds >= self.steady_s:
            self.attempts = 0
