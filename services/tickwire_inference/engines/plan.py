"""A TensorRT plan in memory: one execution context, one pair of device buffers and one stream a bucket.

I1  A batch of n runs in the smallest bucket that holds it, in the profile and with the batch size that the engine's
    manifest names for that bucket; rows behind n are padding, their results are never read.
I2  Each bucket has its own execution context: contexts are not safe to share between threads, and switching profiles
    of one would cost a synchronisation.
I3  Outputs are set to NaN before each run, so that what a run leaves unwritten is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire.errors import EngineError
from tickwire.records import N_FEATURES
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary
from tickwire_inference.layouts import N_OUTPUTS

INPUT = "rows"
OUTPUT = "probabilities"


@dataclass(frozen=True)
class BucketPlan:
    """How one bucket runs."""

    bucket: int
    profile: int
    """Index of the optimisation profile."""
    run_size: int
    """Batch size that is really run, at least the bucket's."""


class Bucket:
    """Execution context and buffers of one bucket. Used inside the CUDA context, by one thread at a time."""

    def __init__(self, cuda: CudaContext, engine: Any, plan: BucketPlan, window_rows: int) -> None:
        """Create the context and bind the buffers.

        Raises:
            EngineError: TensorRT refuses the profile or the shape.
        """
        driver = cuda.driver
        self.run_size = plan.run_size
        self.stream = driver.Stream()
        self.context = engine.create_execution_context()
        if self.context is None:
            raise EngineError(f"plan: bucket {plan.bucket} must get an execution context; the GPU's memory is short")
        shape = (plan.run_size, window_rows, N_FEATURES)
        if not self.context.set_optimization_profile_async(plan.profile, self.stream.handle):
            raise EngineError(f"plan: bucket {plan.bucket} must have optimisation profile {plan.profile}")
        self.stream.synchronize()
        if not self.context.set_input_shape(INPUT, shape):
            raise EngineError(f"plan: profile {plan.profile} must take {INPUT} of shape {shape}")
        self.input_bytes = int(np.prod(shape)) * 4
        self.output_bytes = plan.run_size * N_OUTPUTS * 4
        self.device_input = driver.mem_alloc(self.input_bytes)
        self.device_output = driver.mem_alloc(self.output_bytes)
        self.context.set_tensor_address(INPUT, int(self.device_input))
        self.context.set_tensor_address(OUTPUT, int(self.device_output))

    def close(self) -> None:
        """Free the buffers."""
        self.device_input.free()
        self.device_output.free()
        del self.context


class LoadedPlan:
    """A deserialised plan with its buckets."""

    def __init__(
        self,
        library: TensorRtLibrary,
        cuda: CudaContext,
        content: bytes,
        buckets: tuple[BucketPlan, ...],
        window_rows: int,
    ) -> None:
        """Deserialise and prepare every bucket, inside the CUDA context.

        Raises:
            EngineError: The plan does not load, or is not what its manifest says.
        """
        self._driver = cuda.driver
        self._engine = library.deserialise(content)
        names = [self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)]
        if sorted(names) != sorted((INPUT, OUTPUT)):
            raise EngineError(f"plan: must have the tensors {INPUT!r} and {OUTPUT!r}, has {', '.join(names)}")
        prepared: dict[int, Bucket] = {}
        for plan in buckets:
            if plan.profile not in prepared:
                prepared[plan.profile] = Bucket(cuda, self._engine, plan, window_rows)
        self.buckets = {plan.bucket: prepared[plan.profile] for plan in buckets}
        self._sizes = sorted(self.buckets)
        self._poison = np.full((max(b.run_size for b in self.buckets.values()), N_OUTPUTS), np.nan, np.float32)

    def bucket_of(self, size: int) -> Bucket:
        """Return the smallest bucket that holds `size` (I1)."""
        return self.buckets[next(bucket for bucket in self._sizes if bucket >= size)]

    def run(self, windows: npt.NDArray[np.float32], probabilities: npt.NDArray[np.float32], size: int) -> None:
        """Compute `probabilities[:size]` from `windows[:size]` by plain enqueue with full-window copies, and wait.

        Raises:
            EngineError: TensorRT does not take the batch.
        """
        bucket = self.bucket_of(size)
        run_size = bucket.run_size
        driver, stream = self._driver, bucket.stream
        driver.memcpy_htod_async(bucket.device_output, self._poison[:run_size], stream)
        driver.memcpy_htod_async(bucket.device_input, windows[:run_size], stream)
        if not bucket.context.execute_async_v3(stream.handle):
            raise EngineError(f"plan: a batch of {run_size} must be taken by TensorRT, was refused")
        driver.memcpy_dtoh_async(probabilities[:run_size], bucket.device_output, stream)
        stream.synchronize()

    def close(self) -> None:
        """Free the buckets, then the engine."""
        for bucket in set(self.buckets.values()):
            bucket.close()
        self.buckets.clear()
        del self._engine
