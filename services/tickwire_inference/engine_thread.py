"""The engine thread: takes batches from the command slots, gathers their windows, runs the engine, hands results back.

What raises in an engine hands its batch to the next one of the line-up; when all have failed, the batch fails and
nothing else: the loop goes on.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tickwire.ring import WaitStrategy
from tickwire.ring.consumer import SPIN_BEFORE_PARK_NS
from tickwire.ring.kernels.state import SPIN_FOREVER
from tickwire_inference.breaker import Outcome, Permit
from tickwire_inference.engines import HostEngine
from tickwire_inference.kernels.desk import Desk
from tickwire_inference.kernels.slots import COMMAND, STOPPED, complete, take_command, wait_for_command
from tickwire_inference.layouts import COMPLETED, MAX_IN_FLIGHT
from tickwire_inference.lineup import Lineup
from tickwire_inference.stats import (
    BREAKER_OPENINGS,
    BREAKER_STATE,
    DEGRADED,
    ENGINE_TURN_MONO_NS,
    FALLBACK_BATCHES,
    TIMEOUTS,
)

_SPIN_NS = {WaitStrategy.SPIN: SPIN_FOREVER, WaitStrategy.SPIN_PARK: SPIN_BEFORE_PARK_NS, WaitStrategy.PARK: 0}
_TURN_NS = 100_000_000
_LOG_EVERY_S = 10.0


class EngineThread:
    """Body of the thread; every engine is called from this thread alone once it runs."""

    def __init__(self, desk: Desk, lineup: Lineup, log: Any, wait_strategy: WaitStrategy) -> None:
        """Take the shared arrays, the engines (warmed), a logger, and how to wait for a batch."""
        self._desk = desk
        self._lineup = lineup
        self._log = log
        self._spin_ns = _SPIN_NS[wait_strategy]
        self._judges_time = not int(desk.state["closed_loop"][0])
        self._failures = 0
        self._logged_at_s = -_LOG_EVERY_S
        self._show()

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
            self._lineup.idle()
            self._show()

    def _serve(self, slot: int) -> None:
        desk, lineup = self._desk, self._lineup
        engine: HostEngine | None = None
        failed = 1
        for engine, permit in lineup.choose(time.monotonic_ns()):
            failed = self._run(engine, slot)
            now_ns = time.monotonic_ns()
            late = self._judges_time and now_ns > int(desk.slots["deadline_ns"][slot])
            outcome = Outcome.FAULT if failed else Outcome.TIMEOUT if late else Outcome.GOOD
            if permit is not Permit.FALLBACK:
                desk.counters[TIMEOUTS] += np.uint64(outcome is Outcome.TIMEOUT)
                lineup.settle(permit, outcome, now_ns)
            if not failed:
                desk.counters[FALLBACK_BATCHES] += np.uint64(permit is Permit.FALLBACK)
                break
        assert engine is not None
        desk.slots["engine"][slot] = int(engine.kind)
        desk.model_words[slot].view("S40")[0] = engine.label.encode()
        complete(desk.slots, slot, engine.probabilities, desk.status, desk.probabilities, failed, desk.mailbox)

    # 1 if the engine raised.
    def _run(self, engine: HostEngine, slot: int) -> int:
        desk = self._desk
        staging = engine.windows.view(np.uint32)
        take_command(desk.slots, slot, desk.batches, desk.bits, desk.newest, staging, desk.status)
        engine.probabilities.fill(np.nan)  # what a run leaves unwritten is not finite and fails
        try:
            engine.run(int(desk.slots["size"][slot]))
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the next one gets the batch
            self._report(engine, error)
            return 1
        return 0

    # Failures can come with every batch: one line in ten seconds says how many there were.
    def _report(self, engine: HostEngine, error: Exception) -> None:
        self._failures += 1
        now_s = time.monotonic()
        if now_s - self._logged_at_s >= _LOG_EVERY_S:
            self._logged_at_s = now_s
            self._log.error("engine_failed", model=engine.label, error=repr(error), failed_batches=self._failures)

    def _show(self) -> None:
        gauges, breaker = self._desk.gauges, self._lineup.breaker
        if gauges[BREAKER_STATE] != int(breaker.state):
            self._log.warning("breaker_changed", state=breaker.state.name.lower(), openings=breaker.opened)
            gauges[BREAKER_STATE] = int(breaker.state)
        gauges[DEGRADED] = int(self._lineup.degraded)
        self._desk.counters[BREAKER_OPENINGS] = breaker.opened
