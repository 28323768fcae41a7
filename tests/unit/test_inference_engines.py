"""The engines: identity, buckets, padding, warm-up, and what they refuse."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from onnx_models import every_row_mean, last_row_softmax, publish_model
from tickwire.errors import EngineError
from tickwire.models import ModelRegistry
from tickwire.records import N_FEATURES, EngineKind
from tickwire.records.features import FEATURE_NAMES
from tickwire_inference.config import InferenceConfig
from tickwire_inference.engines import OnnxRuntimeEngine, RuleEngine, load_engine
from tickwire_inference.layouts import BUCKETS, MAX_BATCH

T = 40


def softmax(values):
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture
def linear(tmp_path):
    graph, weights = last_row_softmax(T)
    publish_model(tmp_path, graph, T)
    engine = OnnxRuntimeEngine(ModelRegistry(tmp_path).resolve("test"))
    yield engine, weights
    engine.close()


def test_onnx_engine_each_size_gives_each_rows_own_result(linear):
    """Every size from 1 to 16 runs in its bucket and agrees with numpy within 1e-6; identity is the manifest's."""
    engine, weights = linear
    assert (engine.kind, engine.label, engine.window_rows) == (EngineKind.ONNXRUNTIME, "test@1", T)
    rng = np.random.default_rng(1)
    for size in range(1, MAX_BATCH + 1):
        engine.windows[:] = np.nan
        engine.windows[:size] = rng.normal(size=(size, T, N_FEATURES))
        engine.probabilities[:] = np.nan
        engine.run(size)
        expected = softmax(engine.windows[:size, -1] @ weights)
        np.testing.assert_allclose(engine.probabilities[:size], expected, atol=1e-6)
        bucket = next(bucket for bucket in BUCKETS if bucket >= size)
        assert np.isnan(engine.probabilities[bucket:]).all(), "a bigger bucket ran than was needed"


def test_onnx_engine_small_batch_after_a_big_one_is_not_touched_by_it(tmp_path):
    """T3: sizes 16, 3 and 1 with distinct windows give what each alone gives, though older windows lie behind them."""
    publish_model(tmp_path, every_row_mean(T), T)
    engine = OnnxRuntimeEngine(ModelRegistry(tmp_path).resolve("test"))
    for value, size in ((1.0, 16), (-2.0, 3), (3.0, 1)):
        engine.windows[:size] = value + np.arange(size)[:, None, None] / 16
        engine.run(size)
        means = value + np.arange(size) / 16
        expected = softmax(np.stack([-means, 0 * means, means], axis=1))
        np.testing.assert_allclose(engine.probabilities[:size], expected, atol=1e-5)


def test_onnx_engine_bad_row_leaves_its_partners_alone(linear):
    """F11, Q3: a NaN window makes its own row NaN and changes no other row's bits."""
    engine, _ = linear
    engine.windows[:] = np.random.default_rng(2).normal(size=engine.windows.shape)
    engine.run(MAX_BATCH)
    good = engine.probabilities.copy()
    engine.windows[5] = np.nan
    engine.run(MAX_BATCH)
    partners = np.arange(MAX_BATCH) != 5
    assert np.isnan(engine.probabilities[5]).all()
    np.testing.assert_array_equal(engine.probabilities[partners], good[partners])


def test_onnx_engine_same_batch_twice_is_bit_equal(linear):
    """Determinism: one thread, the same windows, the same bits."""
    engine, _ = linear
    engine.windows[:] = np.random.default_rng(3).normal(size=engine.windows.shape)
    for size in (1, 7, 16):
        engine.run(size)
        first = engine.probabilities[:size].copy()
        engine.run(size)
        np.testing.assert_array_equal(engine.probabilities[:size], first)


def test_onnx_engine_warm_up_runs_every_bucket(linear):
    """Warm-up gives a time for each bucket and leaves no NaN behind."""
    times_ns = linear[0].warm_up()
    assert len(times_ns) == len(BUCKETS)
    assert min(times_ns) > 0


@pytest.mark.parametrize("case", ["bytes", "window", "features"])
def test_onnx_engine_graph_that_is_not_the_manifests_is_refused(tmp_path, case):
    """A graph that does not load, or whose input has another shape, is refused with the model's label."""
    graph = {
        "bytes": b"no graph",
        "window": last_row_softmax(T + 1)[0],
        "features": last_row_softmax(T, n_features=40)[0],
    }[case]
    publish_model(tmp_path, graph, T)
    with pytest.raises(EngineError, match=r"^model test@1: "):
        OnnxRuntimeEngine(ModelRegistry(tmp_path).resolve("test"))


def test_rule_engine_microprice_above_mid_means_up():
    """The formula, symmetric, limited, and looking at the newest row only."""
    engine = RuleEngine(T, gain=2.0)
    feature = FEATURE_NAMES.index("microprice_offset")
    engine.windows[:] = np.nan
    offsets = np.float32([-100.0, -0.25, 0.0, 0.25, 100.0])
    engine.windows[:5, -1, feature] = offsets
    engine.run(5)
    z = np.clip(2 * offsets, -4, 4)
    np.testing.assert_allclose(engine.probabilities[:5], softmax(np.stack([-z, 0 * z, z], axis=1)), atol=1e-6)
    np.testing.assert_allclose(engine.probabilities[:5], engine.probabilities[4::-1, ::-1], atol=1e-6)
    assert engine.kind is EngineKind.RULE
    assert len(engine.warm_up()) == len(BUCKETS)


def test_load_engine_follows_the_configuration(tmp_path):
    """`engine` picks the class; a missing model is an EngineError that names the file."""
    assert isinstance(load_engine(InferenceConfig(engine="rule"), tmp_path), RuleEngine)
    with pytest.raises(EngineError, match="transformer/current"):
        load_engine(InferenceConfig(), tmp_path)
    publish_model(tmp_path, last_row_softmax(T)[0], T, name="transformer", version="9")
    engine = load_engine(msgspec.convert({"version": "9"}, InferenceConfig), tmp_path)
    assert engine.label == "transformer@9"
