"""Compiled kernels: the one decorator they all use, the cache they are kept in, and compiling them in advance."""

from tickwire.kernel.cache import cache_root, is_compiled
from tickwire.kernel.compiling import CompileProgress, compile_kernels
from tickwire.kernel.decorator import inlined, kernel

__all__ = ["CompileProgress", "cache_root", "compile_kernels", "inlined", "is_compiled", "kernel"]
