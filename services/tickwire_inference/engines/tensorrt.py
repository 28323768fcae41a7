"""The TensorRT engine by plain enqueue: full windows are copied to the GPU, the engine thread waits for the stream.

It is what runs where CUDA graphs are refused or switched off, what the accuracy gates judge a plan with, and the
reference that the graph form is compared with.
"""

from __future__ import annotations

import time

import numpy as np

from tickwire.errors import EngineError
from tickwire.records import N_FEATURES, EngineKind
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.plan import BucketPlan, LoadedPlan
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_OUTPUTS

_WARM_RUNS = 10
_SUM_TOLERANCE = 1e-2


class TensorRtEngine:
    """Runs a plan bucket by bucket; a `HostEngine`. Any thread, one at a time."""

    kind = EngineKind.TENSORRT

    def __init__(
        self,
        label: str,
        window_rows: int,
        library: TensorRtLibrary,
        cuda: CudaContext,
        plan: bytes,
        buckets: tuple[BucketPlan, ...],
    ) -> None:
        """Load the plan and allocate pinned buffers.

        Args:
            label: `name@version`.
            window_rows: T.
            library: TensorRT.
            cuda: The context; not closed by this object.
            plan: The plan's bytes, checked against their manifest.
            buckets: How each bucket runs.

        Raises:
            EngineError: The plan does not load, or a bucket is missing.
        """
        missing = sorted(set(BUCKETS) - {plan.bucket for plan in buckets})
        if missing:
            raise EngineError(f"model {label}: plan must have every bucket, lacks {', '.join(map(str, missing))}")
        self.label = label
        self.window_rows = window_rows
        self._cuda = cuda
        with cuda.current():
            self._plan = LoadedPlan(library, cuda, plan, buckets, window_rows)
            empty = cuda.driver.pagelocked_empty
            self.windows = empty((MAX_BATCH, window_rows, N_FEATURES), np.float32)
            self.probabilities = empty((MAX_BATCH, N_OUTPUTS), np.float32)
        self.windows[:] = 0

    def run(self, size: int) -> None:
        """Compute the probabilities of the first `size` windows."""
        with self._cuda.current():
            self._plan.run(self.windows, self.probabilities, size)

    def warm_up(self) -> tuple[int, ...]:
        """Run every bucket ten times on zeros and keep its slowest run but the first.

        Raises:
            EngineError: A bucket does not run, or gives no probabilities.
        """
        return tuple(self._warm(size) for size in BUCKETS)

    def close(self) -> None:
        """Free everything on the GPU."""
        with self._cuda.current():
            self._plan.close()
            del self.windows, self.probabilities

    def _warm(self, size: int) -> int:
        times_ns = []
        for _ in range(_WARM_RUNS):
            start_ns = time.monotonic_ns()
            self.run(size)
            times_ns.append(time.monotonic_ns() - start_ns)
        sums = self.probabilities[:size].sum(axis=1)
        if not bool(np.all(np.abs(sums - 1) < _SUM_TOLERANCE)):
            raise EngineError(f"model {self.label}: outputs must be probabilities, those of zeros sum to {sums[0]}")
        return max(times_ns[1:])
