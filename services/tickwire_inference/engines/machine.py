"""The machine that engines are built for and run on."""

from __future__ import annotations

from tickwire.models.engine_manifest import Machine
from tickwire_inference.engines.cuda import CudaContext
from tickwire_inference.engines.tensorrt_library import TensorRtLibrary


def machine_here(library: TensorRtLibrary, cuda: CudaContext) -> Machine:
    """Return this machine: library, GPU and driver."""
    return Machine(
        library=library.name,
        library_version=library.version,
        gpu=cuda.gpu,
        compute_capability=cuda.compute_capability,
        driver=cuda.driver_version,
    )


def machine_for(library: TensorRtLibrary, target: str) -> Machine:
    """Return any machine with a GPU of a compute capability, as far as a plan for it is bound."""
    return Machine(library=library.name, library_version=library.version, gpu="", compute_capability=target, driver="")
