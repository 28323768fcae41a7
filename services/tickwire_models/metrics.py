"""How good probabilities are, on rows that were never trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tickwire_models.labels import CLASS_NAMES

_FLOOR = 1e-7


def judge(probabilities: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return accuracy, log-loss and confusion of probabilities (n, 3) against labels (n,).

    Raises:
        ValueError: There is nothing to judge, or a probability is not finite.
    """
    if not len(labels):
        raise ValueError("metrics: needs at least one labelled row, got none")
    if not np.isfinite(probabilities).all():
        raise ValueError("metrics: probabilities must be finite")
    predicted = probabilities.argmax(axis=1)
    confusion = np.zeros((len(CLASS_NAMES), len(CLASS_NAMES)), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    likelihood = np.maximum(probabilities[np.arange(len(labels)), labels], _FLOOR)
    return {
        "rows": len(labels),
        "accuracy": round(float((predicted == labels).mean()), 4),
        "log_loss": round(float(-np.log(likelihood).mean()), 4),
        "confusion_true_by_predicted": confusion.tolist(),
    }
