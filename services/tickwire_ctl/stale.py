"""Segments of dead runs: found by what stands in them, removed only when nobody is alive on their prefix.

I1  Only what carries a magic of ours is removed (and half-made files below such a prefix); all else is left and named.
I2  Nothing is removed while a liveness lock of the prefix is held, or where this user cannot look for one.
I3  From the last look at the locks to the end of the removal no `tickwire up` can take the prefix.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field

from tickwire.errors import RingError, RingNotFoundError
from tickwire.ring import layout, symbol_segment
from tickwire.ring.discovery import list_prefixes, read_magic
from tickwire.ring.segment import SHM_FOLDER, list_segments, unlink
from tickwire.runtime import stats
from tickwire.windows import layout as windows
from tickwire_ctl.segments import OWNER_MAGIC, live_segments, take_prefix

MAGICS = frozenset({layout.MAGIC, layout.CONTROL_MAGIC, symbol_segment.MAGIC, stats.MAGIC, windows.MAGIC, OWNER_MAGIC})
_HALF_MADE = re.compile(r"\.\d+\.tmp$")  # see Segment.create


@dataclass
class Removal:
    """What was done about one prefix."""

    prefix: str
    removed: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """Why each of the others was left."""


def tickwire_prefixes() -> list[str]:
    """Return all prefixes of this host that have a segment of ours, sorted."""
    return [prefix for prefix in list_prefixes() if any(_is_ours(name) for name in list_segments(prefix))]


def remove_stale(prefix: str) -> Removal:
    """Remove what dead runs left under a prefix, if nobody is alive on it (I1, I2, I3)."""
    removal = Removal(prefix)
    found = list_segments(prefix)
    try:
        _check_nobody_alive(prefix)
        if found:
            with contextlib.closing(take_prefix(prefix)) as owner:
                try:
                    _check_nobody_alive(prefix)
                    _remove(removal, [name for name in list_segments(prefix) if name != owner.name])
                finally:
                    unlink(owner.name)
                removal.removed += [owner.name] if owner.name in found else []
    except RingError as error:
        removal.left = {name: str(error) for name in found if name not in removal.removed}
    return removal


def _remove(removal: Removal, names: list[str]) -> None:
    for name in names:
        if _is_ours(name) or _HALF_MADE.search(name):
            unlink(name)
            removal.removed.append(name)
        else:
            removal.left[name] = "is no Tickwire segment"


def _is_ours(name: str) -> bool:
    try:
        return read_magic(name) in MAGICS
    except RingNotFoundError:
        return False


def _check_nobody_alive(prefix: str) -> None:
    paths = [SHM_FOLDER / name for name in list_segments(prefix)]
    hidden = [path.name for path in paths if path.exists() and not os.access(path, os.R_OK | os.W_OK)]
    if hidden:
        raise RingError(f"uid {os.geteuid()} must be allowed to read and write {', '.join(hidden)} to see who is alive")
    alive = live_segments(prefix)
    if alive:
        raise RingError(f"a process is alive on {', '.join(alive)}")
