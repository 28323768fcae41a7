"""TensorRT, whichever is installed: the one module that knows in what its versions differ.

| | 8.6 | 10, 11 | TensorRT-RTX 1.x |
|---|---|---|---|
| package | `tensorrt` | `tensorrt` | `tensorrt_rtx_bindings` |
| batch in the network | EXPLICIT_BATCH flag | always | always |
| precision | builder flags FP16, INT8 permit what the graph asks for | in the graph: STRONGLY_TYPED | in the graph |
| tactic sources | none: no cuBLAS, no cuDNN | default | default |
| target | the GPU present | the GPU present | compute capabilities, no GPU needed to build |
| progress monitor | from 8.6 | yes | yes |
| timing cache | yes | yes | none |

Named tensors, profiles, the inspector and `build_serialized_network` are common to all. Importing this
module imports none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tickwire.errors import EngineError

TENSORRT = "tensorrt"
TENSORRT_RTX = "tensorrt_rtx"
_MODULES = {TENSORRT: "tensorrt", TENSORRT_RTX: "tensorrt_rtx_bindings"}
_OLD_MAJOR = 8
_DEFAULT_LEVEL = 3

Progress = Callable[[str, int, int], None]
"""Told (phase, done, total); total is 0 when a phase ends."""


@dataclass(frozen=True)
class BuildSettings:
    """What a build may use; part of the engine's manifest."""

    fp16: bool
    """Whether the graph has FP16 tensors."""
    int8: bool
    """Whether the graph has Q/DQ nodes."""
    workspace_mib: int = 1024
    level: int = _DEFAULT_LEVEL
    """Builder optimisation level, 0 to 5."""
    target: str | None = None
    """Compute capability to build for ("8.9") where the library can build for another GPU; else the GPU present."""


class TensorRtLibrary:
    """One TensorRT. `messages` keeps the warnings and errors since the last `begin`."""

    def __init__(self, name: str, module: Any) -> None:
        """Wrap an imported package."""
        self.name = name
        self.module = module
        self.version: str = module.__version__
        self.major = int(self.version.split(".")[0])
        self.messages: list[str] = []
        self.logger = _logger(module, self.messages)

    @property
    def builds_for_others(self) -> bool:
        """Whether a target other than the GPU present can be named."""
        return self.name == TENSORRT_RTX

    @property
    def has_timing_cache(self) -> bool:
        """Whether timings of earlier builds are of use; TensorRT-RTX times nothing before it runs."""
        return self.name == TENSORRT

    @property
    def _is_old(self) -> bool:
        return self.name == TENSORRT and self.major <= _OLD_MAJOR

    def begin(self) -> None:
        """Forget what was said so far."""
        self.messages.clear()

    def builder(self) -> Any:
        """Return a builder.

        Raises:
            EngineError: TensorRT cannot start, mostly for want of a GPU.
        """
        try:
            return self.module.Builder(self.logger)
        except Exception as error:
            raise EngineError(
                f"{self.name} {self.version}: a builder must start, did not: {self.said(error)}"
            ) from error

    def network(self, builder: Any) -> Any:
        """Return an empty network whose precision is what the graph says."""
        flags = self.module.NetworkDefinitionCreationFlag
        if self._is_old:
            return builder.create_network(1 << int(flags.EXPLICIT_BATCH))
        return builder.create_network(1 << int(flags.STRONGLY_TYPED))

    def configure(self, builder: Any, settings: BuildSettings, progress: Progress | None) -> Any:
        """Return a builder configuration."""
        module, config = self.module, builder.create_builder_config()
        config.set_memory_pool_limit(module.MemoryPoolType.WORKSPACE, settings.workspace_mib << 20)
        config.builder_optimization_level = settings.level
        config.profiling_verbosity = module.ProfilingVerbosity.DETAILED
        config.clear_flag(module.BuilderFlag.TF32)  # FP32 means FP32
        if self._is_old:
            config.set_tactic_sources(0)
            if settings.fp16:
                config.set_flag(module.BuilderFlag.FP16)
            if settings.int8:
                config.set_flag(module.BuilderFlag.INT8)
        if settings.target is not None:
            self._aim(config, settings.target)
        if progress is not None and hasattr(module, "IProgressMonitor"):
            config.progress_monitor = _monitor(module, progress)
        return config

    def deserialise(self, plan: bytes) -> Any:
        """Return the engine of a plan.

        Raises:
            EngineError: This library or this GPU does not take it.
        """
        self.begin()
        engine = self.module.Runtime(self.logger).deserialize_cuda_engine(plan)
        if engine is None:
            raise EngineError(f"plan of {len(plan)} bytes: {self.name} {self.version} must load it: {self.said()}")
        return engine

    def said(self, error: Exception | None = None) -> str:
        """Return the last things TensorRT complained of, for an error text."""
        said = [*self.messages[-3:], *([str(error)] if error is not None else [])]
        return "; ".join(said) or "it gave no reason"

    def _aim(self, config: Any, target: str) -> None:
        if not self.builds_for_others:
            raise EngineError(f"target {target}: {self.name} {self.version} builds for the GPU present only")
        name = f"SM{target.replace('.', '')}"
        known = self.module.ComputeCapability.__members__
        if name not in known:
            names = ", ".join(sorted(text for text in known if text.startswith("SM")))
            raise EngineError(f"target {target}: must be one of {names} for {self.name} {self.version}")
        config.num_compute_capabilities = 1
        config.set_compute_capability(known[name], 0)


def load_library(name: str | None = None) -> TensorRtLibrary:
    """Import TensorRT.

    Args:
        name: `tensorrt` or `tensorrt_rtx`; the first that is installed if None.

    Raises:
        EngineError: It is not installed.
    """
    faults = []
    for candidate in (name,) if name is not None else (TENSORRT, TENSORRT_RTX):
        try:
            return TensorRtLibrary(candidate, importlib.import_module(_MODULES[candidate]))
        except ImportError as error:
            faults.append(str(error))
    raise EngineError(
        f"TensorRT: must be installed, was not importable ({'; '.join(faults)}); pip install 'tickwire[gpu]' where an "
        "NVIDIA GPU is, or 'tickwire[rtx]' to build for RTX GPUs"
    )


def _logger(module: Any, messages: list[str]) -> Any:
    class Logger(module.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            module.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            if severity <= module.ILogger.Severity.WARNING:
                messages.append(message)

    return Logger()


def _monitor(module: Any, progress: Progress) -> Any:
    class Monitor(module.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            module.IProgressMonitor.__init__(self)
            self._steps: dict[str, int] = {}

        def phase_start(self, phase: str, _parent: str | None, steps: int) -> None:
            self._steps[phase] = steps
            progress(phase, 0, steps)

        def step_complete(self, phase: str, step: int) -> bool:
            progress(phase, step + 1, self._steps.get(phase, 0))
            return True

        def phase_finish(self, phase: str) -> None:
            progress(phase, self._steps.pop(phase, 0), 0)

    return Monitor()
