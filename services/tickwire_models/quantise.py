"""INT8 by explicit Q/DQ nodes: scales by entropy (KL) calibration, per channel for weights, none for biases.

TensorRT refuses a DequantizeLinear on a bias, and calibrators of its own no longer exist in version 10; with Q/DQ in
the graph one builder serves every version. Source of the calibration: S. Migacz, "8-bit inference with TensorRT", 2017.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tickwire.errors import EngineError
from tickwire_models.calibration import CalibrationSet

_QUANTISED = ["MatMul", "Gemm"]
_BATCH = 16
SETTINGS: dict[str, Any] = {
    "ActivationSymmetric": True,
    "WeightSymmetric": True,
    "QuantizeBias": False,
    "DedicatedQDQPair": True,
}
"""Symmetric, since TensorRT has no zero points."""


def to_int8(graph: bytes, calibration: CalibrationSet) -> bytes:
    """Return the graph with Q/DQ nodes round every matrix product.

    Raises:
        EngineError: ONNX Runtime cannot quantise it.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "int8.onnx"
        source.write_bytes(graph)
        try:
            quantize_static(
                str(source),
                str(target),
                _Reader(calibration),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=_QUANTISED,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod.Entropy,
                extra_options=SETTINGS,
            )
        except Exception as error:
            # ONNX Runtime raises whatever its parts raise.
            raise EngineError(f"graph: ONNX Runtime must quantise it, did not: {error}") from error
        model = onnx.load(target)
    if not any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        raise EngineError("graph: must have a MatMul or Gemm to quantise, has none")
    return bytes(model.SerializeToString())


class _Reader:
    # A CalibrationDataReader by its one method.

    def __init__(self, calibration: CalibrationSet) -> None:
        windows = calibration.windows
        self._batches: Iterator[Any] = iter(np.array_split(windows, max(len(windows) // _BATCH, 1)))

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self._batches, None)
        return None if batch is None else {"rows": batch}
