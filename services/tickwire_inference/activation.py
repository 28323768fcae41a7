"""Activating a model while inference runs: a request file and its answer in the run's state directory.

`tickwire model activate` writes the request and waits for the answer with the same id; the service looks for requests
every 100 ms, loads, checks and warms the model beside the running one, and lets the engine thread take it between two
batches. Whatever goes wrong, the old one keeps serving and the answer says why.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tickwire.errors import EngineError
from tickwire_inference.engines import HostEngine
from tickwire_inference.kernels.desk import Desk
from tickwire_inference.lineup import Lineup
from tickwire_inference.stats import SWAPS, SWAPS_REFUSED

REQUEST_FILE = "activate.json"
ANSWER_FILE = "activated.json"
LOOK_EVERY_S = 0.1
_TAKEN_WITHIN_S = 30.0


class ActivationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to serve."""

    id: str
    """Chosen by who asks; the answer repeats it."""
    model: str
    version: str | None = None
    """The registry's current version if None."""
    who: str = ""


class ActivationAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a request."""

    id: str
    serving: str
    """Label of the model that serves now."""
    activated: bool
    reason: str = ""
    """Why it was not activated."""
    took_ms: int = 0


def write_file(path: Path, value: msgspec.Struct) -> None:
    """Replace a file whole.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(path)


def read_answer(state_dir: Path, request_id: str) -> ActivationAnswer | None:
    """Return the answer to a request, None while there is none."""
    try:
        answer = msgspec.json.decode((state_dir / ANSWER_FILE).read_bytes(), type=ActivationAnswer)
    except (OSError, msgspec.MsgspecError):
        return None
    return answer if answer.id == request_id else None


class ActivationDesk:
    """Serves requests, one at a time. Lives in the event loop."""

    def __init__(
        self, state_dir: Path, lineup: Lineup, desk: Desk, load: Callable[[str, str | None], HostEngine], log: Any
    ) -> None:
        """Watch a state directory.

        Args:
            state_dir: The run's.
            lineup: Where a new primary goes.
            desk: For the counters.
            load: Gives the engine of a model and version, not warmed; may raise EngineError.
            log: A logger.
        """
        self._folder = state_dir
        self._lineup = lineup
        self._desk = desk
        self._load = load
        self._log = log
        self._seen = self._mark()  # a request from before this start is not for this process

    async def run(self) -> None:
        """Look every 100 ms."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Serve a new request, if there is one."""
        mark = self._mark()
        if mark is None or mark == self._seen:
            return
        self._seen = mark
        try:
            request = msgspec.json.decode((self._folder / REQUEST_FILE).read_bytes(), type=ActivationRequest)
        except (OSError, msgspec.MsgspecError) as error:
            self._log.error("activation_unreadable", error=str(error))
            return
        started_s = time.monotonic()
        reason = ""
        try:
            await asyncio.to_thread(self._activate, request)
        except EngineError as error:
            reason = str(error)
        took_ms = int((time.monotonic() - started_s) * 1000)
        serving = self._lineup.primary.label if self._lineup.primary is not None else ""
        self._desk.counters[SWAPS_REFUSED if reason else SWAPS] += 1
        if reason:
            self._log.error("activation_refused", model=request.model, version=request.version, reason=reason)
        else:
            self._log.info("model_activated", model=serving, who=request.who, took_ms=took_ms)
        answer = ActivationAnswer(id=request.id, serving=serving, activated=not reason, reason=reason, took_ms=took_ms)
        write_file(self._folder / ANSWER_FILE, answer)

    def _activate(self, request: ActivationRequest) -> None:
        engine = self._load(request.model, request.version)
        try:
            engine.warm_up()
            self._lineup.offer(engine)
        except EngineError:
            engine.close()
            raise
        if not self._lineup.wait_taken(_TAKEN_WITHIN_S):
            raise EngineError(
                f"model {engine.label}: must be taken by the engine thread within {_TAKEN_WITHIN_S:.0f} s"
            )
        replaced = self._lineup.take_replaced()
        if replaced is not None:
            replaced.close()

    def _mark(self) -> tuple[int, int] | None:
        try:
            found = (self._folder / REQUEST_FILE).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
