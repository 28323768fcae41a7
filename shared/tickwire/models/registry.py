"""The model registry: a folder of `<name>/<version>/{model.onnx,manifest.json}` and `<name>/current`.

Reading is all-or-nothing: what `resolve` returns was checked against its manifest and against this build's features.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tickwire.errors import EngineError
from tickwire.models.manifest import MANIFEST_FORMAT, Manifest

MANIFEST_FILE = "manifest.json"
ONNX_FILE = "model.onnx"
CURRENT_FILE = "current"
"""Text file beside the versions: the one that is served unless the configuration names another."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class ModelFiles:
    """One checked version of a model."""

    manifest: Manifest
    folder: Path
    onnx: bytes
    """The graph: exactly the bytes whose hash was checked."""

    @property
    def label(self) -> str:
        """`name@version`."""
        return self.manifest.label


class ModelRegistry:
    """Reads models from one folder."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is read before `resolve`."""
        self._folder = folder

    def resolve(self, name: str, version: str | None = None) -> ModelFiles:
        """Read and check one version of a model, by default the one that `current` names.

        Raises:
            EngineError: A file is missing, unreadable or does not match the manifest, or the model was trained on other
                features than this build computes.
        """
        for text in (name, version):
            if text is not None and not _PLAIN.fullmatch(text):
                raise EngineError(f"model {text!r}: name and version must be plain words, they name folders")
        if version is None:
            version = self._current(name)
        folder = self._folder / name / version
        manifest = self._manifest(folder / MANIFEST_FILE, name, version)
        return ModelFiles(manifest, folder, self._onnx(folder / ONNX_FILE, manifest))

    def _current(self, name: str) -> str:
        path = self._folder / name / CURRENT_FILE
        version = (
            _read(path, f"publish a version of model {name!r} or name one in the configuration")
            .decode(errors="replace")
            .strip()
        )
        if not _PLAIN.fullmatch(version):
            raise EngineError(f"model file {path}: must hold the name of one version, holds {version!r}; write one")
        return version

    def _manifest(self, path: Path, name: str, version: str) -> Manifest:
        text = _read(path, "publish the model again")
        try:
            manifest = msgspec.json.decode(text, type=Manifest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise EngineError(
                f"model file {path}: must be a manifest, is not: {error}; publish the model again"
            ) from error
        fault = None
        if manifest.format != MANIFEST_FORMAT:
            fault = f"format must be {MANIFEST_FORMAT}, is {manifest.format}; publish the model with this build"
        elif (manifest.name, manifest.version) != (name, version):
            fault = f"must describe {name}@{version} as its folder says, describes {manifest.label}; move or correct it"
        elif input_fault := manifest.input_fault():
            fault = f"{input_fault}; train the model on this build's rows or run the build it was trained for"
        elif normalisation_fault := manifest.normalisation.fault():
            fault = f"normalisation {normalisation_fault}; publish the model again"
        if fault is not None:
            raise EngineError(f"model file {path}: {fault}")
        return manifest

    def _onnx(self, path: Path, manifest: Manifest) -> bytes:
        onnx = _read(path, "publish the model again")
        if len(onnx) != manifest.onnx_bytes:
            raise EngineError(
                f"model file {path}: must have {manifest.onnx_bytes} bytes as its manifest says, has {len(onnx)}; "
                "publish the model again"
            )
        found = hashlib.sha256(onnx).hexdigest()
        if found != manifest.onnx_sha256:
            raise EngineError(
                f"model file {path}: must have SHA-256 {manifest.onnx_sha256} as its manifest says, has {found}; "
                "publish the model again"
            )
        return onnx


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(f"model file {path}: must be readable, was not: {error.strerror}; {remedy}") from error
