"""The registry's commands: what a quant types, what it says, and with which exit code it ends."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import click
import onnx
import pytest
from click.testing import CliRunner

from onnx_models import last_row_softmax, publish_model
from tickwire.models import ModelRegistry
from tickwire_models.cli import model_group

T = 4


def model(*arguments: object):
    return CliRunner().invoke(model_group, [str(argument) for argument in arguments])


@pytest.fixture
def made(tmp_path) -> tuple[Path, Path]:
    """A graph and its manifest as files, as another tool would leave them."""
    publish_model(tmp_path / "made", last_row_softmax(T)[0], T)
    folder = tmp_path / "made" / "test" / "1"
    return folder / "model.onnx", folder / "manifest.json"


def test_publish_list_show_rollback_gc(tmp_path, made):
    """A model's life from the command line."""
    graph, manifest = made
    registry = tmp_path / "r"
    for n in (1, 2, 3):
        done = model("publish", graph, "--manifest", manifest, "--number", "--models", registry)
        assert (done.exit_code, done.output) == (0, f"test@{n} is current\n")
    listed = json.loads(model("list", "--json", "--models", registry).output)
    assert [(entry["model"], entry["state"], entry["fault"]) for entry in listed] == [
        ("test@1", "", ""),
        ("test@2", "previous", ""),
        ("test@3", "current", ""),
    ]
    assert model("rollback", "test", "--models", registry).output == "test@2 is current\n"
    assert json.loads(model("show", "test", "--json", "--models", registry).output)["version"] == "2"
    assert "4 rows of 48 features" in model("show", "test@1", "--models", registry).output
    assert model("gc", "test", "--keep", "1", "--models", registry).output == "removed 1\n"
    (registry / "test" / "3" / "model.onnx").write_bytes(b"")
    damaged = json.loads(model("list", "--json", "--models", registry).output)[-1]
    assert "must have" in damaged["fault"]


def test_publish_wrong_input_is_refused_and_changes_nothing(tmp_path, made):
    """No manifest, a built-in batch, a graph that is not the manifest's: exit code 1, the reason, no registry."""
    graph, manifest = made
    registry = tmp_path / "r"
    not_one = tmp_path / "x.json"
    not_one.write_text("{}")
    fixed = tmp_path / "fixed.onnx"
    built_in = onnx.load(graph)
    built_in.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 16
    onnx.save(built_in, fixed)
    other = tmp_path / "other.onnx"
    other.write_bytes(last_row_softmax(T, seed=8)[0])
    for file, description, reason in (
        (graph, not_one, "must be a model's manifest"),
        (fixed, manifest, "has 16 built in"),
        (other, manifest, "must have SHA-256"),
    ):
        refused = model("publish", file, "--manifest", description, "--models", registry)
        assert refused.exit_code == 1
        assert reason in refused.output
        assert not ModelRegistry(registry)._folder.joinpath("test", "current").exists()
    for command in (("rollback", "test"), ("gc", "nobody"), ("show", "nobody")):
        assert model(*command, "--models", registry).exit_code == 1


def test_commands_whose_libraries_are_missing_say_so_and_break_nothing(monkeypatch):
    """An install without the extra `models`: help lists every command, the others work, these name what they need."""
    real = importlib.import_module

    def without_onnx(name, *rest):
        if name == "tickwire_models.engine_cli":
            raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without_onnx)
    context = click.Context(model_group)
    helps = {name: model_group.get_command(context, name).help for name in model_group.list_commands(context)}
    assert "needs onnx" in helps["build"]
    assert "needs" not in helps["list"]
    assert model("list", "--models", "nowhere").exit_code == 0
    refused = model("build", "transformer", "--precision", "fp16")
    assert refused.exit_code == 1
    assert "pip install 'tickwire[models]'" in refused.output
