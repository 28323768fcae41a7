"""Where compiled kernels are kept, and how they are compiled before any process starts.

Numba keys its cache by the time stamp of the one file that holds a function: change a callee or a constant in another
module and it goes on serving the old machine code. Tickwire therefore gives every kernel module a cache folder of its
own, named by a hash of that module, of every tickwire module it imports, directly or not, and of what compiled it for
which processor.

I1  What is in a folder was compiled from this module with this import closure, by this toolchain for this processor.
I2  A folder that can be read is used, also where it cannot be written. Where there is none, kernels are compiled in
    memory: slower to start, never an error.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core.registry import cpu_target

_ROOTS = ("tickwire", "tickwire_ingest", "tickwire_features", "tickwire_inference", "tickwire_router")
_MARK = "complete"


def cache_root() -> Path:
    """Return the folder that holds all kernel caches: `$TICKWIRE_KERNEL_CACHE` or one in the user's cache folder."""
    configured = os.environ.get("TICKWIRE_KERNEL_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tickwire" / "kernels"


def cache_folder(module_name: str) -> Path:
    """Return the cache folder of one kernel module, named by the hash of its import closure (I1)."""
    return cache_root() / _closure_hash(module_name)


def cache_for(module_name: str) -> Path | None:
    """Return the cache folder of a kernel module, None where there is none (I2).

    Kernels outside the distribution (tests, benchmarks, a strategy's own) are not cached: their closure is not known.
    """
    if not _ours(module_name):
        return None
    folder = cache_folder(module_name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def can_store(module_name: str) -> bool:
    """Say whether kernels of a module that are compiled now would be kept."""
    folder = cache_for(module_name)
    return folder is not None and os.access(folder, os.W_OK)


def import_closure(module_name: str) -> frozenset[str]:
    """Return the tickwire modules that `module_name` imports, directly or not, itself included."""
    seen: set[str] = set()
    todo = [module_name]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        todo.extend(_imports(name) - seen)
    return frozenset(seen)


def is_compiled(module_name: str) -> bool:
    """Say whether all kernels of a module are in the cache."""
    return (cache_folder(module_name) / _MARK).exists()


def mark_compiled(module_name: str) -> None:
    """Note that all kernels of a module are in the cache; call it after the module was imported."""
    if can_store(module_name):
        (cache_folder(module_name) / _MARK).touch()


@functools.cache
def _closure_hash(module_name: str) -> str:
    # A process's modules do not change under it, so that one hash serves all kernels of a module.
    digest = hashlib.sha256(f"{module_name}\0{_toolchain()}".encode())
    for name in sorted(import_closure(module_name)):
        path = _source_path(name)
        if path is not None:
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _toolchain() -> str:
    processor = cpu_target.target_context.codegen().magic_tuple()
    return f"{sys.version}/{numba.__version__}/{llvmlite.__version__}/{np.__version__}/{processor}"


@functools.cache
def _source_path(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin)


@functools.cache
def _imports(name: str) -> frozenset[str]:
    path = _source_path(name)
    if path is None:
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0 and _ours(node.module):
            found.add(node.module)
            # `from package import submodule` names a module, `from module import name` does not.
            for alias in node.names:
                candidate = f"{node.module}.{alias.name}"
                if _is_module(candidate):
                    found.add(candidate)
    return frozenset(found)


def _is_module(name: str) -> bool:
    parent = _source_path(name.rpartition(".")[0])
    if parent is None or parent.name != "__init__.py":
        return False
    leaf = name.rpartition(".")[2]
    return (parent.parent / f"{leaf}.py").exists() or (parent.parent / leaf / "__init__.py").exists()


def _ours(name: str) -> bool:
    return name.partition(".")[0] in _ROOTS
