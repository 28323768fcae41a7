"""Export to ONNX, and the proof that ONNX Runtime gives what PyTorch gives in every bucket and position."""

from __future__ import annotations

import io
import warnings

import numpy as np
import torch

from tickwire.errors import EngineError
from tickwire.records import N_FEATURES
from tickwire_inference.engines.plan import INPUT, OUTPUT
from tickwire_inference.layouts import BUCKETS
from tickwire_models.architecture import WINDOW_ROWS, Network
from tickwire_models.graph_contract import check_graph, open_graph

OPSET = 17
BATCHES = (*BUCKETS, 3)
"""What inference runs, and a size that it never runs: no batch is built in."""
TOLERANCE = 1e-5
"""Largest difference of a probability between PyTorch and ONNX Runtime, FP32 both."""
MAX_BYTES = 2_000_000


def to_onnx(network: Network) -> bytes:
    """Return the network as an ONNX file: `rows` float32 (batch, T, F) to `probabilities` float32 (batch, 3).

    Raises:
        EngineError: The file is larger than 2 MB, has a batch size built in, or ONNX Runtime computes something else.
    """
    network.eval()
    sample = torch.zeros(2, WINDOW_ROWS, N_FEATURES)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The tracing exporter is deprecated; it is the one that needs no further package and writes plain opset 17.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (sample,),
            buffer,  # type: ignore[arg-type]
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes={INPUT: {0: "batch"}, OUTPUT: {0: "batch"}},
            opset_version=OPSET,
            dynamo=False,
        )
    onnx = buffer.getvalue()
    if len(onnx) > MAX_BYTES:
        raise EngineError(f"exported model: must be at most {MAX_BYTES} bytes, is {len(onnx)}")
    check_graph(onnx, WINDOW_ROWS, "exported model")
    check(network, onnx)
    return onnx


def check(network: Network, onnx: bytes) -> float:
    """Compare ONNX Runtime with PyTorch at several batch sizes, each position; return the largest difference.

    Raises:
        EngineError: They differ by more than `TOLERANCE`; names batch and row.
    """
    session = open_graph(onnx, "exported model")
    dice = np.random.default_rng(0)
    worst = 0.0
    for batch in BATCHES:
        rows = (dice.standard_normal((batch, WINDOW_ROWS, N_FEATURES)) * 3).astype(np.float32)
        with torch.no_grad():
            expected = network(torch.from_numpy(rows)).numpy()
        found = session.run([OUTPUT], {INPUT: rows})[0]
        difference = np.abs(found - expected).max(axis=1)
        if found.shape != expected.shape or not difference.max() <= TOLERANCE:
            raise EngineError(
                f"exported model: batch {batch}, row {int(difference.argmax())} must equal PyTorch within {TOLERANCE}, "
                f"differs by {difference.max():.2e}"
            )
        worst = max(worst, float(difference.max()))
    return worst
