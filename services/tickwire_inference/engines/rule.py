"""The rule engine: mean reversion of the mid towards the microprice. No model, no state; the last fallback.

The microprice leans from the mid towards the side with less size; the mid tends to follow it. With m the feature
`microprice_offset` of the window's newest row and g the gain:

    z = min(max(g * m, -4), 4)
    (down, flat, up) = (exp(-z), 1, exp(z)) / (exp(-z) + 1 + exp(z))

Source of the idea: S. Stoikov, "The micro-price: a high-frequency estimator of future prices", 2018.
"""

from __future__ import annotations

import time

import numpy as np

from tickwire.records import N_FEATURES, EngineKind
from tickwire.records.features import FEATURE_NAMES
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_OUTPUTS

_FEATURE = FEATURE_NAMES.index("microprice_offset")
_LIMIT = 4.0


class RuleEngine:
    """Computes the formula above; a `HostEngine`."""

    kind = EngineKind.RULE
    label = "microprice@1"

    def __init__(self, window_rows: int, gain: float) -> None:
        """Allocate the buffers.

        Args:
            window_rows: Rows that a symbol must have before it is served; the formula looks at the newest only.
            gain: g of the formula.
        """
        self.window_rows = window_rows
        self.windows = np.zeros((MAX_BATCH, window_rows, N_FEATURES), np.float32)
        self.probabilities = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)
        self._gain = np.float32(gain)

    def run(self, size: int) -> None:
        """Compute the probabilities of the first `size` windows."""
        z = np.clip(self._gain * self.windows[:size, -1, _FEATURE], -_LIMIT, _LIMIT)
        weights = np.exp(np.stack([-z, np.zeros_like(z), z], axis=1))
        self.probabilities[:size] = weights / weights.sum(axis=1, keepdims=True)

    def warm_up(self) -> tuple[int, ...]:
        """Run every bucket once."""
        times_ns = []
        for size in BUCKETS:
            start_ns = time.monotonic_ns()
            self.run(size)
            times_ns.append(time.monotonic_ns() - start_ns)
        return tuple(times_ns)

    def close(self) -> None:
        """Hold nothing, give nothing back."""
