"""Quantised graphs by what they were made from: another model, calibration set or library is another key.

A name never finds a graph: two models of one name, or one model calibrated twice, have nothing in common here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from tickwire_models.calibration import CalibrationSet
from tickwire_models.quantise import SETTINGS, to_int8


def key_of(graph: bytes, calibration: CalibrationSet) -> str:
    """Return the key: SHA-256 over model, calibration set, settings and library versions."""
    parts: dict[str, Any] = {
        "graph": hashlib.sha256(graph).hexdigest(),
        "calibration": calibration.hash,
        "settings": SETTINGS,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def quantised(graph: bytes, calibration: CalibrationSet, folder: Path, report: Callable[[str], None]) -> bytes:
    """Return the INT8 form of a graph, from the cache or calibrated anew.

    Args:
        graph: FP32.
        calibration: What to calibrate on.
        folder: Of the cache; made if it does not exist.
        report: Told which of the two it was, and why.

    Raises:
        EngineError: The graph cannot be quantised.
    """
    key = key_of(graph, calibration)
    path, seal = folder / f"{key}.onnx", folder / f"{key}.sha256"
    why = "no graph of this model, calibration set and these libraries is there"
    if path.is_file():
        content = path.read_bytes()
        sealed = seal.read_text().strip() if seal.is_file() else ""
        if content and hashlib.sha256(content).hexdigest() == sealed:
            report(f"quantised graph {key[:12]}: taken from {folder}")
            return content
        why = f"{path} is empty or damaged"
    report(f"quantised graph {key[:12]}: calibrated anew, {why}")
    content = to_int8(graph, calibration)
    folder.mkdir(parents=True, exist_ok=True)
    for target, data in ((path, content), (seal, hashlib.sha256(content).hexdigest().encode())):
        temporary = target.with_name(f".{target.name}")
        temporary.write_bytes(data)
        temporary.replace(target)
    return content
