"""Following the owner of a prefix: the process that made the segments, `tickwire up` or `tickwire anchor`.

For services that the owner does not start itself. In containers /dev/shm belongs to the anchor's container: a service
that outlives it goes on in memory that nobody else will ever see, and one that does not share it finds nothing there.

I1  A service that follows does not start without a live owner in its /dev/shm.
I2  Once the owner has ended the service fails, and its process ends only when the owner had time to come back: a
    container can only be started into the memory of one that runs.
"""

from __future__ import annotations

import asyncio
import contextlib

from tickwire.errors import RingNotFoundError, TickwireError
from tickwire.ring.segment import Segment, segment_name

OWNER_NAME = "owner"
"""The owner's segment is `<prefix>.owner`."""
OWNER_LOCK_AT = 8
"""Byte that the owner has locked for as long as it lives."""
OWNER_BACK_S = 3.0
_LOOK_EVERY_S = 0.25


class OwnerWatch:
    """The live owner that a service found at its start."""

    def __init__(self, prefix: str) -> None:
        """Find it.

        Raises:
            TickwireError: There is none here (I1).
        """
        self._prefix = prefix
        try:
            self._segment = Segment.open(segment_name(prefix, OWNER_NAME), writable=False)
        except RingNotFoundError as error:
            raise self._absent() from error
        if not self.alive:
            self._segment.close()
            raise self._absent()

    @property
    def alive(self) -> bool:
        """Whether the owner still holds its lock; a successor's does not count."""
        return self._segment.locked_by_other(OWNER_LOCK_AT)

    async def ended(self) -> TickwireError:
        """Wait until the owner has ended; return why the service must, too."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if not self.alive:
                break
        return TickwireError(f"prefix {self._prefix!r}: its owner must live, has ended; start again with the new one")

    async def time_to_return(self, hurried: asyncio.Event) -> None:
        """Wait as long as a successor may need, if the owner has ended or is just ending (I2).

        Args:
            hurried: Ends the wait.
        """
        for wait_s in (_LOOK_EVERY_S, OWNER_BACK_S):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(hurried.wait(), wait_s)
            if self.alive or hurried.is_set():
                return

    def close(self) -> None:
        """Detach."""
        self._segment.close()

    def _absent(self) -> TickwireError:
        return TickwireError(
            f"prefix {self._prefix!r}: `$.run.follow_owner` needs its owner alive in this /dev/shm, there is none; "
            "start `tickwire anchor`, and share its IPC namespace (in compose: `ipc: service:shm`)"
        )
