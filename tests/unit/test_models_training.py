"""Training, export and publication, on small synthetic data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="training needs PyTorch, which is not installed here")

import torch

from tickwire.errors import EngineError
from tickwire.models import Normalisation
from tickwire.records import N_FEATURES
from tickwire_models import export
from tickwire_models.architecture import NETWORKS
from tickwire_models.cli import model_group
from tickwire_models.dataset import Rows, Samples
from tickwire_models.split import TRAIN, VALIDATION
from tickwire_models.training import TrainingSettings, make_network, pick, predict, train

PLAIN = Normalisation.of([0.0] * N_FEATURES, [1.0] * N_FEATURES, 5.0)
TINY = TrainingSettings(seed=3, epochs=2, batch=16, samples_per_epoch=64, validation_samples=32, threads=1)


def learnable(n: int = 700) -> list[Samples]:
    """Rows whose first feature says where the mid goes."""
    dice = np.random.default_rng(1)
    features = dice.standard_normal((n, N_FEATURES)).astype(np.float32)
    newest = np.arange(500, n)
    moves = np.where(features[newest, 0] > 0.4, 1.0, np.where(features[newest, 0] < -0.4, -1.0, 0.0))
    rows = Rows("a", features, np.arange(n) * 1000, np.ones(n), np.ones(n, np.int64), np.ones(n, dtype=bool))
    part = np.where(newest < 650, TRAIN, VALIDATION)
    return [Samples(rows, newest, moves, part)]


@pytest.mark.parametrize("kind", NETWORKS)
def test_training_same_seed_gives_the_same_weights(kind):
    """Deterministic by seed: equal bit for bit; another seed gives another network."""
    samples = learnable()
    curves = []

    def weights(seed: int) -> list[np.ndarray]:
        settings = TrainingSettings(**{**TINY.__dict__, "seed": seed})
        network, curve = train(
            make_network(kind, PLAIN, seed),
            pick(samples, TRAIN, 0.0),
            pick(samples, VALIDATION, 0.0),
            settings,
            lambda *_: None,
        )
        assert len(curve.training) == len(curve.validation) == 2
        curves.append(curve)
        return [parameter.detach().numpy().copy() for parameter in network.parameters()]

    first, second, other = weights(3), weights(3), weights(4)
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert curves[0] == curves[1] != curves[2]
    assert any((a != b).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("kind", NETWORKS)
def test_export_equals_the_network_at_every_batch_and_position(kind):
    """ONNX Runtime within 1e-5 of PyTorch in every bucket; opset 17; normalisation is the graph's first part."""
    import onnx

    network = make_network(kind, Normalisation.of([1.0] * N_FEATURES, [2.0] * N_FEATURES, 3.0), 7)
    content = export.to_onnx(network)
    assert export.check(network, content) < export.TOLERANCE
    graph = onnx.load_from_string(content)
    onnx.checker.check_model(graph)
    assert [entry.version for entry in graph.opset_import if not entry.domain] == [17]
    assert [node.op_type for node in graph.graph.node if node.op_type not in ("Constant", "Identity")][:3] == [
        "Sub",
        "Div",
        "Clip",
    ]
    rows = np.full((1, 500, N_FEATURES), 1e9, np.float32)
    clipped = np.full((1, 500, N_FEATURES), 1.0 + 2.0 * 3.0, np.float32)
    with torch.no_grad():
        assert torch.equal(network(torch.from_numpy(rows)), network(torch.from_numpy(clipped)))


def test_export_of_another_network_is_refused():
    """A file that computes something else is named with batch and row."""
    first, second = make_network("lstm", PLAIN, 1), make_network("lstm", PLAIN, 2)
    with pytest.raises(EngineError, match="batch 1, row 0 must equal PyTorch"):
        export.check(second, export.to_onnx(first))


def test_export_with_a_batch_built_in_is_refused():
    """A network that takes the batch of the export for the only one is not published."""
    network = make_network("lstm", PLAIN, 1)
    whole = network.forward

    def forward(rows: torch.Tensor) -> torch.Tensor:
        return whole(rows.reshape(2, 500, N_FEATURES))

    network.forward = forward
    with pytest.raises(EngineError, match=r"exported model: .*export with a dynamic batch"):
        export.to_onnx(network)


def test_last_block_computes_only_the_answer():
    """The last block attends from the last token: the same answer as the whole block's last token."""
    network = make_network("transformer", PLAIN, 5)
    rows = torch.randn(2, 500, N_FEATURES)
    short = network(rows)
    network.blocks[-1].last = False
    patches = network.normalise(rows).reshape(-1, 50, 10 * N_FEATURES)
    tokens = network.blocks(network.embed(patches) + network.positions)
    whole = torch.softmax(network.head(network.norm(tokens)[:, -1]), -1)
    assert torch.allclose(short, whole, atol=1e-6)


def test_training_without_enough_samples_says_so():
    """Fewer samples than a batch is an error, not an endless or empty epoch."""
    samples = learnable(510)
    few = pick(samples, TRAIN, 0.0)
    with pytest.raises(ValueError, match="at least one batch of 16 samples"):
        train(make_network("lstm", PLAIN, 1), few, few, TINY, lambda *_: None)


def test_predict_gives_one_row_a_sample_in_order():
    """Batches of the evaluation do not mix rows."""
    network = make_network("lstm", PLAIN, 2)
    picked = pick(learnable(), TRAIN, 0.0)
    whole = predict(network, picked)
    one = predict(network, picked.subset(np.array([17])))
    assert whole.shape == (len(picked), 3)
    assert np.abs(whole[17] - one[0]).max() < 1e-6


def test_train_command_names_missing_captures(tmp_path: Path):
    """Missing data is one clear error before anything is trained."""
    result = CliRunner().invoke(model_group, ["train", "--data", str(tmp_path), "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "missing: usdm_btcusdt_20240808.gz" in result.output
