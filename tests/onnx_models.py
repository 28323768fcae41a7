"""Small ONNX models with manifests, as the registry wants them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tickwire.models import (
    CURRENT_FILE,
    MANIFEST_FILE,
    ONNX_FILE,
    DataSource,
    Manifest,
    Normalisation,
    Training,
    feature_hash_text,
)
from tickwire.records import N_FEATURES
from tickwire.records.features import FEATURE_NAMES


def last_row_softmax(window_rows: int, *, seed: int = 3, n_features: int = N_FEATURES) -> tuple[bytes, np.ndarray]:
    """A graph with softmax(last row @ W), and W, shape (48, 3)."""
    weights = np.random.default_rng(seed).normal(0, 0.5, (n_features, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["rows", "last"], ["newest"], axis=1),
        helper.make_node("MatMul", ["newest", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1),
    ]
    return _serialise(
        nodes,
        window_rows,
        n_features,
        {"weights": weights, "last": np.array(window_rows - 1, np.int64)},
    ), weights


def every_row_mean(window_rows: int) -> bytes:
    """A graph whose output depends on every value of the window: a stale or foreign row shows."""
    nodes = [
        helper.make_node("ReduceMean", ["rows"], ["mean"], axes=[1, 2], keepdims=0),
        helper.make_node("Unsqueeze", ["mean", "axis"], ["column"]),
        helper.make_node("MatMul", ["column", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1),
    ]
    constants = {"axis": np.array([1], np.int64), "weights": np.array([[-1.0, 0.0, 1.0]], np.float32)}
    return _serialise(nodes, window_rows, N_FEATURES, constants)


def publish_model(
    folder: Path, onnx_bytes: bytes, window_rows: int, *, name: str = "test", version: str = "1", **changes: Any
) -> Manifest:
    """Write model, manifest and `current` under `folder`; `changes` replace fields of the manifest."""
    manifest = Manifest(
        name=name,
        version=version,
        kind="linear",
        created="2026-01-01",
        feature_names=FEATURE_NAMES,
        feature_hash=feature_hash_text(),
        window_rows=window_rows,
        n_features=N_FEATURES,
        horizon_ms=500,
        label_threshold=1e-5,
        onnx_sha256=hashlib.sha256(onnx_bytes).hexdigest(),
        onnx_bytes=len(onnx_bytes),
        opset=17,
        normalisation=Normalisation.of([0.1] * N_FEATURES, [0.7] * N_FEATURES, 5.0),
        training=Training(
            seed=1, data=(DataSource(name="none", sha256="0" * 64, rows=0),), split={"train": 1.0}, epochs=0
        ),
        metrics={"accuracy": 0.5},
    )
    manifest = msgspec.structs.replace(manifest, **changes)
    target = folder / name / version
    target.mkdir(parents=True, exist_ok=True)
    (target / ONNX_FILE).write_bytes(onnx_bytes)
    (target / MANIFEST_FILE).write_bytes(manifest.encode())
    (folder / name / CURRENT_FILE).write_text(f"{version}\n")
    return manifest


def _serialise(nodes: list[Any], window_rows: int, n_features: int, constants: dict[str, np.ndarray]) -> bytes:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["batch", window_rows, n_features])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model.SerializeToString()
