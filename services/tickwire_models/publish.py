"""Writing a version of a model into the registry's folder."""

from __future__ import annotations

import os
from pathlib import Path

from tickwire.models import Manifest
from tickwire.models.registry import CURRENT_FILE, MANIFEST_FILE, ONNX_FILE


def publish(folder: Path, manifest: Manifest, onnx: bytes) -> Path:
    """Write model and manifest, then make this version the current one; return the version's folder.

    `current` is replaced atomically and last: whoever reads it finds a complete version.
    """
    version = folder / manifest.name / manifest.version
    version.mkdir(parents=True, exist_ok=True)
    _replace(version / ONNX_FILE, onnx)
    _replace(version / MANIFEST_FILE, manifest.encode())
    _replace(folder / manifest.name / CURRENT_FILE, f"{manifest.version}\n".encode())
    return version


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
