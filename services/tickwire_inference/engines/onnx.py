"""The ONNX Runtime engine: one thread, one binding a bucket, buffers allocated once.

I1  A batch of n runs in the smallest bucket that holds it; rows behind n are padding, their results are never read.
I2  Nothing is allocated or copied by a run: input and output are bound to the engine's own buffers.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from typing import Any

import numpy as np

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # recent releases report to their vendor unless it is set at the import
import onnxruntime

from tickwire.errors import EngineError
from tickwire.models import ModelFiles
from tickwire.records import N_FEATURES, EngineKind
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_OUTPUTS

_INPUT = "rows"
_OUTPUT = "probabilities"
_WARM_RUNS = 3
_SUM_TOLERANCE = 1e-3
_LOG_ERRORS_ONLY = 3


class OnnxRuntimeEngine:
    """Runs a model's ONNX graph on the CPU; a `HostEngine`."""

    kind = EngineKind.ONNXRUNTIME

    def __init__(self, model: ModelFiles) -> None:
        """Load the graph and bind the buffers.

        Raises:
            EngineError: ONNX Runtime cannot load the graph, or its input or output is not what the manifest says.
        """
        self.label = model.label
        self.window_rows = model.manifest.window_rows
        self.windows = np.zeros((MAX_BATCH, self.window_rows, N_FEATURES), np.float32)
        self.probabilities = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)
        try:
            self._session = onnxruntime.InferenceSession(
                model.onnx, sess_options=_options(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            # ONNX Runtime's exceptions have no common base class of their own.
            raise EngineError(
                f"model {self.label}: ONNX Runtime {onnxruntime.__version__} must load {model.folder}: {error}"
            ) from error
        self._check(self._session.get_inputs(), _INPUT, (self.window_rows, N_FEATURES))
        self._check(self._session.get_outputs(), _OUTPUT, (N_OUTPUTS,))
        self._bindings = [self._bind(size) for size in BUCKETS]
        self._bucket_of = [bisect_left(BUCKETS, size) for size in range(MAX_BATCH + 1)]

    def run(self, size: int) -> None:
        """Compute the probabilities of the first `size` windows (I1)."""
        self._session.run_with_iobinding(self._bindings[self._bucket_of[size]])

    def warm_up(self) -> tuple[int, ...]:
        """Run every bucket three times on zeros and keep its slowest run but the first.

        Raises:
            EngineError: A run fails, or its outputs are not probabilities.
        """
        return tuple(self._warm(size) for size in BUCKETS)

    def close(self) -> None:
        """Drop bindings and session."""
        self._bindings.clear()
        del self._session

    def _warm(self, size: int) -> int:
        times_ns = []
        self.windows[:] = 0
        self.probabilities[:] = np.nan
        for _ in range(_WARM_RUNS):
            start_ns = time.monotonic_ns()
            try:
                self.run(size)
            except Exception as error:
                raise EngineError(f"model {self.label}: must run with batch {size}: {error}") from error
            times_ns.append(time.monotonic_ns() - start_ns)
        sums = self.probabilities[:size].sum(axis=1)
        if not bool(np.all(np.abs(sums - 1) < _SUM_TOLERANCE)):
            raise EngineError(f"model {self.label}: outputs must be probabilities, those of zeros sum to {sums[0]}")
        return max(times_ns[1:])

    def _check(self, found: list[Any], name: str, shape: tuple[int, ...]) -> None:
        described = [f"{item.name} {item.type} {item.shape}" for item in found]
        matches = len(found) == 1 and found[0].name == name and found[0].type == "tensor(float)"
        if not matches or tuple(found[0].shape[1:]) != shape or isinstance(found[0].shape[0], int):
            raise EngineError(
                f"model {self.label}: graph must have one {name!r} of float (batch, {', '.join(map(str, shape))}), "
                f"has {'; '.join(described)}; export it with a dynamic batch"
            )

    def _bind(self, size: int) -> Any:
        binding = self._session.io_binding()
        binding.bind_input(_INPUT, "cpu", 0, np.float32, (size, self.window_rows, N_FEATURES), self.windows.ctypes.data)
        binding.bind_output(_OUTPUT, "cpu", 0, np.float32, (size, N_OUTPUTS), self.probabilities.ctypes.data)
        return binding


def _options() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _LOG_ERRORS_ONLY
    return options
