"""The decorator of every compiled kernel: nopython, GIL released, explicit signature, cached by import closure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from tickwire.kernel.cache import cache_for
from tickwire.kernel.machine_code import MachineCode

_njit: Any = numba.njit  # its stubs lack some of its options
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Without Numba's runtime a kernel that allocates does not compile, and arrays that are passed on are not counted: each
count is a locked instruction, which waits for all stores before it."""
Kernel = Callable[..., Any]
"""A compiled function. Its types are the signature's; a type checker sees any."""


def kernel(signature: Any, **options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function at import for one explicit signature, with the GIL released.

    Args:
        signature: A Numba signature, as text (`"int64(uint64[::1], int64)"`) or as types.
        options: Further `numba.njit` options (`error_model`, `fastmath`, ...).
    """

    def decorate(function: Kernel) -> Kernel:
        compiled: Any = _njit(**{**_OPTIONS, **options})(function)
        folder = cache_for(function.__module__)
        if folder is not None and function.__closure__ is None:  # what a kernel closes over is not in its folder's name
            compiled._cache = MachineCode(function, folder)
        compiled.compile(signature)
        compiled.disable_compile()
        kernel: Kernel = compiled
        return kernel

    return decorate


def inlined(function: Kernel) -> Kernel:
    """Compile a function without a signature of its own, into each kernel that calls it; not callable from Python.

    Entry points for Python and C would take most of the time of compiling it.
    """
    compiled: Kernel = _njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled
