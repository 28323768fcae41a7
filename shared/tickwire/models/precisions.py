"""The other precisions of a model, beside its `model.onnx`: `model.fp16.onnx`, `model.int8.onnx`, `precisions.json`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from tickwire.errors import EngineError
from tickwire.models.engine_manifest import Precision
from tickwire.models.manifest import Sha256
from tickwire.models.registry import ModelFiles

PRECISIONS_FILE = "precisions.json"


class PrecisionForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One graph of another precision."""

    sha256: Sha256
    source_sha256: Sha256
    """Of the `model.onnx` that it was made from."""
    calibration: dict[str, Any] = {}
    """INT8: hash of the calibration set, windows by regime."""
    made_with: dict[str, str] = {}
    """Library versions."""


def graph_file(precision: Precision) -> str:
    """Return the file name of a precision's graph."""
    return f"model.{precision}.onnx"


def read_forms(folder: Path) -> dict[str, PrecisionForm]:
    """Return what `precisions.json` of a version says; nothing where there is none.

    Raises:
        EngineError: It cannot be read.
    """
    path = folder / PRECISIONS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, PrecisionForm])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise EngineError(f"model file {path}: must list the precisions, does not: {error}; quantise again") from error


def graph_of(files: ModelFiles, precision: Precision) -> bytes:
    """Return the graph of one precision, checked.

    Raises:
        EngineError: It is missing, changed, or was made from another `model.onnx`.
    """
    if precision == "fp32":
        return files.onnx
    path = files.folder / graph_file(precision)
    remedy = f"tickwire model quantise {files.manifest.name} makes it"
    form = read_forms(files.folder).get(precision)
    if form is None:
        raise EngineError(f"model {files.label}: must have the precision {precision}, has it not; {remedy}")
    if form.source_sha256 != files.manifest.onnx_sha256:
        raise EngineError(f"model file {path}: was made from another {files.manifest.name} graph; {remedy} anew")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EngineError(f"model file {path}: must be readable: {error.strerror}; {remedy}") from error
    if hashlib.sha256(content).hexdigest() != form.sha256:
        raise EngineError(f"model file {path}: must have the SHA-256 that {PRECISIONS_FILE} says; {remedy} anew")
    return content
