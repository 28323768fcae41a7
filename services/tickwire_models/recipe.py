"""The recipe of the shipped models: which captures, how they are split, how the result is judged and published."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tickwire.errors import FeedError
from tickwire.models import Manifest, Normalisation, Training
from tickwire.models.manifest import feature_hash_text
from tickwire.records import N_FEATURES, Instrument
from tickwire.records.features import FEATURE_NAMES
from tickwire_ingest.config import CaptureConfig
from tickwire_models.architecture import WINDOW_ROWS
from tickwire_models.baselines import logistic, prior
from tickwire_models.dataset import Samples, Session, read_session, source_of, to_samples, train_rows
from tickwire_models.export import OPSET, to_onnx
from tickwire_models.labels import CLASS_NAMES, choose_threshold
from tickwire_models.metrics import judge
from tickwire_models.normalisation import fit
from tickwire_models.publishing import Publisher, write_whole
from tickwire_models.split import TEST, TRAIN, VALIDATION, SplitRule
from tickwire_models.training import Picked, TrainingSettings, make_network, pick, predict, train
from tickwire_models.training_plot import TRAINING_PLOT_FILE, training_plot

HORIZON_MS = 500
VERSION = "1"
"""Stands in the manifest until the registry gives it the next free number."""
DEMO_SECONDS = 60.0
"""The shipped demo captures are the first minute of two of the files: nothing of it is trained on."""


def _usdm(name: str) -> CaptureConfig:
    return CaptureConfig(path=name, format="binance_usdm")


def _spot(name: str) -> CaptureConfig:
    return CaptureConfig(path=name, format="binance_spot")


def _instrument(venue: str, name: str, price: str, quantity: str) -> Instrument:
    return Instrument(venue=venue, name=name, price_increment=price, quantity_increment=quantity)


SESSIONS = (
    Session(_instrument("binance_usdm", "BTCUSDT", "0.1", "0.001"), (_usdm("usdm_btcusdt_20240808.gz"),), DEMO_SECONDS),
    Session(
        _instrument("binance_spot", "BTCUSDT", "0.01", "0.00000001"),
        (_spot("spot_btcusdt_20240808.gz"), _spot("spot_btcusdt_20240809.gz")),
        DEMO_SECONDS,
    ),
    Session(_instrument("binance_spot", "ETHUSDT", "0.01", "0.00000001"), (_spot("spot_ethusdt_20240808.gz"),)),
)


def load_samples(folder: Path, report: Callable[[str], None], rule: SplitRule) -> list[Samples]:
    """Return the samples of all sessions.

    Raises:
        FeedError: Names the captures that are missing.
    """
    names = [capture.path for session in SESSIONS for capture in session.captures]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FeedError(f"training data: {folder} must hold {', '.join(names)}; missing: {', '.join(missing)}")
    loaded = []
    for session in SESSIONS:
        rows = read_session(session, folder, WINDOW_ROWS)
        samples = to_samples(rows, WINDOW_ROWS, HORIZON_MS * 1_000_000, rule)
        counts = {name: int((samples.part == part).sum()) for name, part in _PARTS.items()}
        report(f"{rows.label}: {len(rows.mid)} rows, samples {counts}")
        loaded.append(samples)
    return loaded


def make_model(
    kind: str,
    samples: list[Samples],
    folder: Path,
    out: Path,
    settings: TrainingSettings,
    rule: SplitRule,
    progress: Callable[[int, int, float], None],
) -> Manifest:
    """Train, judge, export and publish one model with a picture of its training; return its manifest.

    Raises:
        EngineError: The export does not equal the trained network.
    """
    threshold = choose_threshold(np.concatenate([s.moves[s.part == TRAIN] for s in samples]))
    normalisation = fit(train_rows(samples))
    training, validation, test = (pick(samples, part, threshold) for part in (TRAIN, VALIDATION, TEST))
    network = make_network(kind, normalisation, settings.seed)
    network, curve = train(network, training, validation, settings, progress)
    probabilities = predict(network, test)
    metrics = _judge(probabilities, training, test, normalisation, settings.seed)
    metrics["training_log_loss_by_epoch"] = [round(value, 4) for value in curve.training]
    metrics["validation_log_loss_by_epoch"] = [round(value, 4) for value in curve.validation]
    onnx = to_onnx(network)
    manifest = _describe(kind, samples, folder, threshold, normalisation, settings, rule, metrics, onnx)
    manifest = Publisher(out).publish(manifest, onnx, number=True)
    plot = training_plot(f"{manifest.label}, held out", curve, probabilities, test.labels)
    write_whole(out / manifest.name / manifest.version / TRAINING_PLOT_FILE, plot)
    return manifest


def _judge(
    probabilities: Any, training: Picked, test: Picked, normalisation: Normalisation, seed: int
) -> dict[str, Any]:
    baseline = logistic(training.newest_rows(), training.labels, test.newest_rows(), normalisation, seed)
    by_symbol = {
        samples.rows.label: judge(probabilities[test.session == number], test.labels[test.session == number])
        for number, samples in enumerate(test.samples)
        if (test.session == number).any()
    }
    return {
        "classes": CLASS_NAMES,
        "held_out": judge(probabilities, test.labels),
        "held_out_by_symbol": by_symbol,
        "baseline_prior": judge(prior(training.labels, len(test)), test.labels),
        "baseline_logistic_newest_row": judge(baseline, test.labels),
        "class_counts_train": np.bincount(training.labels, minlength=3).tolist(),
        "class_counts_held_out": np.bincount(test.labels, minlength=3).tolist(),
    }


def _describe(
    kind: str,
    samples: list[Samples],
    folder: Path,
    threshold: float,
    normalisation: Normalisation,
    settings: TrainingSettings,
    rule: SplitRule,
    metrics: dict[str, Any],
    onnx: bytes,
) -> Manifest:
    sources = tuple(
        source_of(folder / capture.path, len(loaded.rows.mid))
        for session, loaded in zip(SESSIONS, samples, strict=True)
        for capture in session.captures
    )
    return Manifest(
        name=kind,
        version=VERSION,
        kind=kind,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        feature_names=FEATURE_NAMES,
        feature_hash=feature_hash_text(),
        window_rows=WINDOW_ROWS,
        n_features=N_FEATURES,
        horizon_ms=HORIZON_MS,
        label_threshold=threshold,
        onnx_sha256=hashlib.sha256(onnx).hexdigest(),
        onnx_bytes=len(onnx),
        opset=OPSET,
        normalisation=normalisation,
        training=Training(
            seed=settings.seed,
            data=sources,
            split={
                "by": "receive time, each session on its own",
                "train": rule.train,
                "validation": rule.validation,
                "embargo_ms": rule.embargo_ns // 1_000_000,
                "demo_seconds_left_out": DEMO_SECONDS,
            },
            epochs=settings.epochs,
            settings={
                "batch": settings.batch,
                "samples_per_epoch": settings.samples_per_epoch,
                "learning_rate": settings.learning_rate,
                "weight_decay": settings.weight_decay,
                "threads": settings.threads,
                "torch": str(torch.__version__),
            },
        ),
        metrics=metrics,
    )


_PARTS = {"train": TRAIN, "validation": VALIDATION, "test": TEST}
