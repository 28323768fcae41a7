"""Judging an engine: every bucket, every position, any order, real and extreme rows, against ONNX Runtime in FP32.

I1  Each real window is run at least once in every position of every bucket, beside changing neighbours.
I2  What a run leaves from the batch before is seen: outputs are poisoned, and after a batch of sixteen come batches of
    three and of one, whose results must be their own (case T3).
I3  A NaN, an infinity or nothing to judge is a refusal, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_OUTPUTS
from tickwire_models.evaluation_set import EvaluationSet
from tickwire_models.gates import Gates

Floats = npt.NDArray[np.float32]
_MIXES = 8
_FLOOR = 1e-7


class Candidate(Protocol):
    """What is judged; every `HostEngine` is one."""

    windows: Floats
    probabilities: Floats

    def run(self, size: int) -> None:
        """Compute `probabilities[:size]` from `windows[:size]`."""
        ...


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that a gate did not let pass."""

    gate: str
    bucket: int
    row: str
    """Name of the window, or what the figure is over."""
    found: float
    limit: float

    def text(self) -> str:
        """Return it as a sentence."""
        return f"gate {self.gate}, bucket {self.bucket}, {self.row}: found {self.found:.3g}, limit {self.limit:.3g}"


class BucketReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one bucket did."""

    bucket: int
    rows: int
    max_error: float
    max_error_extreme: float
    correlation: float
    kl: float
    agreement: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, with what it rests on."""

    passed: bool
    refusals: tuple[Refusal, ...]
    buckets: tuple[BucketReport, ...]

    def encoded(self) -> dict[str, Any]:
        """Return it as it stands in an engine's manifest."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def validate(candidate: Candidate, reference: Floats, evaluation: EvaluationSet, gates: Gates) -> Report:
    """Judge a candidate.

    Args:
        candidate: An engine, warmed or not.
        reference: Probabilities of the evaluation set by ONNX Runtime in FP32, shape (n, 3).
        evaluation: The windows.
        gates: The limits.
    """
    refusals: list[Refusal] = []
    reports = []
    for bucket in BUCKETS:
        found, rows = _run_bucket(candidate, evaluation, bucket)
        report, refused = _judge(bucket, found, reference[rows], rows, evaluation, gates)
        reports.append(report)
        refusals += refused
    refusals += _stale(candidate, reference, evaluation, gates)
    return Report(passed=not refusals, refusals=tuple(refusals), buckets=tuple(reports))


def run_rows(candidate: Candidate, windows: Floats) -> Floats:
    """Return the candidate's answers to up to sixteen windows; poisoned before (I2)."""
    size = len(windows)
    candidate.windows[:size] = windows
    candidate.probabilities.fill(np.nan)
    candidate.run(size)
    return candidate.probabilities[:size].copy()


def reference_of(engine: Candidate, evaluation: EvaluationSet) -> Floats:
    """Return the reference's answers, one window at a time."""
    return np.concatenate([run_rows(engine, window[None]) for window in evaluation.windows])


# Batches of indices: every window in every position, then shuffled mixes.
def _batches(n: int, bucket: int) -> Iterator[npt.NDArray[np.int64]]:
    order = np.arange(n)
    for shift in range(bucket):
        turned = np.roll(order, shift)
        for first in range(0, n - bucket + 1, bucket):
            yield turned[first : first + bucket]
        if n % bucket:
            yield turned[-bucket:] if n >= bucket else np.resize(turned, bucket)
    dice = np.random.default_rng(bucket)
    for _ in range(_MIXES):
        yield dice.integers(0, n, bucket)


def _run_bucket(candidate: Candidate, evaluation: EvaluationSet, bucket: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    found, rows = [], []
    for batch in _batches(len(evaluation.windows), bucket):
        found.append(run_rows(candidate, evaluation.windows[batch]))
        rows.append(batch)
    return np.concatenate(found), np.concatenate(rows)


def _judge(
    bucket: int,
    found: Floats,
    expected: Floats,
    rows: npt.NDArray[np.int64],
    evaluation: EvaluationSet,
    gates: Gates,
) -> tuple[BucketReport, list[Refusal]]:
    refusals = []

    def refuse(gate: str, row: str, value: float, limit: float) -> None:
        refusals.append(Refusal(gate=gate, bucket=bucket, row=row, found=value, limit=limit))

    finite = np.isfinite(found).all(axis=1) & np.isfinite(expected).all(axis=1)
    if not finite.all():
        refuse("finite", evaluation.names[int(rows[~finite][0])], float("nan"), 0.0)
    errors = np.where(finite, np.abs(found - expected).max(axis=1), np.inf)
    real = rows < evaluation.n_real
    for gate, mask, limit in (
        ("max_error", real, gates.max_error),
        ("max_error_extreme", ~real, gates.max_error_extreme),
    ):
        if mask.any() and not errors[mask].max() <= limit:
            worst = int(np.flatnonzero(mask)[errors[mask].argmax()])
            refuse(
                gate, f"{evaluation.names[int(rows[worst])]} in position {worst % bucket}", float(errors[worst]), limit
            )
    whole = real & finite
    correlation, kl, agreement = _figures(found[whole], expected[whole])
    for gate, value, limit, good in (
        ("min_correlation", correlation, gates.min_correlation, correlation >= gates.min_correlation),
        ("max_kl", kl, gates.max_kl, kl <= gates.max_kl),
        ("min_agreement", agreement, gates.min_agreement, agreement >= gates.min_agreement),
    ):
        if not good:
            refuse(gate, f"all {int(whole.sum())} real rows", value, limit)
    report = BucketReport(
        bucket=bucket,
        rows=len(rows),
        max_error=float(errors[real].max()),
        max_error_extreme=float(errors[~real].max()) if (~real).any() else 0.0,
        correlation=correlation,
        kl=kl,
        agreement=agreement,
    )
    return report, refusals


# Correlation, mean divergence of the found from the expected distribution, share of equal classes; NaN for no rows.
def _figures(found: Floats, expected: Floats) -> tuple[float, float, float]:
    if not len(found):
        return float("nan"), float("nan"), float("nan")
    p, q = np.clip(expected.astype(np.float64), _FLOOR, 1), np.clip(found.astype(np.float64), _FLOOR, 1)
    p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
    kl = float((p * np.log(p / q)).sum(axis=1).mean())
    agreement = float((found.argmax(axis=1) == expected.argmax(axis=1)).mean())
    if np.ptp(expected) == 0 or np.ptp(found) == 0:
        return 1.0 if np.array_equal(found, expected) else 0.0, kl, agreement
    return float(np.corrcoef(found.ravel(), expected.ravel())[0, 1]), kl, agreement


def _stale(candidate: Candidate, reference: Floats, evaluation: EvaluationSet, gates: Gates) -> list[Refusal]:
    n = evaluation.n_real
    order = np.resize(np.arange(n), MAX_BATCH + 4)
    first = 0
    for size in (MAX_BATCH, 3, 1):
        rows = order[first : first + size]
        first += size
        found = run_rows(candidate, evaluation.windows[rows])
        if found.shape != (size, N_OUTPUTS):
            return [Refusal(gate="shape", bucket=size, row="results", found=len(found), limit=size)]
        errors = np.abs(found - reference[rows]).max(axis=1)
        if not errors.max() <= gates.max_error:
            row = f"{evaluation.names[int(rows[errors.argmax()])]} after a larger batch"
            return [Refusal(gate="own_results", bucket=size, row=row, found=float(errors.max()), limit=gates.max_error)]
    return []
