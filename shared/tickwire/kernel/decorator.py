"""The decorator of every compiled kernel: nopython, GIL released, explicit signature, cached by import closure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from tickwire.kernel.cache import cache_for

F = TypeVar("F", bound=Callable[..., Any])


def kernel(signature: Any, **options: Any) -> Callable[[F], F]:
    """Compile a function at import for one explicit signature, with the GIL released.

    Args:
        signature: A Numba signature, as text (`"int64(uint64[::1], int64)"`) or as types.
        options: Further `numba.njit` options (`error_model`, `fastmath`, ...).
    """

    def decorate(function: F) -> F:
        folder = cache_for(function.__module__)
        if folder is not None:
            numba.config.CACHE_DIR = str(folder)
        options.setdefault("error_model", "numpy")
        compiled: F = numba.njit(signature, nogil=True, cache=folder is not None, **options)(function)
        return compiled

    return decorate


def inlined(function: F) -> F:
    """Compile a function without a signature of its own, into each kernel that calls it."""
    compiled: F = numba.njit(nogil=True, inline="never", error_model="numpy")(function)
    return compiled
