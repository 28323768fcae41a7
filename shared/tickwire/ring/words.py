"""Atomic words of shared memory, as LLVM atomics inside Numba kernels.

This is the only module that touches shared words. Each function takes an address, emits one instruction with the stated
memory order, and is inlined into the kernel that calls it. Addresses are `uint64`; 8-byte words are 8-byte aligned,
4-byte words 4-byte aligned. On x86-64 acquire loads and release stores are plain moves; on aarch64 they are ldar/stlr.

Futexes are the shared kind (no FUTEX_PRIVATE_FLAG): waiter and waker map the word at different addresses, and a
read-only mapping is enough to wait and to wake. Source: futex(2), futex_waitv in Linux 5.16.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_X86 = platform.machine() in ("x86_64", "AMD64")
_SYS_FUTEX = 202 if _X86 else 98
_SYS_FUTEX_WAITV = 449
_FUTEX_WAIT = 0
_FUTEX_WAKE = 1
_FUTEX2_SIZE_U32 = 2
_CLOCK_MONOTONIC = 1
_CLOCK_REALTIME = 0
_ENOSYS = 38

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)

WAITV_MISSING = -2
"""Result of `futex_wait_two` where the kernel has no futex_waitv (Linux before 5.16)."""


def _load(order: str, bits: int) -> Callable[..., Any]:
    result = types.uint64 if bits == 64 else types.uint32

    def build(_typing: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return builder.load_atomic(pointer, order, bits // 8)

        return result(types.uint64), generate

    return intrinsic(build)


def _store(order: str, bits: int) -> Callable[..., Any]:
    value_type = types.uint64 if bits == 64 else types.uint32

    def build(_typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            builder.store_atomic(args[1], pointer, order, bits // 8)
            return context.get_dummy_value()

        return types.void(types.uint64, value_type), generate

    return intrinsic(build)


def _fence(order: str) -> Callable[..., Any]:
    def build(_typing: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
            builder.fence(order)
            return context.get_dummy_value()

        return types.void(), generate

    return intrinsic(build)


load_acquire = _load("acquire", 64)
load_relaxed = _load("monotonic", 64)
store_release = _store("release", 64)
store_relaxed = _store("monotonic", 64)
store_seq_cst = _store("seq_cst", 64)
load_acquire_32 = _load("acquire", 32)
load_relaxed_32 = _load("monotonic", 32)
store_release_32 = _store("release", 32)
store_relaxed_32 = _store("monotonic", 32)
store_seq_cst_32 = _store("seq_cst", 32)
fence_acquire = _fence("acquire")
fence_release = _fence("release")
fence_seq_cst = _fence("seq_cst")


@intrinsic
def exchange_32(_typing: Any, address: Any, value: Any) -> Any:
    """Store a 4-byte word and return what it held, sequentially consistent."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], _I32.as_pointer())
        return builder.atomic_rmw("xchg", pointer, args[1], "seq_cst")

    return types.uint32(types.uint64, types.uint32), generate


@intrinsic
def pause(_typing: Any) -> Any:
    """Tell the processor that this is a spin loop (x86 pause, aarch64 yield)."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [])
        if _X86:
            builder.call(cgutils.get_or_insert_function(builder.module, function, "llvm.x86.sse2.pause"), [])
        else:
            builder.asm(function, "yield", "~{memory}", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), generate


def _clock(clock_id: int) -> Callable[..., Any]:
    def build(_typing: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
            time = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
            function = ir.FunctionType(_I32, [_I32, _I64.as_pointer()])
            clock_gettime = cgutils.get_or_insert_function(builder.module, function, "clock_gettime")
            seconds = builder.bitcast(time, _I64.as_pointer())
            builder.call(clock_gettime, [_I32(clock_id), seconds])
            nanoseconds = builder.gep(seconds, [_I32(1)])
            return builder.add(builder.mul(builder.load(seconds), _I64(1_000_000_000)), builder.load(nanoseconds))

        return types.int64(), generate

    return intrinsic(build)


monotonic_ns = _clock(_CLOCK_MONOTONIC)
realtime_ns = _clock(_CLOCK_REALTIME)


def _syscall(builder: Any, number: int, args: list[Any]) -> Any:
    function = ir.FunctionType(_I64, [_I64] * 7)
    syscall = cgutils.get_or_insert_function(builder.module, function, "syscall")
    padded = args + [_I64(0)] * (6 - len(args))
    return builder.call(syscall, [_I64(number), *padded])


def _store_timespec(builder: Any, slot: Any, nanoseconds: Any) -> Any:
    words = builder.bitcast(slot, _I64.as_pointer())
    builder.store(builder.sdiv(nanoseconds, _I64(1_000_000_000)), words)
    builder.store(builder.srem(nanoseconds, _I64(1_000_000_000)), builder.gep(words, [_I32(1)]))
    return builder.ptrtoint(words, _I64)


@intrinsic
def futex_wait(_typing: Any, address: Any, expected: Any, timeout_ns: Any) -> Any:
    """Sleep while the word holds `expected`, at most `timeout_ns`; return 0 when woken, -1 otherwise."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        slot = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        timeout = _store_timespec(builder, slot, args[2])
        return _syscall(builder, _SYS_FUTEX, [args[0], _I64(_FUTEX_WAIT), builder.zext(args[1], _I64), timeout])

    return types.int64(types.uint64, types.uint32, types.int64), generate


@intrinsic
def futex_wake_all(_typing: Any, address: Any) -> Any:
    """Wake every waiter of the word; return how many there were."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _syscall(builder, _SYS_FUTEX, [args[0], _I64(_FUTEX_WAKE), _I64(0x7FFFFFFF)])

    return types.int64(types.uint64), generate


@intrinsic
def futex_wait_two(
    _typing: Any, address_a: Any, expected_a: Any, address_b: Any, expected_b: Any, deadline_ns: Any
) -> Any:
    """Sleep while both words hold what is expected, until the monotonic `deadline_ns`.

    Returns the index of the word that was woken, -1 (changed, timeout, signal) or `WAITV_MISSING`.
    """

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        waiters = cgutils.alloca_once(builder, ir.ArrayType(_I64, 6))
        words = builder.bitcast(waiters, _I64.as_pointer())
        for i in range(2):
            builder.store(builder.zext(args[2 * i + 1], _I64), builder.gep(words, [_I32(3 * i)]))
            builder.store(args[2 * i], builder.gep(words, [_I32(3 * i + 1)]))
            builder.store(_I64(_FUTEX2_SIZE_U32), builder.gep(words, [_I32(3 * i + 2)]))
        slot = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        deadline = _store_timespec(builder, slot, args[4])
        address = builder.ptrtoint(words, _I64)
        result = _syscall(builder, _SYS_FUTEX_WAITV, [address, _I64(2), _I64(0), deadline, _I64(_CLOCK_MONOTONIC)])
        location = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I32.as_pointer(), []), "__errno_location"
        )
        errno = builder.load(builder.call(location, []))
        failed = builder.icmp_signed("<", result, _I64(0))
        missing = builder.and_(failed, builder.icmp_signed("==", errno, _I32(_ENOSYS)))
        return builder.select(missing, _I64(WAITV_MISSING), result)

    signature = types.int64(types.uint64, types.uint32, types.uint64, types.uint32, types.int64)
    return signature, generate


@intrinsic
def address_of(_typing: Any, array: Any) -> Any:
    """Return the address of an array's first element; the caller keeps the array alive."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(view.data, _I64)

    return types.uint64(array), generate


@intrinsic
def leading_zeros(_typing: Any, value: Any) -> Any:
    """Return the number of zero bits above the highest one of a non-zero word."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate
