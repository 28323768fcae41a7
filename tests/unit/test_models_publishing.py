"""Publishing: atomic at every point, by several at once, never changing what is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from onnx_models import last_row_softmax, publish_model
from tickwire.errors import EngineError
from tickwire.models import ModelRegistry
from tickwire_models import publishing
from tickwire_models.publishing import Publisher

T = 4


@pytest.fixture
def template(tmp_path):
    """A manifest and a graph to publish under any version."""
    onnx, _ = last_row_softmax(T)
    return publish_model(tmp_path / "template", onnx, T), onnx


def version_of(manifest, version):
    return msgspec.structs.replace(manifest, version=version)


def test_publish_makes_it_current_and_remembers_the_previous_one(tmp_path, template):
    """Publish twice, roll back once and by name."""
    manifest, onnx = template
    publisher = Publisher(tmp_path / "r")
    for version in ("1", "2"):
        publisher.publish(version_of(manifest, version), onnx)
        assert ModelRegistry(tmp_path / "r").resolve("test").manifest.version == version
    assert (publisher.current("test"), publisher.previous("test")) == ("2", "1")
    assert publisher.rollback("test") == "1"
    assert publisher.rollback("test", "2") == "2"
    with pytest.raises(EngineError, match="must be readable"):
        publisher.rollback("test", "9")
    assert publisher.current("test") == "2"
    with pytest.raises(EngineError, match="must be in"):
        publisher.rollback("nobody")


def test_gc_goes_by_when_a_version_was_published(tmp_path, template):
    """A precision added to an old version does not make it a new one."""
    manifest, onnx = template
    publisher = Publisher(tmp_path / "r")
    for version in ("1", "2", "3", "4"):
        publisher.publish(version_of(manifest, version), onnx)
    (tmp_path / "r" / "test" / "1" / "model.fp16.onnx").write_bytes(b"x")
    assert publisher.versions("test") == ["1", "2", "3", "4"]
    assert publisher.gc("test", 2) == ["2", "1"]


def test_publish_existing_version_with_other_content_is_refused(tmp_path, template):
    """I2: the same again is nothing new, other content is an error that names the file."""
    manifest, onnx = template
    publisher = Publisher(tmp_path / "r")
    publisher.publish(manifest, onnx)
    publisher.publish(manifest, onnx)
    other, _ = last_row_softmax(T, seed=9)
    with pytest.raises(EngineError, match=r"model\.onnx: exists with other content"):
        publisher.publish(manifest, other)
    assert ModelRegistry(tmp_path / "r").resolve("test").onnx == onnx


def test_publish_what_inference_would_refuse_changes_nothing(tmp_path, template):
    """I4, case F5: a permuted feature order never becomes current."""
    manifest, onnx = template
    publisher = Publisher(tmp_path / "r")
    publisher.publish(manifest, onnx)
    names = list(manifest.feature_names)
    names[0], names[1] = names[1], names[0]
    permuted = msgspec.structs.replace(manifest, version="2", feature_names=tuple(names))
    with pytest.raises(EngineError, match="feature 0 is"):
        publisher.publish(permuted, onnx)
    assert (publisher.versions("test"), publisher.current("test")) == (["1"], "1")


@pytest.mark.parametrize("function", ["fsync", "rename", "replace"])
def test_publish_crash_at_any_step_leaves_the_previous_version_current(tmp_path, template, monkeypatch, function):
    """I1: whichever call fails, the k-th for every k, the old version serves, and a retry succeeds."""
    manifest, onnx = template
    owner = os if function == "fsync" else Path
    real = getattr(owner, function)
    for k in range(12):
        folder = tmp_path / f"{function}{k}"
        publisher = Publisher(folder)
        publisher.publish(version_of(manifest, "1"), onnx)
        calls = 0

        def crash(*arguments, at=k):
            nonlocal calls
            calls += 1
            if calls == at + 1:
                raise OSError("the lights went out")
            return real(*arguments)

        monkeypatch.setattr(owner, function, crash)
        try:
            publisher.publish(version_of(manifest, "2"), onnx)
            crashed = False
        except OSError:
            crashed = True
        monkeypatch.undo()
        assert ModelRegistry(folder).resolve("test").manifest.version in ("1", "2")
        if not crashed:
            assert k > 0
            break
        publisher.publish(version_of(manifest, "2"), onnx)
        assert ModelRegistry(folder).resolve("test").manifest.version == "2"
        publisher.gc("test", 5)
        assert not list((folder / "test").glob(".publish-*"))
    else:
        raise AssertionError("more steps than were tried")


PUBLISH = """
import sys
from pathlib import Path
from tickwire.models import ModelRegistry
from tickwire_models.publishing import Publisher
template, folder, n = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
files = ModelRegistry(template).resolve("test")
print("ready", flush=True)
for _ in range(n):
    Publisher(folder).publish(files.manifest, files.onnx, number=True)
"""


def publisher_process(tmp_path: Path, n: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PUBLISH, str(tmp_path / "template"), str(tmp_path / "r"), str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_publish_two_processes_at_once_lose_no_version(tmp_path, template):
    """I3: ten versions each, all there, all whole, numbered without a hole."""
    processes = [publisher_process(tmp_path, 10) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    versions = Publisher(tmp_path / "r").versions("test")
    assert sorted(map(int, versions)) == list(range(1, 21))
    for version in versions:
        ModelRegistry(tmp_path / "r").resolve("test", version)
    assert Publisher(tmp_path / "r").current("test") == "20"


def test_publish_killed_publisher_leaves_a_usable_registry(tmp_path, template):
    """I1, I3: SIGKILL in the middle; what is current resolves, and the next publisher gets the lock."""
    process = publisher_process(tmp_path, 1_000_000)
    assert process.stdout is not None
    process.stdout.readline()
    while len(Publisher(tmp_path / "r").versions("test")) < 5:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    manifest, onnx = template
    publisher = Publisher(tmp_path / "r")
    ModelRegistry(tmp_path / "r").resolve("test")
    assert publisher.publish(manifest, onnx, number=True).version == publisher.current("test")
    removed = publisher.gc("test", 1)
    assert publisher.current("test") not in removed
    assert set(publisher.versions("test")) == {publisher.current("test"), publisher.previous("test")}
    assert not list((tmp_path / "r" / "test").glob(f"{publishing._LEFTOVER}*"))
