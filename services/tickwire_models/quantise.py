"""INT8 by explicit Q/DQ nodes: scales by entropy (KL) calibration, per channel for weights, none for biases.

TensorRT refuses a DequantizeLinear on a bias, and calibrators of its own no longer exist in version 10; with Q/DQ in
the graph one builder serves every version. Source of the calibration: S. Migacz, "8-bit inference with TensorRT", 2017.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from tickwire.errors import EngineError
from tickwire_models.calibration import CalibrationSet

_QUANTISED = ["MatMul", "Gemm"]
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
            with _silence():
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


# It prints and logs what it does.
@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


class _Reader:
    # A CalibrationDataReader by its one method.

    def __init__(self, calibration: CalibrationSet) -> None:
        # One window at a time: all batches must have the same shape.
        self._windows: Iterator[Any] = iter(calibration.windows)

    def get_next(self) -> dict[str, Any] | None:
        window = next(self._windows, None)
        return None if window is None else {"rows": window[None]}
