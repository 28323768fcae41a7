"""Other precisions of the shipped models: made in the graph, bound to what they were made from, close to FP32."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from tickwire.errors import EngineError
from tickwire.models import ModelRegistry
from tickwire.models.precisions import graph_of
from tickwire.records import N_FEATURES
from tickwire_inference.engines import OnnxRuntimeEngine
from tickwire_models import calibration, graph_cache
from tickwire_models.calibration import CalibrationSet, Regime, regimes_of
from tickwire_models.cli import model_group
from tickwire_models.dataset import Rows
from tickwire_models.half import to_half

ROOT = Path(__file__).parents[2]
T = 500


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """The shipped models in a folder that tests may write to."""
    folder = tmp_path_factory.mktemp("models") / "models"
    shutil.copytree(ROOT / "deploy" / "models", folder)
    return folder


@pytest.fixture(scope="module")
def rows():
    """A made-up session with a quiet stretch, a trend and a jump."""
    dice = np.random.default_rng(1)
    n = 1800
    steps = dice.choice([-1.0, 1.0], n)
    steps[900:1200] = 1.0
    steps[1500] = 400.0
    features = dice.normal(0, 1, (n, N_FEATURES)).astype(np.float32)
    return Rows(
        label="v:S",
        features=features,
        receive_time_ns=np.arange(n),
        mid=1e4 + np.cumsum(steps),
        run=np.zeros(n, np.int64),
        usable=np.arange(n) >= T - 1,
    )


def test_regimes_are_told_apart(rows):
    """The trend is a trend, the jump a jump, the first windows of a run count as after a break, the rest is quiet."""
    found = regimes_of(rows, T)
    assert set(found[: T - 1]) == {-1}
    assert found[T + 10] == Regime.JUMP
    assert found[800] == Regime.QUIET
    assert found[1100] == Regime.TRENDING
    assert found[1520] == Regime.JUMP


def test_calibration_set_is_stratified_and_bound_to_its_seed(rows):
    """The same seed draws the same windows, in even shares; another seed draws others, under another hash."""
    first, again, other = (calibration.draw([rows], T, n=30, seed=seed) for seed in (1, 1, 2))
    assert first.regimes == {"quiet": 10, "trending": 10, "jump": 10}
    assert first.hash == again.hash != other.hash
    with pytest.raises(EngineError, match="must hold 500 rows in a row"):
        calibration.draw([dataclasses.replace(rows, usable=np.zeros(len(rows.mid), bool))], T)


@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_half_graph_is_close_and_survives_extreme_rows(registry, name):
    """Case T5: FP16 between normalisation and probabilities, FP32 outside; rows far beyond 65,504 stay finite."""
    files = ModelRegistry(registry).resolve(name)
    graph = to_half(files.onnx)
    model = onnx.load_from_string(graph)
    assert {item.type.tensor_type.elem_type for item in (*model.graph.input, *model.graph.output)} == {1}
    assert any(item.data_type == onnx.TensorProto.FLOAT16 for item in model.graph.initializer)
    exact, half = OnnxRuntimeEngine(files), OnnxRuntimeEngine(dataclasses.replace(files, onnx=graph))
    dice = np.random.default_rng(2)
    exact.windows[:] = dice.normal(0, 2, exact.windows.shape)
    exact.windows[3], exact.windows[4] = 1e7, -1e5
    half.windows[:] = exact.windows
    for size in (1, 3, 16):
        exact.run(size)
        half.run(size)
        assert np.abs(exact.probabilities[:size] - half.probabilities[:size]).max() < 5e-3


def test_quantised_graph_is_bound_to_weights_and_calibration(registry, rows, tmp_path):
    """Case T7: other weights, another set, a damaged or empty entry, a missing folder: calibrated anew, and said so."""
    graph = ModelRegistry(registry).resolve("lstm").onnx
    model = onnx.load_from_string(graph)
    weight = next(item for item in model.graph.initializer if item.name.startswith("head"))
    changed = onnx.numpy_helper.to_array(weight) * np.float32(1.01)
    weight.CopyFrom(onnx.numpy_helper.from_array(changed, weight.name))
    other_graph = model.SerializeToString()
    small = calibration.draw([rows], T, n=6)
    other_set = calibration.draw([rows], T, n=6, seed=5)
    folder, said = tmp_path / "not" / "there", []
    first = graph_cache.quantised(graph, small, folder, said.append)
    assert graph_cache.quantised(graph, small, folder, said.append) == first
    assert ["taken" in line for line in said] == [False, True]
    for changed_graph, changed_set in ((other_graph, small), (graph, other_set)):
        graph_cache.quantised(changed_graph, changed_set, folder, said.append)
        assert "no graph of this model, calibration set" in said[-1]
    for damage in (b"", first[:-7]):
        (folder / f"{graph_cache.key_of(graph, small)}.onnx").write_bytes(damage)
        assert graph_cache.quantised(graph, small, folder, said.append) == first
        assert "empty or damaged" in said[-1]


def test_int8_graph_has_scales_on_products_and_none_on_biases(registry, rows):
    """Q/DQ round each matrix product, per channel; biases stay as they are, which TensorRT insists on."""
    from tickwire_models.quantise import to_int8

    files = ModelRegistry(registry).resolve("transformer")
    model = onnx.load_from_string(to_int8(files.onnx, calibration.draw([rows], T, n=6)))
    types = [node.op_type for node in model.graph.node]
    assert types.count("DequantizeLinear") >= types.count("MatMul") == 15
    names = {item.name for item in model.graph.initializer}
    assert not any("bias" in name and "quantized" in name for name in names)
    assert {item.data_type for item in model.graph.initializer if "zero_point" in item.name} == {onnx.TensorProto.INT8}


def test_quantise_command_writes_forms_that_are_checked_at_use(registry):
    """`tickwire model quantise`, then what another graph, a changed file or a missing one gives."""
    arguments = ["--models", str(registry), "--config", str(ROOT / "deploy/config/demo.toml")]
    done = CliRunner().invoke(model_group, ["quantise", "lstm", "--windows", "12", *arguments])
    assert done.exit_code == 0, done.output
    files = ModelRegistry(registry).resolve("lstm")
    assert graph_of(files, "fp32") == files.onnx
    assert len({len(graph_of(files, precision)) for precision in ("fp32", "fp16", "int8")}) == 3
    judged = CliRunner().invoke(model_group, ["validate", "lstm", "--precision", "fp16", *arguments])
    assert judged.exit_code == 0, judged.output
    retrained = dataclasses.replace(files, manifest=msgspec.structs.replace(files.manifest, onnx_sha256="0" * 64))
    with pytest.raises(EngineError, match="was made from another lstm graph"):
        graph_of(retrained, "fp16")
    (files.folder / "model.fp16.onnx").write_bytes(b"")
    with pytest.raises(EngineError, match="must have the SHA-256"):
        graph_of(files, "fp16")
    with pytest.raises(EngineError, match="must have the precision int8, has it not"):
        graph_of(ModelRegistry(registry).resolve("transformer"), "int8")


def test_calibration_hash_sees_every_value():
    """One bit of one window, or another shape, is another set."""
    windows = np.zeros((2, 3, 4), np.float32)
    first = CalibrationSet(windows, {}).hash
    windows[1, 2, 3] = 1e-30
    assert CalibrationSet(windows, {}).hash != first
    assert CalibrationSet(np.zeros((3, 2, 4), np.float32), {}).hash != first
