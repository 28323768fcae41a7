"""Judging one precision of a model: on ONNX Runtime anywhere, or its plan on the GPU that it was built for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from tickwire.errors import EngineError
from tickwire.models import ModelFiles
from tickwire.models.engine_files import EngineFiles
from tickwire.models.engine_manifest import EngineManifest, Machine, Precision
from tickwire.models.precisions import graph_of
from tickwire_inference.engines import OnnxRuntimeEngine
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.machine import machine_for, machine_here
from tickwire_inference.engines.plan import BucketPlan
from tickwire_inference.engines.tensorrt import TensorRtEngine
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary
from tickwire_models.building import BuiltEngine, sha256
from tickwire_models.dataset import Rows
from tickwire_models.evaluation_set import EvaluationSet, draw
from tickwire_models.gates import gates_for
from tickwire_models.validation import Floats, Report, reference_of, validate


class Judge:
    """Holds what one model is judged on, and the reference's answers to it."""

    def __init__(self, files: ModelFiles, sessions: Sequence[Rows], *, n_real: int = 256) -> None:
        """Draw the evaluation set and ask the reference.

        Raises:
            EngineError: There is nothing to judge on, or the reference does not load.
        """
        manifest = files.manifest
        self._files = files
        self.evaluation: EvaluationSet = draw(sessions, manifest.window_rows, manifest.normalisation, n_real=n_real)
        reference = OnnxRuntimeEngine(files)
        self._reference: Floats = reference_of(reference, self.evaluation)
        reference.close()

    def graph(self, precision: Precision) -> Report:
        """Judge a precision's graph on ONNX Runtime.

        Raises:
            EngineError: The graph is missing or does not load.
        """
        graph = graph_of(self._files, precision)
        return self._judge(OnnxRuntimeEngine(dataclasses.replace(self._files, onnx=graph)), precision)

    def plan(self, library: TensorRtLibrary, cuda: CudaContext, manifest: EngineManifest, plan: bytes) -> Report:
        """Judge a plan on the GPU present.

        Raises:
            EngineError: The plan is for another machine, or does not load.
        """
        if difference := manifest.machine.difference(machine_here(library, cuda)):
            raise EngineError(f"engine {manifest.fingerprint}: was built for {difference}")
        runs = tuple(BucketPlan(run.bucket, run.profile, run.run_size) for run in manifest.buckets)
        engine = TensorRtEngine(self._files.label, manifest.window_rows, library, cuda, plan, runs)
        return self._judge(engine, manifest.precision)

    def _judge(self, engine: OnnxRuntimeEngine | TensorRtEngine, precision: Precision) -> Report:
        try:
            gates = gates_for(self._files.manifest.gates, precision, self._files.label)
            return validate(engine, self._reference, self.evaluation, gates)
        finally:
            engine.close()


def describe(
    files: ModelFiles, precision: Precision, graph: bytes, built: BuiltEngine, machine: Machine
) -> EngineManifest:
    """Return the manifest of a plan that was just built; it has not passed the gates."""
    manifest = files.manifest
    return EngineManifest(
        machine=machine,
        precision=precision,
        onnx_sha256=sha256(graph),
        source_sha256=manifest.onnx_sha256,
        feature_hash=manifest.feature_hash,
        feature_names=manifest.feature_names,
        window_rows=manifest.window_rows,
        buckets=built.buckets,
        plan_sha256=sha256(built.plan),
        plan_bytes=len(built.plan),
        settings={**dataclasses.asdict(built.settings), "build_seconds": round(built.seconds, 1)},
    )


def target_machine(library: TensorRtLibrary, target: str | None) -> Machine:
    """Return the machine that a build is for: the one present, or any of a compute capability.

    Raises:
        EngineError: There is no GPU here and none was named.
    """
    if target is not None:
        return machine_for(library, target)
    cuda = CudaContext()
    try:
        return machine_here(library, cuda)
    finally:
        cuda.close()


def keep_verdict(
    store: EngineFiles, manifest: EngineManifest, plan: bytes, inspector: str, report: Report
) -> EngineManifest:
    """Enter a verdict in an engine's manifest; return it."""
    judged = msgspec.structs.replace(manifest, passed=report.passed, report=report.encoded())
    store.write(judged, plan, inspector)
    return judged
