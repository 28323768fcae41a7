"""The picture of a training and the figures in it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs PyTorch, which is not installed here")
pytest.importorskip("matplotlib", reason="the picture needs matplotlib, which is not installed here")

from tickwire_models.metrics import reliability
from tickwire_models.training import LearningCurve
from tickwire_models.training_plot import training_plot

CURVE = LearningCurve([1.0, 0.9, 0.8], [1.0, 0.85, 0.9])


def outcomes(n=3000):
    dice = np.random.default_rng(1)
    probabilities = dice.dirichlet((1, 1, 1), n).astype(np.float32)
    labels = np.array([dice.choice(3, p=row / row.sum()) for row in probabilities.astype(np.float64)])
    return probabilities, labels


def test_plot_same_figures_give_the_same_picture():
    """P1: a PNG of the stated size, equal byte for byte; another curve gives another picture."""
    probabilities, labels = outcomes(300)
    first = training_plot("a@1", CURVE, probabilities, labels)
    assert first[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(first[16:20], "big"), int.from_bytes(first[20:24], "big")) == (1500, 460)
    assert training_plot("a@1", CURVE, probabilities, labels) == first
    assert training_plot("a@1", LearningCurve([1.0], [1.0]), probabilities, labels) != first


def test_plot_nothing_to_judge_is_refused():
    """An empty held-out set or a NaN makes no picture."""
    probabilities, labels = outcomes(30)
    with pytest.raises(ValueError, match="at least one"):
        training_plot("a@1", CURVE, probabilities[:0], labels[:0])
    with pytest.raises(ValueError, match="finite"):
        training_plot("a@1", CURVE, np.full_like(probabilities, np.nan), labels)


def test_reliability_of_honest_probabilities_is_the_diagonal():
    """Where outcomes follow the probabilities the observed share is the predicted one; every row is counted once."""
    probabilities, labels = outcomes()
    bins = reliability(probabilities[:, 1], labels == 1)
    assert bins.rows.sum() == len(labels)
    large = bins.rows > 200
    assert np.abs(bins.predicted - bins.observed)[large].max() < 0.1


def test_reliability_leaves_out_empty_bins_and_takes_the_ends():
    """Probabilities 0 and 1 are in the first and the last bin; nothing is divided by zero."""
    bins = reliability(np.array([0.0, 1.0, 1.0], np.float32), np.array([False, True, False]))
    assert bins.predicted.tolist() == [0.0, 1.0]
    assert bins.observed.tolist() == [0.0, 0.5]
    assert bins.rows.tolist() == [1, 2]
