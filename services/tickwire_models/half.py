"""FP16 by conversion of the graph: precision is then part of the ONNX file, and one builder serves every TensorRT."""

from __future__ import annotations

from typing import Any

import onnx

from tickwire.errors import EngineError

_NORMALISE = "/normalise/"
"""Nodes that stay in FP32: raw rows may exceed what FP16 holds (65,504); after clipping they do not."""
_KEPT_TYPES = ["Softmax", "LayerNormalization"]
"""Sums over many values: in FP16 they cost accuracy and gain no time."""


def to_half(graph: bytes) -> bytes:
    """Return a graph that computes in FP16 between its normalisation and its probabilities; I/O stays FP32.

    Raises:
        EngineError: The graph does not begin with a normalisation.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    model = onnx.load_from_string(graph)
    first = [node for node in model.graph.node if node.name.startswith(_NORMALISE)]
    if not first:
        raise EngineError(f"graph: must begin with nodes named {_NORMALISE}*; export it with tickwire model train")
    border = first[-1].output[0]
    extractor = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model))
    body: Any = convert_float_to_float16(
        extractor.extract_model([border], [model.graph.output[0].name]),
        keep_io_types=True,
        op_block_list=_KEPT_TYPES,
        disable_shape_infer=True,
    )
    names = {item.name for node in first for item in model.graph.initializer if item.name in node.input}
    initializers = [item for item in model.graph.initializer if item.name in names] + list(body.graph.initializer)
    rest = [node for node in body.graph.node if not node.name.startswith(_NORMALISE)]
    whole = onnx.helper.make_model(
        onnx.helper.make_graph([*first, *rest], model.graph.name, model.graph.input, model.graph.output, initializers),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )
    OnnxModel(whole).topological_sort()
    onnx.checker.check_model(whole)
    return bytes(whole.SerializeToString())
