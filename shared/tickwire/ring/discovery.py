"""Finding the rings of a host by what stands in /dev/shm, whatever their prefixes."""

from __future__ import annotations

import contextlib
import os
import stat

from tickwire.errors import RingNotFoundError
from tickwire.ring.layout import MAGIC
from tickwire.ring.segment import PREFIX_PATTERN, SHM_FOLDER, list_segments


def find_rings(prefix: str | None = None) -> list[str]:
    """Return the names `<prefix>.<ring>` of all rings of a prefix, or of all prefixes, found by their magic; sorted."""
    prefixes = list_prefixes() if prefix is None else [prefix]
    found = []
    for name in (name for each in prefixes for name in list_segments(each)):
        with contextlib.suppress(RingNotFoundError):  # removed since it was listed
            if read_magic(name) == MAGIC:
                found.append(name)
    return found


def list_prefixes() -> list[str]:
    """Return what may be prefixes of segments, whoever made them, sorted; `read_magic` tells ours from others'."""
    starts = {path.name.partition(".")[0] for path in SHM_FOLDER.iterdir() if "." in path.name}
    return sorted(start for start in starts if PREFIX_PATTERN.fullmatch(start))


def read_magic(name: str) -> int | None:
    """Return a segment's first 8 bytes; None if there are not so many or this user may not read them.

    Raises:
        RingNotFoundError: There is none of that name.
    """
    try:
        fd = os.open(SHM_FOLDER / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise RingNotFoundError(f"segment {name!r}: must exist in {SHM_FOLDER}, does not") from error
    except OSError:
        return None
    try:
        first = os.read(fd, 8) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
    return int.from_bytes(first, "little") if len(first) == 8 else None
