"""The models in deploy/models: whole, described, and as good as they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tickwire.models import ModelRegistry
from tickwire.records import N_FEATURES

ROOT = Path(__file__).parents[2]
NAMES = ("transformer", "lstm")


@pytest.fixture(params=NAMES)
def model(request):
    return ModelRegistry(ROOT / "deploy" / "models").resolve(request.param)


def test_shipped_model_matches_its_manifest(model):
    """Hashes, features, window and size are as the manifest says; nothing larger than 2 MB."""
    manifest = model.manifest
    assert (manifest.window_rows, manifest.n_features, manifest.horizon_ms) == (500, 48, 500)
    assert manifest.opset == 17
    assert manifest.onnx_bytes <= 2_000_000
    assert {source.name for source in manifest.training.data} >= {"usdm_btcusdt_20240808.gz"}


def test_shipped_model_says_how_good_it_is_beside_its_baselines(model):
    """The same held-out rows for model, prior and logistic regression, per symbol too, with confusion."""
    metrics = model.manifest.metrics
    rows = {metrics[name]["rows"] for name in ("held_out", "baseline_prior", "baseline_logistic_newest_row")}
    assert len(rows) == 1
    assert sum(map(sum, metrics["held_out"]["confusion_true_by_predicted"])) == rows.pop()
    assert metrics["held_out"]["log_loss"] < metrics["baseline_prior"]["log_loss"]
    assert sum(part["rows"] for part in metrics["held_out_by_symbol"].values()) == metrics["held_out"]["rows"]


def test_shipped_model_gives_probabilities_at_every_batch_size(model):
    """Dynamic batch, finite on extreme rows, each row independent of its neighbours."""
    session = ort.InferenceSession(model.onnx, providers=["CPUExecutionProvider"])
    dice = np.random.default_rng(5)
    rows = (dice.standard_normal((16, 500, N_FEATURES)) * 10).astype(np.float32)
    rows[3] = 1e5
    whole = session.run(["probabilities"], {"rows": rows})[0]
    assert whole.shape == (16, 3)
    assert np.isfinite(whole).all()
    assert np.abs(whole.sum(axis=1) - 1).max() < 1e-5
    for size in (1, 2, 3, 5):
        part = session.run(["probabilities"], {"rows": rows[:size]})[0]
        assert np.abs(part - whole[:size]).max() < 1e-5


def test_shipped_model_metrics_can_be_recomputed(model):
    """On the recordings, where they are: the manifest's held-out log-loss comes out again on one of the symbols."""
    pytest.importorskip("torch", reason="the training recipe needs PyTorch")
    from tickwire_models import recipe
    from tickwire_models.dataset import read_session, to_samples, windows_of
    from tickwire_models.labels import classify
    from tickwire_models.metrics import judge
    from tickwire_models.split import TEST, SplitRule

    folder = ROOT.parent / "shared" / "data" / "binance"
    session = recipe.SESSIONS[2]
    if not all((folder / capture.path).is_file() for capture in session.captures):
        pytest.skip(f"the recordings are not in {folder}")
    samples = to_samples(read_session(session, folder, 500), 500, 500_000_000, SplitRule())
    newest = samples.newest[samples.part == TEST]
    labels = classify(samples.moves[samples.part == TEST], model.manifest.label_threshold)
    engine = ort.InferenceSession(model.onnx, providers=["CPUExecutionProvider"])
    parts = [
        engine.run(["probabilities"], {"rows": windows_of(samples.rows, newest[i : i + 256], 500)})[0]
        for i in range(0, len(newest), 256)
    ]
    found = judge(np.concatenate(parts), labels)
    expected = model.manifest.metrics["held_out_by_symbol"][session.instrument.label]
    assert found["rows"] == expected["rows"]
    assert found["log_loss"] == pytest.approx(expected["log_loss"], abs=2e-3)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=2e-3)
