"""The model registry: what matches is served, everything else is refused with file, rule, finding and remedy."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from onnx_models import last_row_softmax, publish_model
from tickwire.errors import EngineError
from tickwire.models import MANIFEST_FILE, ONNX_FILE, Manifest, ModelRegistry, Normalisation, normalisation_hash
from tickwire.records import N_FEATURES
from tickwire.records.features import FEATURE_NAMES

T = 8


@pytest.fixture(scope="module")
def graph():
    return last_row_softmax(T)[0]


def test_registry_good_model_is_returned_with_the_bytes_that_were_checked(tmp_path, graph):
    """Without a version it is what `current` names; manifest and graph are as they were written."""
    publish_model(tmp_path, graph, T, version="1")
    written = publish_model(tmp_path, graph, T, version="2024-08b")
    registry = ModelRegistry(tmp_path)
    model = registry.resolve("test")
    assert model.label == "test@2024-08b"
    assert model.manifest == written
    assert model.onnx == graph
    assert registry.resolve("test", "1").label == "test@1"


def swap(names):
    return (names[1], names[0], *names[2:])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"feature_names": swap(FEATURE_NAMES)}, f"feature 0 is '{FEATURE_NAMES[1]}' instead of '{FEATURE_NAMES[0]}'"),
        ({"feature_names": FEATURE_NAMES[:-1]}, "has 47 names instead of 48"),
        ({"feature_hash": "0" * 16}, "feature_hash must be"),
        ({"n_features": 40}, "n_features must be 48, is 40"),
        ({"window_rows": 961}, "window_rows must be at most 960, is 961"),
        ({"outputs": ("up", "flat", "down")}, "outputs must be down, flat, up, are up, flat, down"),
        ({"format": 2}, "format must be 1, is 2"),
        ({"name": "other"}, "must describe test@1 as its folder says, describes other@1"),
        ({"onnx_sha256": "f" * 64}, "must have SHA-256 ffff"),
        ({"onnx_bytes": 7}, "must have 7 bytes as its manifest says"),
        ({"onnx_bytes": 0}, "must be a manifest"),
        ({"name": "Bad Name"}, "must be a manifest"),
    ],
)
def test_registry_manifest_that_does_not_match_is_refused(tmp_path, graph, changes, rule):
    """F5: permuted, renamed or redefined features, another F, T or graph are refused; file and remedy are named."""
    publish_model(tmp_path, graph, T)
    folder = tmp_path / "test" / "1"
    manifest = msgspec.json.decode((folder / MANIFEST_FILE).read_bytes())
    (folder / MANIFEST_FILE).write_bytes(msgspec.json.encode(manifest | changes))
    with pytest.raises(EngineError) as refusal:
        ModelRegistry(tmp_path).resolve("test", "1")
    text = str(refusal.value)
    assert rule in text
    assert str(folder) in text
    assert any(remedy in text for remedy in ("train", "publish", "move or correct"))


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("centre", [0.1] * 47 + [0.2], "the values hash to"),
        ("centre", [0.1] * 47, "must have 48 centres and scales, has 47 and 48"),
        ("scale", [0.7] * 47 + [0.0], "must have positive scales and clip"),
        ("clip", -1.0, "must have positive scales and clip"),
    ],
)
def test_registry_altered_normalisation_is_refused(tmp_path, graph, field, value, rule):
    """A normalisation that is not what its hash says, or that cannot be one, is refused."""
    publish_model(tmp_path, graph, T)
    path = tmp_path / "test" / "1" / MANIFEST_FILE
    manifest = msgspec.json.decode(path.read_bytes())
    manifest["normalisation"][field] = value
    path.write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(EngineError, match="normalisation") as refusal:
        ModelRegistry(tmp_path).resolve("test")
    assert rule in str(refusal.value)


@pytest.mark.parametrize("missing", ["", "test", "test/current", f"test/1/{MANIFEST_FILE}", f"test/1/{ONNX_FILE}"])
def test_registry_missing_file_is_one_clear_error(tmp_path, graph, missing):
    """Whatever is missing, the text names the file that could not be read."""
    publish_model(tmp_path, graph, T)
    (tmp_path / missing).rename(tmp_path.parent / f"{tmp_path.name}-gone")
    with pytest.raises(EngineError, match=r"^model file .* must be readable, was not: No such file") as refusal:
        ModelRegistry(tmp_path).resolve("test")
    assert str(tmp_path / missing) in str(refusal.value)


@pytest.mark.parametrize(("name", "version"), [("../test", None), ("test", "../1"), ("test", "/etc"), ("", None)])
def test_registry_name_that_leaves_the_folder_is_refused(tmp_path, graph, name, version):
    """Names and versions are folder names and nothing else."""
    publish_model(tmp_path, graph, T)
    with pytest.raises(EngineError, match="must be plain words"):
        ModelRegistry(tmp_path).resolve(name, version)


def test_registry_truncated_files_are_refused(tmp_path, graph):
    """Half a manifest or half a graph is not served."""
    publish_model(tmp_path, graph, T)
    for name, rule in ((ONNX_FILE, "must have"), (MANIFEST_FILE, "must be a manifest")):
        path = tmp_path / "test" / "1" / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(EngineError, match=rule):
            ModelRegistry(tmp_path).resolve("test")


def test_manifest_round_trip_keeps_every_value(tmp_path, graph):
    """What is encoded is decoded to the same manifest; float32 normalisation survives JSON exactly."""
    rng = np.random.default_rng(5)
    normalisation = Normalisation.of(rng.normal(size=N_FEATURES), rng.uniform(0.1, 9, N_FEATURES), 7.5)
    manifest = publish_model(tmp_path, graph, T, normalisation=normalisation)
    again = msgspec.json.decode(manifest.encode(), type=Manifest)
    assert again == manifest
    centre, scale, clip = again.normalisation.centre, again.normalisation.scale, again.normalisation.clip
    assert normalisation_hash(centre, scale, clip) == normalisation.hash
    assert again.normalisation.fault() is None
