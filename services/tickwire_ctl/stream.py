"""Signals on a terminal at a rate that people can read: changes of a symbol's action, and a sample of the rest."""

from __future__ import annotations

from collections.abc import Callable

from tickwire.client import Signal, SignalBatch
from tickwire.records import Action
from tickwire_ctl.signal_line import signal_line

LINES_PER_SECOND = 12
"""Of both kinds together."""
SAMPLES_PER_SECOND = 3


class SignalStream:
    """Chooses which signals are printed; all are counted. Time is an argument."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """Print through `write`."""
        self._write = write
        self._actions: dict[int, Action] = {}
        self._window_s = 0.0
        self._lines = 0
        self._samples = 0
        self.seen = 0

    def show(self, batch: SignalBatch, now_s: float) -> None:
        """Count a batch and print what is worth it."""
        self.seen += len(batch)
        if now_s - self._window_s >= 1.0:
            self._window_s = now_s
            self._lines = self._samples = 0
        records = batch.records
        for i in range(len(batch)):
            symbol_id, action = int(records["symbol_id"][i]), Action(int(records["action"][i]))
            changed = self._actions.get(symbol_id, Action.HOLD) is not action
            self._actions[symbol_id] = action
            if self._lines == LINES_PER_SECOND or (not changed and self._samples == SAMPLES_PER_SECOND):
                continue
            self._samples += not changed
            self._print(batch[i])

    def _print(self, signal: Signal) -> None:
        self._lines += 1
        self._write(signal_line(signal))
