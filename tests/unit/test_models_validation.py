"""The gates: each kind of wrong engine is refused by its gate, bucket and row; a right one passes."""

from __future__ import annotations

import numpy as np
import pytest

from tickwire.errors import EngineError
from tickwire.models import Normalisation
from tickwire.records import N_FEATURES
from tickwire_inference.layouts import MAX_BATCH, N_OUTPUTS
from tickwire_models.dataset import Rows
from tickwire_models.evaluation_set import EXTREME_NAMES, EvaluationSet, draw
from tickwire_models.gates import DEFAULTS, gates_for
from tickwire_models.validation import reference_of, validate

T = 6


class Right:
    """Softmax of three features of the newest row."""

    def __init__(self):
        self.windows = np.zeros((MAX_BATCH, T, N_FEATURES), np.float32)
        self.probabilities = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)

    def run(self, size):
        logits = np.clip(self.windows[:size, -1, :N_OUTPUTS], -10, 10)
        exp = np.exp(logits)
        self.probabilities[:size] = exp / exp.sum(axis=1, keepdims=True)


class Off(Right):
    """Wrong by `error` in batches that `when` picks."""

    def __init__(self, when, error=0.01):
        super().__init__()
        self._when, self._error = when, error

    def run(self, size):
        super().run(size)
        if self._when(size):
            self.probabilities[:size, 0] += self._error


class Stale(Right):
    """Writes only what a batch of more than three brings; after that the old results stand."""

    def __init__(self):
        super().__init__()
        self._last = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)

    def run(self, size):
        if size > 3:
            super().run(size)
            self._last[:] = self.probabilities
        self.probabilities[:] = self._last


class Swapped(Right):
    """Gives the first two rows of a batch each other's results."""

    def run(self, size):
        super().run(size)
        if size > 1:
            self.probabilities[:2] = self.probabilities[1::-1].copy()


class Overflowing(Right):
    """NaN where inputs are large, as FP16 sums are."""

    def run(self, size):
        super().run(size)
        large = np.abs(self.windows[:size]).max(axis=(1, 2)) > 65504
        self.probabilities[:size][large] = np.nan


class Silent(Right):
    """Writes nothing in batches of eight."""

    def run(self, size):
        if size != 8:
            super().run(size)


@pytest.fixture(scope="module")
def evaluation():
    n = 60
    features = np.random.default_rng(0).normal(0, 1, (n, N_FEATURES)).astype(np.float32)
    rows = Rows(
        label="v:S",
        features=features,
        receive_time_ns=np.arange(n),
        mid=np.arange(n, dtype=np.float64),
        run=np.zeros(n, np.int64),
        usable=np.arange(n) >= T - 1,
    )
    normalisation = Normalisation.of([0.0] * N_FEATURES, [1.0] * N_FEATURES, 8.0)
    return draw([rows], T, normalisation, n_real=32)


def judged(candidate, evaluation, gates=DEFAULTS["fp32"]):
    return validate(candidate, reference_of(Right(), evaluation), evaluation, gates)


def test_right_engine_passes_every_bucket(evaluation):
    """All buckets, every real window in every position, extreme rows too."""
    report = judged(Right(), evaluation)
    assert report.passed
    assert [found.bucket for found in report.buckets] == [1, 2, 4, 8, 16]
    assert all(found.max_error == 0 and found.correlation > 0.999 for found in report.buckets)
    assert len(evaluation.windows) == 32 + len(EXTREME_NAMES)


@pytest.mark.parametrize(
    ("candidate", "gate", "bucket"),
    [
        (Off(lambda size: size == 1), "max_error", 1),
        (Off(lambda size: size == 16), "max_error", 16),
        (Swapped(), "max_error", 2),
        (Overflowing(), "finite", 1),
        (Silent(), "finite", 8),
        (Stale(), "max_error", 1),
    ],
)
def test_wrong_engine_is_refused_by_gate_bucket_and_row(evaluation, candidate, gate, bucket):
    """Case T3, T5 and the batch-1 fault: the first refusal names what was found and where."""
    report = judged(candidate, evaluation)
    assert not report.passed
    first = report.refusals[0]
    assert (first.gate, first.bucket) in ((gate, bucket), ("max_error", bucket))
    assert gate in {refusal.gate for refusal in report.refusals}
    assert "v:S row" in first.row or first.row in EXTREME_NAMES
    assert f"bucket {bucket}" in first.text()


def test_stale_results_after_a_larger_batch_are_seen(evaluation):
    """Case T3: a candidate that is right in each bucket on its own but keeps rows of the batch before."""

    class KeepsRows(Right):
        before = 0

        def run(self, size):
            kept = self._results.copy() if self.before > size else None
            super().run(size)
            self._results = self.probabilities.copy()
            if kept is not None and size in (1, 3):
                self.probabilities[:size] = kept[:size]
            self.before = size

        _results = np.zeros((MAX_BATCH, N_OUTPUTS), np.float32)

    report = judged(KeepsRows(), evaluation)
    assert not report.passed
    assert {refusal.gate for refusal in report.refusals} == {"own_results"}


def test_empty_or_unfinite_evaluation_is_refused():
    """Nothing to judge on passes nothing."""
    with pytest.raises(EngineError, match="must have real windows"):
        EvaluationSet(np.zeros((1, T, N_FEATURES), np.float32), ("zeros",), 0)
    with pytest.raises(EngineError, match="must be finite"):
        EvaluationSet(np.full((1, T, N_FEATURES), np.nan, np.float32), ("x",), 1)


def test_unfinite_reference_is_refused(evaluation):
    """A NaN on the reference's side is no pass either."""
    reference = reference_of(Right(), evaluation)
    reference[3] = np.nan
    report = validate(Right(), reference, evaluation, DEFAULTS["int8"])
    assert "finite" in {refusal.gate for refusal in report.refusals}


def test_gates_come_from_the_manifest_and_name_what_is_wrong():
    """Defaults by precision; a field out of bounds, an unknown one and an unknown precision are errors."""
    assert gates_for({}, "fp16", "m@1") == DEFAULTS["fp16"]
    assert gates_for({"fp16": {"max_error": 0.25}}, "fp16", "m@1").max_error == 0.25
    for gates, match in (
        ({"fp16": {"max_errors": 1}}, r"gates\.fp16"),
        ({"fp16": {"max_error": -1}}, r"max_error"),
        ({"fp8": {}}, "some of fp8"),
    ):
        with pytest.raises(EngineError, match=match):
            gates_for(gates, "fp16", "m@1")
