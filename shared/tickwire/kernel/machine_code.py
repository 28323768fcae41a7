"""Machine code of one kernel on disk: a file for each signature, in the folder of the kernel's module.

Numba's own cache refuses a folder that it cannot write and finds code by the path of its source. This one also loads
from a read-only install, and from an image that was built in another folder. The folder stands for everything that code
depends on (see `tickwire.kernel.cache`), a file's name for the function and the signature.

I1  A file is whole or absent: it is written aside and renamed.
I2  Code that cannot be read is compiled, code that cannot be written is not kept; neither is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps


class MachineCode(_Cache):
    """Where a Numba dispatcher looks for code before it compiles, and leaves it afterwards."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        """Look in `folder`, which is the module's alone."""
        self._folder = folder
        self._name = f"{function.__qualname__}-{function.__code__.co_firstlineno}"
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function of a signature, None if it is not here (I2)."""
        if not self._enabled:
            return None
        try:
            content = self._path(sig).read_bytes()
        except OSError:
            return None
        target_context.refresh()
        parts = pickle.loads(content)  # noqa: S301 - who may write the cache may write what runs
        return CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function (I1, I2); code with addresses of this process in it is not kept."""
        if not self._enabled or data.library.has_dynamic_globals:
            return
        path = self._path(sig)
        aside = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            aside.write_bytes(dumps(data._reduce()))  # type: ignore[no-untyped-call]
            aside.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()

    def enable(self) -> None:
        """Load and keep code."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor keep code."""
        self._enabled = False

    def flush(self) -> None:
        """Forget nothing: other code has another folder."""

    def _path(self, sig: Any) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(str(sig).encode()).hexdigest()[:16]}.code"
