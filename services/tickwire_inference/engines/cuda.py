"""The CUDA context of this process and the one check that every driver call goes through.

PyCUDA holds the device's primary context; cuda-bindings, which has the graph calls that PyCUDA lacks, works on the same
one. Both are imported only where a GPU engine is configured.

I1  A thread that works on the GPU does so inside `CudaContext.current()`: the context is pushed before and popped on
    every path, since PyCUDA aborts a process that ends with a context pushed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tickwire.errors import EngineError


def check(result: Any, what: str) -> Any:
    """Return what a call of cuda-bindings gave behind its error code.

    Args:
        result: The tuple that the call returned: error code, then its values.
        what: The call, for the error text.

    Raises:
        EngineError: The code is not CUDA_SUCCESS.
    """
    error, *values = result
    if int(error) != 0:
        raise EngineError(f"CUDA: {what} must succeed, gave {getattr(error, 'name', error)}")
    return values[0] if len(values) == 1 else tuple(values)


class CudaContext:
    """The primary context of one GPU."""

    def __init__(self, device: int = 0) -> None:
        """Take the device's primary context; it is not current afterwards.

        Raises:
            EngineError: PyCUDA is not installed, there is no driver, or no such GPU.
        """
        try:
            import pycuda.driver as driver
        except ImportError as error:
            raise EngineError(
                f"GPU: PyCUDA must be installed, was not importable: {error}; pip install 'tickwire[gpu]'"
            ) from error
        self.driver: Any = driver
        try:
            driver.init()
            found = driver.Device.count()
            if device >= found:
                raise EngineError(f"GPU: device {device} must exist, this machine has {found}")
            self._device = driver.Device(device)
            self._context = self._device.retain_primary_context()
        except driver.Error as error:
            raise EngineError(
                f"GPU: the driver must start, did not: {error}; look at nvidia-smi, or configure another engine"
            ) from error
        self.gpu: str = self._device.name()
        self.compute_capability = "{}.{}".format(*self._device.compute_capability())
        self.driver_version = _version(driver.get_driver_version())

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context this thread's; it is popped however the block ends (I1)."""
        self._context.push()
        try:
            yield
        finally:
            self.driver.Context.pop()

    def push(self) -> None:
        """Make the context this thread's until `pop`; for a thread that lives as long as its engine."""
        self._context.push()

    def pop(self) -> None:
        """Undo `push`."""
        self.driver.Context.pop()

    def close(self) -> None:
        """Release the context; all that was allocated in it must be freed before."""
        self._context.detach()


def _version(number: int) -> str:
    # The driver gives 12080 for CUDA 12.8.
    return f"{number // 1000}.{number % 1000 // 10}"
