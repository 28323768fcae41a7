"""How good probabilities are, on rows that were never trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tickwire_models.labels import CLASS_NAMES

_FLOOR = 1e-7
_BINS = 10


class Reliability(NamedTuple):
    """What happened how often where it was given a probability, by bins that are not empty."""

    predicted: npt.NDArray[np.float64]
    """Mean probability of each bin."""
    observed: npt.NDArray[np.float64]
    """Share of it in which it happened."""
    rows: npt.NDArray[np.int64]


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


def reliability(probabilities: npt.NDArray[np.float32], happened: npt.NDArray[np.bool_]) -> Reliability:
    """Return the calibration curve of one class over ten equal bins, arguments of shape (n,)."""
    place = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    rows = np.bincount(place, minlength=_BINS)
    held = rows > 0
    predicted = np.bincount(place, probabilities, _BINS)[held] / rows[held]
    observed = np.bincount(place, happened, _BINS)[held] / rows[held]
    return Reliability(predicted, observed, rows[held].astype(np.int64))
