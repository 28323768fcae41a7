"""Engines on disk: whatever is wrong is refused before use, with its reason (case T1)."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from tickwire.errors import EngineError
from tickwire.models import feature_hash_text
from tickwire.models.engine_files import EngineFiles
from tickwire.models.engine_manifest import BucketRun, EngineManifest, Machine
from tickwire.records.features import FEATURE_NAMES

HERE = Machine(library="tensorrt", library_version="8.6.1", gpu="NVIDIA H200", compute_capability="9.0", driver="12.8")
PLAN = bytes(range(256)) * 10
SOURCE = "ab" * 32
BUCKETS = (1, 2, 4, 8, 16)


def manifest_of(**changes: object) -> EngineManifest:
    manifest = EngineManifest(
        machine=HERE,
        precision="fp16",
        onnx_sha256="cd" * 32,
        source_sha256=SOURCE,
        feature_hash=feature_hash_text(),
        feature_names=FEATURE_NAMES,
        window_rows=500,
        buckets=tuple(BucketRun(bucket=b, profile=i, run_size=b) for i, b in enumerate(BUCKETS)),
        plan_sha256=hashlib.sha256(PLAN).hexdigest(),
        plan_bytes=len(PLAN),
        passed=True,
    )
    return msgspec.structs.replace(manifest, **changes)


def resolve(tmp_path, manifest: EngineManifest, machine: Machine = HERE):
    store = EngineFiles(tmp_path)
    store.write(manifest, PLAN, "{}")
    return store.resolve(machine, "fp16", SOURCE, BUCKETS)


def test_engine_of_this_machine_is_found(tmp_path):
    """The plan's exact bytes and its manifest come back; the folder's name tells what it is."""
    found, plan = resolve(tmp_path, manifest_of())
    assert plan == PLAN
    assert found == manifest_of()
    assert found.fingerprint == "nvidia-h200_sm9.0_cuda12.8_tensorrt8.6.1_fp16_cdcdcdcdcdcd"
    assert EngineFiles(tmp_path).fingerprints() == [found.fingerprint]


@pytest.mark.parametrize(
    ("changes", "machine", "reason"),
    [
        ({}, {"compute_capability": "8.9"}, r"built for compute capability '9.0', this machine has '8.9'"),
        ({}, {"library_version": "10.3.0"}, "library version"),
        ({}, {"library": "tensorrt_rtx"}, "library 'tensorrt'"),
        ({}, {"gpu": "NVIDIA L4"}, "gpu"),
        ({}, {"driver": "12.2"}, "driver"),
        ({"source_sha256": "ef" * 32}, {}, "built from a graph with SHA-256 efef"),
        ({"feature_names": FEATURE_NAMES[::-1]}, {}, "other features or another order"),
        ({"feature_hash": "0" * 16}, {}, "other features"),
        ({"buckets": manifest_of().buckets[:4]}, {}, "must have bucket 16"),
        ({"passed": False}, {}, "has not passed the gates"),
        ({"precision": "int8"}, {}, "must have one of precision fp16"),
    ],
)
def test_engine_that_does_not_suit_is_refused_with_its_reason(tmp_path, changes, machine, reason):
    """Another machine, model, feature order, set of buckets, or no verdict: never loaded."""
    with pytest.raises(EngineError, match=reason):
        resolve(tmp_path, manifest_of(**changes), msgspec.structs.replace(HERE, **machine))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda plan: plan.write_bytes(b""), "must have 2560 bytes, has 0"),
        (lambda plan: plan.write_bytes(PLAN[:-1]), "must have 2560 bytes, has 2559"),
        (lambda plan: plan.write_bytes(PLAN[:-1] + b"x"), "must have the SHA-256"),
        (lambda plan: plan.unlink(), "must be readable"),
        (lambda plan: plan.with_name("manifest.json").write_text("{"), "must be an engine's manifest"),
        (lambda plan: plan.with_name("manifest.json").unlink(), "must be readable"),
    ],
)
def test_engine_damaged_file_is_refused(tmp_path, damage, reason):
    """Empty, cut, changed or missing: said before TensorRT sees a byte."""
    store = EngineFiles(tmp_path)
    place = store.write(manifest_of(), PLAN, "{}")
    damage(place / "model.plan")
    with pytest.raises(EngineError, match=reason):
        store.resolve(HERE, "fp16", SOURCE, BUCKETS)


def test_engine_written_again_replaces_whole(tmp_path):
    """A verdict is entered by writing the engine again; nothing is left over."""
    store = EngineFiles(tmp_path)
    store.write(manifest_of(passed=False), PLAN, "{}")
    place = store.write(manifest_of(), PLAN, "{}")
    assert store.manifest(place.name).passed
    assert [path.name for path in (tmp_path / "engines").iterdir()] == [place.name]


def test_engine_for_a_compute_capability_suits_any_such_gpu():
    """A plan built without a GPU is bound to library and compute capability only."""
    for_any = msgspec.structs.replace(HERE, gpu="", driver="")
    assert for_any.difference(HERE) is None
    assert for_any.difference(msgspec.structs.replace(HERE, compute_capability="8.0")) is not None
