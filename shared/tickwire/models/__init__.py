"""Models as files: the manifest beside each ONNX graph and the registry that refuses whatever does not match it."""

from tickwire.models.manifest import (
    MANIFEST_FORMAT,
    MAX_LABEL_BYTES,
    MAX_MODEL_WINDOW_ROWS,
    OUTPUTS,
    DataSource,
    Manifest,
    Normalisation,
    Training,
    feature_hash_text,
    normalisation_hash,
)
from tickwire.models.registry import CURRENT_FILE, MANIFEST_FILE, ONNX_FILE, ModelFiles, ModelRegistry

__all__ = [
    "CURRENT_FILE",
    "MANIFEST_FILE",
    "MANIFEST_FORMAT",
    "MAX_LABEL_BYTES",
    "MAX_MODEL_WINDOW_ROWS",
    "ONNX_FILE",
    "OUTPUTS",
    "DataSource",
    "Manifest",
    "ModelFiles",
    "ModelRegistry",
    "Normalisation",
    "Training",
    "feature_hash_text",
    "normalisation_hash",
]
