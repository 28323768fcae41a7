"""The kill switch as a file: who may not trade, in `state_dir/kill.json`; it survives every restart.

I1  The file is replaced whole: a reader sees the old switch or the new one.
I2  A file that cannot be read kills everything.
I3  Two commands at once both count: changes are made under a lock.
I4  Generations only grow, also when the file was corrupt in between.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tickwire.errors import ConfigError
from tickwire.runtime.clock import realtime_ns

KILL_FILE = "kill.json"
_LOCK_FILE = "kill.lock"


class KillState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is killed, and the last change."""

    generation: int = 0
    """Grows with each change; the router's gauge `kill_generation` says which one its signals obey."""
    everything: bool = msgspec.field(default=False, name="global")
    symbols: dict[str, str] = {}
    """`venue:name` of each killed symbol, and why."""
    who: str = ""
    when: str = ""
    """UTC, ISO 8601."""
    why: str = ""


def kill_path(state_dir: Path) -> Path:
    """Return where the kill switch of a state directory is."""
    return state_dir / KILL_FILE


def read_kill(state_dir: Path) -> KillState:
    """Return the kill switch; nothing is killed where there is no file.

    Raises:
        ConfigError: The file cannot be read or is not a kill switch.
    """
    path = kill_path(state_dir)
    try:
        return msgspec.json.decode(path.read_bytes(), type=KillState)
    except FileNotFoundError:
        return KillState()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: must be a kill switch: {error}; everything is killed") from error


def kill(state_dir: Path, labels: Iterable[str] | None, *, who: str, why: str) -> KillState:
    """Kill symbols, or everything; return the new switch. A corrupt file becomes one that kills everything.

    Args:
        state_dir: The run's state directory; made if it does not exist.
        labels: `venue:name` of each symbol; None kills everything.
        who: Who asks for it.
        why: Their reason.

    Raises:
        ConfigError: The file cannot be written.
    """
    added = None if labels is None else dict.fromkeys(labels, why)

    def change(old: KillState | None) -> tuple[bool, dict[str, str]]:
        everything = added is None or old is None or old.everything
        return everything, {**(old.symbols if old is not None else {}), **(added or {})}

    return _change(state_dir, change, who, why)


def unkill(state_dir: Path, labels: Iterable[str] | None, *, who: str, why: str) -> KillState:
    """Lift the global kill (None), or that of symbols; return the new switch.

    Args:
        state_dir: The run's state directory.
        labels: `venue:name` of each symbol; None lifts the global kill and leaves the symbols' own.
        who: Who asks for it.
        why: Their reason.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    lifted = set(labels or ())

    def change(old: KillState | None) -> tuple[bool, dict[str, str]]:
        if old is None:
            raise ConfigError(
                f"{kill_path(state_dir)}: must be readable to lift a kill; `tickwire kill` writes a good one"
            )
        symbols = {label: reason for label, reason in old.symbols.items() if label not in lifted}
        return old.everything and labels is not None, symbols

    return _change(state_dir, change, who, why)


_Change = Callable[[KillState | None], tuple[bool, dict[str, str]]]


def _change(state_dir: Path, change: _Change, who: str, why: str) -> KillState:
    path = kill_path(state_dir)
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        with _locked(state_dir / _LOCK_FILE):
            old: KillState | None
            try:
                old = read_kill(state_dir)
            except ConfigError:
                old = None
            everything, symbols = change(old)
            # Microseconds since 1970 are above every generation that a corrupt file may have had (I4).
            new = KillState(
                generation=max(old.generation + 1 if old is not None else 0, realtime_ns() // 1000),
                everything=everything,
                symbols=symbols,
                who=who,
                when=datetime.now(UTC).isoformat(timespec="milliseconds"),
                why=why,
            )
            _replace(path, msgspec.json.format(msgspec.json.encode(new), indent=2) + b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return new


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, text: bytes) -> None:
    # On the disk before it has its name, and the name too before this returns (I1).
    draft = path.with_suffix(".new")
    with draft.open("wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
