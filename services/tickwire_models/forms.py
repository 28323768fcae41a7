"""Making a model's other precisions and putting them beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import onnx
import onnxruntime

from tickwire.models import ModelFiles
from tickwire.models.engine_manifest import Precision
from tickwire.models.precisions import PRECISIONS_FILE, PrecisionForm, graph_file, read_forms
from tickwire_models.calibration import CalibrationSet
from tickwire_models.graph_cache import quantised
from tickwire_models.half import to_half
from tickwire_models.publishing import write_whole


def make_form(
    files: ModelFiles,
    precision: Precision,
    calibration: CalibrationSet | None,
    cache: Path,
    report: Callable[[str], None],
) -> PrecisionForm:
    """Write one precision's graph and enter it in `precisions.json`.

    Args:
        files: The model.
        precision: `fp16` or `int8`.
        calibration: For `int8`.
        cache: Folder of quantised graphs.
        report: Told what is done.

    Raises:
        EngineError: The graph cannot be converted.
    """
    if precision == "int8":
        assert calibration is not None
        graph = quantised(files.onnx, calibration, cache, report)
        calibrated = {"hash": calibration.hash, "windows": len(calibration.windows), **calibration.regimes}
    else:
        graph, calibrated = to_half(files.onnx), {}
    form = PrecisionForm(
        sha256=hashlib.sha256(graph).hexdigest(),
        source_sha256=files.manifest.onnx_sha256,
        calibration=calibrated,
        made_with={"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
    )
    write_whole(files.folder / graph_file(precision), graph)
    forms = {**read_forms(files.folder), precision: form}
    write_whole(files.folder / PRECISIONS_FILE, msgspec.json.format(msgspec.json.encode(forms), indent=2) + b"\n")
    report(f"{files.label}: {graph_file(precision)}, {len(graph)} bytes")
    return form
