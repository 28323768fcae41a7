"""Compiled kernels: the one decorator they all use and the cache they are kept in."""

from tickwire.kernel.cache import CompileProgress, cache_root, compile_kernels
from tickwire.kernel.decorator import inlined, kernel

__all__ = ["CompileProgress", "cache_root", "compile_kernels", "inlined", "kernel"]
