"""A thread that runs one compiled loop with the GIL released until it is told to stop.

I1  The loop ends within its own bounded wait after the stop word is set; the word is process-local.
I2  A loop that raises, or returns without having been asked to, fails the service and names the thread.
I3  Memory of a ring is exchanged only between two runs of the loop, in this thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from tickwire.errors import TickwireError
from tickwire.ring.kernels import REATTACH

END_TIMEOUT_S = 5.0


class HotThread:
    """Runs `body(stop_address)` again and again."""

    def __init__(
        self,
        name: str,
        body: Callable[[int], int],
        *,
        on_start: Callable[[], None] | None = None,
        on_reattach: Callable[[], None] | None = None,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Prepare the thread.

        Args:
            name: Its name, in errors and in the process table.
            body: Calls the compiled loop with the address of the stop word; returns its code.
            on_start: Called in the thread before the loop runs first.
            on_reattach: Called in the thread when the loop returned `REATTACH`, before it runs again (I3).
            on_failure: Called in the thread with what went wrong (I2).
        """
        self.name = name
        self._body = body
        self._on_start = on_start
        self._on_reattach = on_reattach
        self._on_failure = on_failure
        self._stop = np.zeros(1, dtype=np.uint64)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the loop to end; returns at once."""
        self._stop[0] = 1

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the loop; say whether it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self.alive

    def end(self) -> None:
        """Stop the loop and wait for its end.

        Raises:
            TickwireError: It does not end; memory that it uses must stay mapped.
        """
        self.stop()
        if not self.join(END_TIMEOUT_S):
            raise TickwireError(f"hot thread {self.name!r}: must end when told to, still ran after {END_TIMEOUT_S:g} s")

    def _run(self) -> None:
        try:
            if self._on_start is not None:
                self._on_start()
            while True:
                code = int(self._body(int(self._stop.ctypes.data)))
                if self._stop[0]:
                    return
                if code != REATTACH or self._on_reattach is None:
                    raise TickwireError(f"hot thread {self.name!r}: must run until it is stopped, returned {code}")
                self._on_reattach()
        except BaseException as error:  # noqa: BLE001 - the thread's end is the service's failure, whatever it is
            self._on_failure(error)
