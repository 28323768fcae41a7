"""The manifest of one engine: for which machine, from which graph and with which library a plan was built."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tickwire.models.manifest import Sha256

ENGINE_FORMAT = 1

Precision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")

_UNPLAIN = re.compile(r"[^A-Za-z0-9.]+")


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a plan was built, or is to run. A plan runs only where all of it is the same."""

    library: str
    """`tensorrt` or `tensorrt_rtx`."""
    library_version: str
    gpu: str
    """Name of the GPU; empty for a plan that was built for a compute capability only."""
    compute_capability: str
    """As "9.0"."""
    driver: str
    """CUDA version of the driver, as "12.8"; empty as `gpu` may be."""

    def difference(self, other: Machine) -> str | None:
        """Return in what a plan for this machine does not suit another one, None if it does."""
        for field in ("library", "library_version", "compute_capability", "gpu", "driver"):
            ours, theirs = getattr(self, field), getattr(other, field)
            if ours and ours != theirs:
                return f"{field.replace('_', ' ')} {ours!r}, this machine has {theirs!r}"
        return None


class BucketRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the batches of one bucket run."""

    bucket: Annotated[int, Meta(ge=1)]
    profile: Annotated[int, Meta(ge=0)]
    """Index of the optimisation profile."""
    run_size: Annotated[int, Meta(ge=1)]
    """Batch size that really runs; more than the bucket where a plan is wrong or slow at the bucket's own size."""


class EngineManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is known about a plan."""

    format: int = ENGINE_FORMAT
    machine: Machine
    precision: Precision
    onnx_sha256: Sha256
    """Of the graph that was built: the model's own, or its FP16 or Q/DQ form."""
    source_sha256: Sha256
    """Of the model's own graph, `model.onnx`."""
    feature_hash: str
    feature_names: tuple[str, ...]
    window_rows: int
    buckets: tuple[BucketRun, ...]
    plan_sha256: Sha256
    plan_bytes: Annotated[int, Meta(gt=0)]
    settings: dict[str, Any] = {}
    """Workspace, optimisation level, seconds the build took."""
    passed: bool = False
    """Whether the accuracy gates were passed; a plan that was not judged has not passed."""
    report: dict[str, Any] = {}
    """What the gates measured."""

    @property
    def fingerprint(self) -> str:
        """Name of the engine's folder: GPU, compute capability, driver, library, precision, graph."""
        machine = self.machine
        parts = (
            machine.gpu or "any",
            f"sm{machine.compute_capability}",
            f"cuda{machine.driver}" if machine.driver else "",
            f"{machine.library}{machine.library_version}",
            self.precision,
            self.onnx_sha256[:12],
        )
        return "_".join(_UNPLAIN.sub("-", part).strip("-").lower() for part in parts if part)
