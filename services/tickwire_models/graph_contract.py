"""What every graph of a model must be, whatever its precision: checked before it is written anywhere.

G1  `rows` float32 (any batch, T, F) to `probabilities` float32 (the same batch, 3).
G2  Every bucket runs, and each row's answer is that of the same row alone: no batch size is part of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from tickwire.errors import EngineError
from tickwire.models import OUTPUTS
from tickwire.records import N_FEATURES
from tickwire_inference.engines.plan import INPUT, OUTPUT
from tickwire_inference.layouts import BUCKETS

_FLOAT = "tensor(float)"
_ERRORS_ONLY = 3
_SUM_TOLERANCE = 2e-3
_ROW_TOLERANCE = 2e-3


def open_graph(onnx: bytes, subject: str) -> ort.InferenceSession:
    """Return a session on the CPU.

    Raises:
        EngineError: ONNX Runtime cannot load the graph.
    """
    options = ort.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    try:
        return ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class of their own.
        raise EngineError(f"{subject}: ONNX Runtime {ort.__version__} must load it, did not: {error}") from error


def check_graph(onnx: bytes, window_rows: int, subject: str) -> None:
    """Refuse a graph that is not as G1 and G2 say.

    Raises:
        EngineError: Names the subject, the rule and what was found.
    """
    session = open_graph(onnx, subject)
    _check_value(session.get_inputs(), INPUT, (window_rows, N_FEATURES), subject)
    _check_value(session.get_outputs(), OUTPUT, (len(OUTPUTS),), subject)
    rows = np.random.default_rng(0).standard_normal((BUCKETS[-1], window_rows, N_FEATURES)).astype(np.float32)
    alone: Any = np.concatenate([_run(session, rows[i : i + 1], subject) for i in range(len(rows))])
    for bucket in BUCKETS[1:]:
        together = _run(session, rows[:bucket], subject)
        difference = np.abs(together - alone[:bucket]).max(axis=1)
        if difference.max() > _ROW_TOLERANCE:
            row = int(difference.argmax())
            raise EngineError(
                f"{subject}: row {row} of batch {bucket} must give what it gives alone, differs by "
                f"{difference[row]:.2e}; rows must not see one another"
            )


def _check_value(values: Any, name: str, tail: tuple[int, ...], subject: str) -> None:
    found = ", ".join(f"{value.name} {value.type} {value.shape}" for value in values)
    if len(values) != 1 or values[0].name != name or values[0].type != _FLOAT or tuple(values[0].shape[1:]) != tail:
        raise EngineError(f"{subject}: must have one {name} tensor(float) of (batch, {str(tail)[1:-1]}), has {found}")
    if isinstance(values[0].shape[0], int):
        raise EngineError(
            f"{subject}: {name} must take any batch, has {values[0].shape[0]} built in; export with a dynamic batch"
        )


def _run(session: ort.InferenceSession, rows: npt.NDArray[np.float32], subject: str) -> npt.NDArray[np.float32]:
    try:
        found: npt.NDArray[np.float32] = session.run([OUTPUT], {INPUT: rows})[0]
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class of their own.
        raise EngineError(
            f"{subject}: must run batch {len(rows)}, did not: {error}; export with a dynamic batch"
        ) from error
    if found.shape != (len(rows), len(OUTPUTS)):
        raise EngineError(f"{subject}: batch {len(rows)} must give {len(rows)} rows of 3, gave shape {found.shape}")
    if not np.isfinite(found).all() or np.abs(found.sum(axis=1) - 1).max() > _SUM_TOLERANCE:
        raise EngineError(f"{subject}: batch {len(rows)} must give finite probabilities that sum to 1, did not")
    return found
