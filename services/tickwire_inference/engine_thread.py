"""The engine thread: takes batches from the command slots, gathers their windows, runs the engine, hands results back.

What raises in an engine fails its batch and nothing else: the loop goes on.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tickwire.ring import WaitStrategy
from tickwire.ring.consumer import SPIN_BEFORE_PARK_NS
from tickwire.ring.kernels.state import SPIN_FOREVER
from tickwire_inference.engines import HostEngine
from tickwire_inference.kernels.desk import Desk
from tickwire_inference.kernels.slots import COMMAND, STOPPED, complete, take_command, wait_for_command
from tickwire_inference.layouts import COMPLETED, MAX_IN_FLIGHT
from tickwire_inference.stats import ENGINE_TURN_MONO_NS

_SPIN_NS = {WaitStrategy.SPIN: SPIN_FOREVER, WaitStrategy.SPIN_PARK: SPIN_BEFORE_PARK_NS, WaitStrategy.PARK: 0}
_TURN_NS = 100_000_000
_LOG_EVERY_S = 10.0


class EngineThread:
    """Body of the thread; one engine, called from this thread alone once it runs."""

    def __init__(self, desk: Desk, engine: HostEngine, log: Any, wait_strategy: WaitStrategy) -> None:
        """Take the shared arrays, the engine (warmed), a logger, and how to wait for a batch."""
        self._desk = desk
        self._engine = engine
        self._log = log
        self._spin_ns = _SPIN_NS[wait_strategy]
        self._failures = 0
        self._logged_at_s = -_LOG_EVERY_S

    def body(self, stop_address: int) -> int:
        """Serve batches until the word at `stop_address` is set and none is left."""
        desk = self._desk
        taken = int(desk.mailbox[COMPLETED])
        while True:
            found = wait_for_command(desk.mailbox, taken, self._spin_ns, _TURN_NS, stop_address)
            desk.gauges[ENGINE_TURN_MONO_NS] = time.monotonic_ns()
            if found == COMMAND:
                self._serve(taken % MAX_IN_FLIGHT)
                taken = (taken + 1) & 0xFFFFFFFF
            elif found == STOPPED:
                return STOPPED

    def _serve(self, slot: int) -> None:
        desk, engine = self._desk, self._engine
        staging = engine.windows.view(np.uint32)
        take_command(desk.slots, slot, desk.batches, desk.bits, desk.newest, staging, desk.status)
        engine.probabilities.fill(np.nan)  # what a run leaves unwritten is not finite and fails
        failed = 0
        try:
            engine.run(int(desk.slots["size"][slot]))
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; it fails its batch alone
            failed = 1
            self._report(error)
        complete(desk.slots, slot, engine.probabilities, desk.status, desk.probabilities, failed, desk.mailbox)

    # Failures can come with every batch: one line in ten seconds says how many there were.
    def _report(self, error: Exception) -> None:
        self._failures += 1
        now_s = time.monotonic()
        if now_s - self._logged_at_s >= _LOG_EVERY_S:
            self._logged_at_s = now_s
            self._log.error("engine_failed", model=self._engine.label, error=repr(error), failed_batches=self._failures)
