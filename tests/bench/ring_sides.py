"""The two implementations that bench_ring.py compares, behind one interface: the shipped kernels, and the same in C."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import ring_kernels

from tickwire.ring import Consumer, Producer
from tickwire.ring.kernels import state as words_of


class KernelSide:
    """The shipped kernels, called from compiled loops."""

    def producer(self, end: Producer) -> Any:
        """What the loops take for a producer."""
        return end.state

    def consumer(self, end: Consumer) -> Any:
        """What the loops take for a consumer."""
        return end.state

    def __getattr__(self, name: str) -> Any:
        """The loops themselves."""
        return getattr(ring_kernels, name)


class _End(ctypes.Structure):
    # `end_t` of ring_peer.c.
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("data", "control", "capacity", "slot_bytes", "next", "gate", "entry", "cursor", "consumers")
    ]


class CSide:
    """ring_peer.c on the same segments."""

    def __init__(self, library: Path) -> None:
        """Load the library that `bench_ring.build_peer` made."""
        self._library = ctypes.CDLL(str(library))
        self._library.c_produce.restype = ctypes.c_int64
        self._library.c_consume.restype = ctypes.c_uint64

    def producer(self, end: Producer) -> Any:
        """What the loops take for a producer."""
        s = [int(word) for word in end.state]
        return _End(
            data=s[words_of.P_DATA],
            control=s[words_of.P_CONTROL],
            capacity=s[words_of.P_CAPACITY],
            slot_bytes=s[words_of.P_SLOT_BYTES],
            next=s[words_of.P_NEXT],
            gate=s[words_of.P_GATE],
        )

    def consumer(self, end: Consumer) -> Any:
        """What the loops take for a consumer."""
        s = [int(word) for word in end.state]
        return _End(
            data=s[words_of.C_DATA],
            control=s[words_of.C_CONTROL],
            capacity=s[words_of.C_CAPACITY],
            slot_bytes=s[words_of.C_SLOT_BYTES],
            entry=s[words_of.C_ENTRY],
            cursor=s[words_of.C_CURSOR],
        )

    def __getattr__(self, name: str) -> Any:
        """The loops themselves: the same arguments as the kernels'."""
        function = getattr(self._library, f"c_{name}")

        def call(*arguments: Any) -> int:
            return int(function(*map(_convert, arguments)))

        return call


def _convert(argument: Any) -> Any:
    if isinstance(argument, _End):
        return ctypes.byref(argument)
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_int64(argument)
