"""Watches the kill file and hands each change to the router's loop. Lives in the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from tickwire.errors import ConfigError
from tickwire.records import SymbolTable
from tickwire_router.kernels.desk import Desk
from tickwire_router.kernels.withdrawal import set_kill
from tickwire_router.kill_switch import KillState, kill_path, read_kill

LOOK_EVERY_S = 0.05
UNREADABLE_GENERATION = -1
"""What the gauge `kill_generation` says while the file cannot be read and everything is killed."""

_Mark = tuple[int, int, int, int] | str


class KillWatch:
    """Compares the file with what the loop was told last."""

    def __init__(self, state_dir: Path, symbols: SymbolTable, desk: Desk, log: Any) -> None:
        """Watch the kill file of a state directory; `look` does it once, `run` for good."""
        self._state_dir = state_dir
        self._symbols = symbols
        self._desk = desk
        self._log = log
        self._mark: _Mark | None = None

    async def run(self) -> None:
        """Look every 50 ms."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """Tell the loop what the file says, if it is another one than at the last look."""
        mark = self._marked()
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._apply(read_kill(self._state_dir))
        except ConfigError as error:
            self._log.error("kill_file_unreadable", error=str(error))
            self._tell(np.ones(len(self._symbols) + 1, np.uint8), UNREADABLE_GENERATION)

    def _marked(self) -> _Mark:
        # Taken before the file is read: a change in between is seen at the next look.
        try:
            found = kill_path(self._state_dir).stat()
        except OSError as error:
            return repr(error)
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _apply(self, state: KillState) -> None:
        killed = np.zeros(len(self._symbols) + 1, np.uint8)
        killed[-1] = state.everything
        unknown = []
        for label in state.symbols:
            symbol = self._symbols.id_of(label)
            if symbol is None:
                unknown.append(label)
            else:
                killed[symbol] = 1
        self._tell(killed, state.generation)
        if unknown:
            self._log.warning("kill_symbols_unknown", symbols=unknown)
        self._log.info(
            "kill_switch_read",
            generation=state.generation,
            everything=state.everything,
            symbols=state.symbols,
            who=state.who,
            why=state.why,
        )

    def _tell(self, killed: np.ndarray[Any, np.dtype[np.uint8]], generation: int) -> None:
        set_kill(self._desk, killed, generation)
