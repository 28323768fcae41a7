"""One supervised service process."""

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
from tickwire.runtime.service import EXIT_CONFIG, EXIT_FAILED

CRASH_LIMIT = 5
"""Faults in a row, each soon after the start, before a service is given up."""


class Child:
    """Starts a service, watches it, and decides when it starts again."""

    def __init__(self, service: str, config: Path, overrides: Sequence[str], log: Path | None) -> None:
        """Prepare; nothing is started.

        Args:
            service: `ingest`, `features`, `inference` or `router`.
            config: The TOML file.
            overrides: Assignments handed on with `--set`.
            log: File that takes its output; None hands it on to this process's own.
        """
        self.service = service
        self.log = log
        self.restarts = 0
        self.finished = False
        """It ended by itself, with exit code 0."""
        self._command = [sys.executable, "-m", f"tickwire_{service}", "--config", str(config)]
        for override in overrides:
            self._command += ["--set", override]
        self._backoff = Backoff(first_s=0.2, cap_s=10.0, steady_s=10.0)
        self._process: subprocess.Popen[bytes] | None = None
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
                stdout=output,
                stderr=subprocess.STDOUT if output is not None else None,
                start_new_session=True,
            )
        finally:
            if output is not None:
                output.close()
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
        if self._process.returncode == 0:
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
        """Return how the process ended, with its last lines."""
        code = self._process.returncode if self._process is not None else None
        how = f"os_signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        text = f"service {self.service!r}: ended with {how}"
        tail = self._last_lines()
        return f"{text}; its last lines:\n{tail}" if tail else text

    def terminate(self) -> None:
        """Ask the process to drain."""
        self._restart_at_s = None
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def join(self, timeout_s: float) -> None:
        """Wait for its end; kill it when it takes longer."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_lines(self) -> str:
        if self.log is None:
            return ""
        with self.log.open(errors="replace") as lines:
            return "".join(deque(lines, maxlen=5)).rstrip()
