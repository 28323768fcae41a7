"""The owner of a prefix: creates its segments, removes them, and knows whether anybody is alive on them."""

from __future__ import annotations

import contextlib
import os

import numpy as np

from tickwire.errors import RingError, RingNotFoundError, TickwireError
from tickwire.records import SymbolTable
from tickwire.ring.header import create_ring, request_stop
from tickwire.ring.segment import Segment, list_segments, segment_name, unlink
from tickwire.ring.symbol_segment import publish_symbols
from tickwire.runtime.owner import OWNER_LOCK_AT, OWNER_NAME
from tickwire.topology import RINGS
from tickwire.windows.header import open_or_create

OWNER_MAGIC = int.from_bytes(b"TWOWNR01", "little")
_OWNER_BYTES = 64
_OWNER_MODE = 0o640
_PID_AT = 16


class PrefixOwner:
    """Holds a prefix for as long as it is open: one `tickwire up` a prefix, by a lock that dies with the process."""

    def __init__(self, prefix: str) -> None:
        """Take the prefix; remove what a dead run left behind.

        Raises:
            RingError: A live process has the prefix; names it.
        """
        self.prefix = prefix
        self._segment = take_prefix(prefix)
        alive = live_segments(prefix)
        if alive:
            self._segment.close()
            raise RingError(f"prefix {prefix!r}: processes of another run are alive on {', '.join(alive)}; stop them")
        self.removed_stale = self._remove_all()

    def create(self, symbols: SymbolTable) -> None:
        """Create symbol table, rings and windows store.

        Raises:
            RingError: No memory or no permission.
        """
        publish_symbols(self.prefix, symbols)
        for spec in RINGS:
            create_ring(self.prefix, spec, symbols.hash)
        open_or_create(self.prefix, len(symbols), symbols.hash).close()

    def release(self) -> None:
        """Tell strategies that the run is over, remove every segment of the prefix and give it back."""
        for spec in RINGS:
            request_stop(self.prefix, spec)
        self._remove_all()
        unlink(self._segment.name)
        self._segment.close()

    def _remove_all(self) -> list[str]:
        names = [name for name in list_segments(self.prefix) if name != self._segment.name]
        for name in names:
            unlink(name)
        return names


def owner_pid(prefix: str) -> int | None:
    """Return the process id of the live `tickwire up` of a prefix, None if there is none (or it only just starts)."""
    try:
        segment = Segment.open(segment_name(prefix, OWNER_NAME), writable=False)
    except RingNotFoundError:
        return None
    try:
        pid = int(segment.array(np.uint64, _PID_AT, 1)[0])
        return pid if pid != 0 and segment.locked_by_other(OWNER_LOCK_AT) else None
    finally:
        segment.close()


def live_segments(prefix: str) -> list[str]:
    """Return the segments of a prefix on which somebody holds a liveness lock, the owner's own left out."""
    alive = []
    for name in list_segments(prefix):
        if name == segment_name(prefix, OWNER_NAME):
            continue
        try:
            segment = Segment.open(name, writable=False)
        except TickwireError:
            continue  # foreign or half-made: nobody of ours can hold a lock on it
        try:
            if segment.locked_by_other(0, segment.size):
                alive.append(name)
        finally:
            segment.close()
    return alive


def take_prefix(prefix: str) -> Segment:
    """Return the prefix's owner segment, locked for as long as it is open.

    Raises:
        RingError: A live process has the prefix, or this user may not take it.
    """
    name = segment_name(prefix, OWNER_NAME)

    def fill(segment: Segment) -> None:
        segment.array(np.uint64, 0, 1)[0] = OWNER_MAGIC

    for _ in range(3):
        with contextlib.suppress(RingError):  # there is one: its lock decides
            Segment.create(name, _OWNER_BYTES, mode=_OWNER_MODE, fill=fill).close()
        try:
            segment = Segment.open(name, writable=True)
        except RingNotFoundError:
            continue
        if segment.size < _OWNER_BYTES or int(segment.array(np.uint64, 0, 1)[0]) != OWNER_MAGIC:
            segment.close()
            raise RingError(f"segment {name!r}: must be Tickwire's, is something else; use another prefix")
        if not segment.try_lock(OWNER_LOCK_AT):
            pid = int(segment.array(np.uint64, _PID_AT, 1)[0])
            segment.close()
            raise RingError(
                f"prefix {prefix!r}: must have one owner, `tickwire up` with pid {pid} is alive; "
                "use another run.prefix, or `tickwire down`"
            )
        if not segment.replaced() and name in list_segments(prefix):
            segment.array(np.uint64, _PID_AT, 1)[0] = os.getpid()
            return segment
        segment.close()  # its owner was just leaving
    raise RingError(f"prefix {prefix!r}: another `tickwire up` starts or ends at this moment; try again")
