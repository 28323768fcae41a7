"""One supervised service process.

I1  A process that dies is started again after a back-off, at most `CRASH_LIMIT` times in a row.
I2  What cannot succeed is not repeated: a wrong configuration, and a first start that the service itself gave up.
I3  An end that nobody asked for is a death, whatever the exit code, unless the service may finish by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from tickwire.runtime import Backoff
from tickwire.runtime.service import EXIT_CONFIG, EXIT_FAILED, EXIT_OK
from tickwire_ctl.output import LAST_LINES, Output, reason_in

CRASH_LIMIT = 5
"""Deaths in a row, each soon after the start, before a service is given up."""
_LOOK_EVERY_S = 0.05
_OUTPUT_S = 1.0


class Child:
    """Starts a service, watches it, and decides when it starts again."""

    def __init__(
        self, service: str, config: Path, overrides: Sequence[str], log: Path | None, *, may_finish: bool = False
    ) -> None:
        """Prepare; nothing is started.

        Args:
            service: `ingest`, `features`, `inference` or `router`.
            config: The TOML file.
            overrides: Assignments handed on with `--set`.
            log: File that takes its output; None hands its lines on to this process's own.
            may_finish: Whether exit code 0 means that its work is over (I3).
        """
        self.service = service
        self.log = log
        self.restarts = 0
        self.finished = False
        """Its work is over: it ended by itself, with exit code 0."""
        self._may_finish = may_finish
        self._command = [sys.executable, "-m", f"tickwire_{service}", "--config", str(config)]
        for override in overrides:
            self._command += ["--set", override]
        self._backoff = Backoff(first_s=0.2, cap_s=10.0, steady_s=10.0)
        self._process: subprocess.Popen[bytes] | None = None
        self._output: Output | None = None
        self._started_s = 0.0
        self._restart_at_s: float | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; a session of its own, so that Ctrl-C reaches it through its supervisor only."""
        output = self.log.open("ab") if self.log is not None else None
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules, no shell
                [*self._command, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=output if output is not None else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            if output is not None:
                output.close()
        if self._process.stdout is not None:
            self._output = Output(self._process.stdout, sys.stdout.fileno())
        self._started_s = time.monotonic()
        self._restart_at_s = None

    def watch(self, was_ready: Callable[[], bool]) -> str | None:
        """Look after the process; restart it when that is due.

        Args:
            was_ready: Says whether the run of the service that has just ended was ever READY.

        Returns:
            What happened, for the log: None, `finished`, `died` (a restart is planned), `restarted` or `given_up`.
        """
        now_s = time.monotonic()
        if self._restart_at_s is not None:
            if now_s < self._restart_at_s:
                return None
            self.start()
            self.restarts += 1
            return "restarted"
        if self.finished or self._process is None or self._process.poll() is None:
            return None
        if self._process.returncode == EXIT_OK and self._may_finish:
            self.finished = True
            return "finished"
        self._backoff.ran_for(now_s - self._started_s)
        if self._backoff.attempts >= CRASH_LIMIT or self._cannot_start(was_ready):
            return "given_up"
        self._restart_at_s = now_s + self._backoff.next_delay_s()
        return "died"

    def _cannot_start(self, was_ready: Callable[[], bool]) -> bool:
        # A wrong configuration, or a first start that the service itself gave up (no model, no capture).
        assert self._process is not None
        code = self._process.returncode
        return code == EXIT_CONFIG or (code == EXIT_FAILED and self.restarts == 0 and not was_ready())

    def describe_end(self) -> str:
        """Return how the process ended, and why as far as its last lines say it."""
        code = self._process.returncode if self._process is not None else None
        how = f"os_signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        again = f" after {self.restarts} restarts" if self.restarts else ""
        reason = reason_in(self._last_lines())
        return f"service {self.service!r}: ended with {how}{again}" + (f": {reason}" if reason else "")

    def terminate(self) -> None:
        """Ask the process to drain; asked again, it ends without."""
        self._restart_at_s = None
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def join(self, timeout_s: float, hurried: Callable[[], bool] = lambda: False) -> None:
        """Wait for its end; kill it when it takes longer.

        Args:
            timeout_s: How long it may take.
            hurried: Asked again and again; True has the process end without draining.
        """
        if self._process is None:
            return
        deadline_s = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < deadline_s:
            try:
                self._process.wait(_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                if hurried():
                    self.terminate()  # again and again: the kernel makes one of two that come too soon
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._output is not None:
            self._output.join(_OUTPUT_S)

    def _last_lines(self) -> Sequence[str]:
        if self._output is not None:
            self._output.join(_OUTPUT_S)
            return self._output.last_lines
        if self.log is None:
            return ()
        with self.log.open(errors="replace") as lines:
            return [line.rstrip() for line in deque(lines, maxlen=LAST_LINES)]
