"""Centre and scale of each feature, robust, from the training part only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tickwire.models import Normalisation

CLIP = 5.0
_NORMAL_IQR = 1.349  # interquartile range of a standard normal


def fit(rows: npt.NDArray[np.float32]) -> Normalisation:
    """Return median and interquartile range (as a normal's standard deviation) of each column.

    A column that hardly varies keeps its standard deviation, or 1 if it is constant.

    Args:
        rows: Rows of the training part, shape (n, F).

    Raises:
        ValueError: There are no rows.
    """
    if not len(rows):
        raise ValueError("normalisation: needs at least one training row, got none")
    centre = np.median(rows, axis=0)
    low, high = np.quantile(rows, (0.25, 0.75), axis=0)
    scale = (high - low) / _NORMAL_IQR
    deviation = rows.std(axis=0)
    scale = np.where(scale > 1e-6, scale, np.where(deviation > 1e-6, deviation, 1.0))
    return Normalisation.of([float(v) for v in centre], [float(v) for v in scale], CLIP)
