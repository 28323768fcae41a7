"""Engines as files: `<version>/engines/<fingerprint>/{model.plan,manifest.json,inspector.json}`.

Whatever is wrong with a plan is said before a byte of it reaches TensorRT, whose own messages mislead and which may
take the process down.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tickwire.errors import EngineError
from tickwire.models.engine_manifest import ENGINE_FORMAT, EngineManifest, Machine, Precision
from tickwire.models.manifest import feature_hash_text
from tickwire.records.features import FEATURE_NAMES

ENGINES_FOLDER = "engines"
PLAN_FILE = "model.plan"
ENGINE_MANIFEST_FILE = "manifest.json"
INSPECTOR_FILE = "inspector.json"
_REBUILD = "build the engine again (tickwire model build)"


class EngineFiles:
    """The engines of one version of a model."""

    def __init__(self, version_folder: Path) -> None:
        """Name the version's folder; nothing is read yet."""
        self._folder = version_folder / ENGINES_FOLDER

    def fingerprints(self) -> list[str]:
        """Return the names of the engines that are there, sorted."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if not path.name.startswith("."))

    def manifest(self, fingerprint: str) -> EngineManifest:
        """Read one engine's manifest.

        Raises:
            EngineError: It is missing or not a manifest.
        """
        path = self._folder / fingerprint / ENGINE_MANIFEST_FILE
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=EngineManifest)
        except OSError as error:
            raise EngineError(f"engine file {path}: must be readable: {error.strerror}; {_REBUILD}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise EngineError(f"engine file {path}: must be an engine's manifest: {error}; {_REBUILD}") from error
        if manifest.format != ENGINE_FORMAT:
            raise EngineError(f"engine file {path}: format must be {ENGINE_FORMAT}, is {manifest.format}; {_REBUILD}")
        return manifest

    def resolve(
        self, machine: Machine, precision: Precision, source_sha256: str, buckets: Sequence[int]
    ) -> tuple[EngineManifest, bytes]:
        """Return the engine for this machine, checked.

        Args:
            machine: Where it is to run.
            precision: Of the graph.
            source_sha256: Of the model's `model.onnx`.
            buckets: Batch sizes that it must have.

        Raises:
            EngineError: There is none that may run here; says of each one of this precision why not.
        """
        reasons = []
        for fingerprint in self.fingerprints():
            manifest = self.manifest(fingerprint)
            if manifest.precision != precision:
                continue
            try:
                return manifest, self.check(fingerprint, manifest, machine, source_sha256, buckets)
            except EngineError as error:
                reasons.append(str(error))
        raise EngineError(
            f"engines in {self._folder}: must have one of precision {precision} for this machine; {_REBUILD}"
            + "".join(f"\n  {reason}" for reason in reasons)
        )

    def check(
        self, fingerprint: str, manifest: EngineManifest, machine: Machine, source_sha256: str, buckets: Sequence[int]
    ) -> bytes:
        """Return the plan's bytes if it may run on this machine for this model.

        Raises:
            EngineError: It may not; names what differs.
        """
        if difference := manifest.machine.difference(machine):
            raise EngineError(f"engine {fingerprint}: was built for {difference}; {_REBUILD}")
        if manifest.source_sha256 != source_sha256:
            raise EngineError(
                f"engine {fingerprint}: was built from a graph with SHA-256 {manifest.source_sha256}, the model's is "
                f"{source_sha256}; {_REBUILD}"
            )
        if manifest.feature_names != FEATURE_NAMES or manifest.feature_hash != feature_hash_text():
            raise EngineError(f"engine {fingerprint}: was built for other features or another order; {_REBUILD}")
        missing = sorted(set(buckets) - {run.bucket for run in manifest.buckets})
        if missing:
            raise EngineError(f"engine {fingerprint}: must have bucket {', '.join(map(str, missing))}; {_REBUILD}")
        if not manifest.passed:
            raise EngineError(f"engine {fingerprint}: has not passed the gates; tickwire model validate judges it")
        return self.plan(fingerprint, manifest)

    def plan(self, fingerprint: str, manifest: EngineManifest) -> bytes:
        """Read a plan and compare it with its manifest.

        Raises:
            EngineError: It is missing, empty, cut or changed.
        """
        path = self._folder / fingerprint / PLAN_FILE
        try:
            plan = path.read_bytes()
        except OSError as error:
            raise EngineError(f"plan {path}: must be readable: {error.strerror}; {_REBUILD}") from error
        if len(plan) != manifest.plan_bytes:
            raise EngineError(f"plan {path}: must have {manifest.plan_bytes} bytes, has {len(plan)}; {_REBUILD}")
        if hashlib.sha256(plan).hexdigest() != manifest.plan_sha256:
            raise EngineError(f"plan {path}: must have the SHA-256 of its manifest, has another; {_REBUILD}")
        return plan

    def write(self, manifest: EngineManifest, plan: bytes, inspector: str) -> Path:
        """Put an engine in its place, whole or not at all; one of the same fingerprint is replaced."""
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / manifest.fingerprint
        temporary = self._folder / f".{manifest.fingerprint}.{uuid.uuid4().hex[:8]}"
        temporary.mkdir()
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
        for name, content in (
            (PLAN_FILE, plan),
            (ENGINE_MANIFEST_FILE, text),
            (INSPECTOR_FILE, inspector.encode()),
        ):
            with (temporary / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if place.exists():
            old = self._folder / f".old.{uuid.uuid4().hex[:8]}"
            place.rename(old)
            temporary.rename(place)
            shutil.rmtree(old)
        else:
            temporary.rename(place)
        return place
