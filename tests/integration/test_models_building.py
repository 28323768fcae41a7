"""Real plans by a real TensorRT: TensorRT-RTX builds for other GPUs, so that no GPU is needed here."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from onnx_models import last_row_softmax
from tickwire.errors import EngineError
from tickwire.models import ModelRegistry
from tickwire.models.engine_files import EngineFiles
from tickwire.models.precisions import graph_of
from tickwire_inference.engines.tensorrt_library import TENSORRT_RTX, load_library
from tickwire_models.building import build, settings_for
from tickwire_models.cli import model_group

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorrt_rtx_bindings") is None, reason="needs TensorRT-RTX: pip install 'tickwire[rtx]'"
)
ROOT = Path(__file__).parents[2]
TARGET = "8.9"


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "models"
    shutil.copytree(ROOT / "deploy" / "models", folder)
    return folder


def test_build_command_builds_every_precision_with_five_profiles(registry):
    """FP32, FP16 and Q/DQ of the shipped transformer: plan, manifest, one profile a bucket; not yet allowed to run."""
    models = ["--models", str(registry)]
    config = ["--config", str(ROOT / "deploy/config/demo.toml")]
    done = CliRunner().invoke(model_group, ["quantise", "transformer", "--windows", "12", *models, *config])
    assert done.exit_code == 0, done.output
    built = CliRunner().invoke(model_group, ["build", "transformer", "--precision", "all", "--target", TARGET, *models])
    assert built.exit_code == 0, built.output
    files = ModelRegistry(registry).resolve("transformer")
    store = EngineFiles(files.folder)
    manifests = [store.manifest(fingerprint) for fingerprint in store.fingerprints()]
    assert {manifest.precision for manifest in manifests} == {"fp32", "fp16", "int8"}
    for manifest in manifests:
        assert [(run.bucket, run.profile, run.run_size) for run in manifest.buckets] == [
            (bucket, i, bucket) for i, bucket in enumerate((1, 2, 4, 8, 16))
        ]
        assert len(store.plan(manifest.fingerprint, manifest)) > 100_000
        with pytest.raises(EngineError, match="has not passed the gates"):
            store.resolve(manifest.machine, manifest.precision, files.manifest.onnx_sha256, (1, 2, 4, 8, 16))
    listed = json.loads(CliRunner().invoke(model_group, ["list", "--json", *models]).output)
    assert next(entry for entry in listed if entry["model"] == "transformer@1")["engines"] == 3


def test_build_padded_bucket_runs_in_a_larger_profile(registry, tmp_path):
    """The way round a plan that is wrong at one size: that bucket has no profile of its own."""
    library, graph = load_library(TENSORRT_RTX), ModelRegistry(registry).resolve("lstm").onnx
    cache = tmp_path / "cache" / "timings"
    phases: set[str] = set()
    built = build(
        library,
        graph,
        500,
        settings_for(graph, target=TARGET),
        run_sizes={1: 2},
        timing_cache=cache,
        progress=lambda phase, _done, _total: phases.add(phase),
    )
    runs = [(run.bucket, run.profile, run.run_size) for run in built.buckets]
    assert runs[:3] == [(1, 0, 2), (2, 0, 2), (4, 1, 4)]
    assert phases
    assert not cache.exists()  # this library keeps no timings
    with pytest.raises(EngineError, match="bucket 2: must run as a larger bucket"):
        build(library, graph, 500, settings_for(graph, target=TARGET), run_sizes={2: 1})


def reshaped(shape: list[object]) -> bytes:
    """The small test graph with another input shape."""
    model = onnx.load_from_string(last_row_softmax(8)[0])
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("rows", TensorProto.FLOAT, shape))
    return bytes(model.SerializeToString())


def unsupported() -> bytes:
    """A graph with an operator that nobody has."""
    model = onnx.load_from_string(last_row_softmax(8)[0])
    model.graph.node[-1].op_type = "Abacus"
    model.graph.node[-1].name = "/head/abacus"
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (b"not a graph", "must parse it"),
        (reshaped([16, 8, 48]), "the batch of 'rows' must be open, is fixed to 16"),
        (reshaped(["batch", 9, 48]), "windows must have 8 rows, have 9"),
        (unsupported(), "Abacus"),
    ],
)
def test_build_graph_that_cannot_serve_is_refused_with_its_reason(graph, reason):
    """Damaged, a hard-coded batch, another window, an unknown layer."""
    library = load_library(TENSORRT_RTX)
    settings = settings_for(last_row_softmax(8)[0], target=TARGET)
    with pytest.raises(EngineError, match=reason):
        build(library, graph, 8, settings)


def test_build_variable_windows_need_a_graph_that_leaves_them_open():
    """Profiles from a shortest to the longest window, where the graph has no fixed T."""
    library, settings = load_library(TENSORRT_RTX), settings_for(last_row_softmax(8)[0], target=TARGET)
    assert build(library, reshaped(["batch", "rows_in_window", 48]), 8, settings, shortest_window_rows=8).plan
    with pytest.raises(EngineError, match="must leave their number open"):
        build(library, last_row_softmax(8)[0], 8, settings, shortest_window_rows=4)


def test_unknown_target_is_refused(registry):
    """A GPU that this library cannot build for is named, with those it can."""
    answer = CliRunner().invoke(
        model_group, ["build", "lstm", "--precision", "fp32", "--target", "9.0", "--models", str(registry)]
    )
    assert answer.exit_code == 1
    assert "must be one of SM120" in answer.output


def test_plan_of_no_use_is_refused_by_the_library():
    """What is no plan at all gives an error with TensorRT's words, not a crash."""
    with pytest.raises(EngineError, match="must load it"):
        load_library(TENSORRT_RTX).deserialise(b"x" * 1000)


def test_graph_of_all_precisions_says_what_it_asks_for(registry):
    """The builder's precision flags come from the graph."""
    files = ModelRegistry(registry).resolve("transformer")
    assert (settings_for(files.onnx).fp16, settings_for(files.onnx).int8) == (False, False)
    assert settings_for(graph_of(files, "fp16")).fp16
    assert settings_for(graph_of(files, "int8")).int8


def test_ci_builds_what_this_machine_can_and_reports_the_rest(registry, tmp_path):
    """`tickwire model ci`: graphs judged, RTX plans built, the GPU target left out with its reason; nothing refused."""
    listed = tmp_path / "build.toml"
    listed.write_text((ROOT / "deploy/models/build.toml").read_text().replace('["transformer", "lstm"]', '["lstm"]'))
    before = sorted(path.name for path in (registry / "lstm" / "1").iterdir())
    work = tmp_path / "work"
    arguments = ["--list", str(listed), "--work", str(work), "--models", str(registry), "--windows", "12"]
    done = CliRunner().invoke(model_group, ["ci", *arguments, "--config", str(ROOT / "deploy/config/demo.toml")])
    assert done.exit_code == 0, done.output
    steps = json.loads((work / "report.json").read_text())
    outcomes = {(step["where"], step["precision"]): step["outcome"] for step in steps}
    for precision in ("fp32", "fp16", "int8"):
        assert outcomes["onnxruntime", precision] == "passed"
        assert outcomes["rtx-ada", precision] == "built, not judged"
        assert outcomes["h200", precision] == "left out"
    assert len(EngineFiles(work / "lstm" / "1").fingerprints()) == 3
    assert sorted(path.name for path in (registry / "lstm" / "1").iterdir()) == before
    listed.write_text("models = []\n")
    refused = CliRunner().invoke(model_group, ["ci", *arguments])
    assert refused.exit_code == 1
    assert "$.models" in refused.output
