"""POSIX shared-memory segments: creation, attachment, liveness locks, removal.

Used by the rings, the windows store, the symbol table and the statistics. Not on the tick path.

I1  A name never means a half-made segment: it is filled under a temporary name and then linked into place.
I2  A full /dev/shm is an error at creation, never a SIGBUS later: the memory is reserved with posix_fallocate.
I3  Mode and owner do not depend on the umask; nobody attaches to a segment that others may write.
I4  Closing or exiting removes nothing; only `unlink` does.
I5  A liveness lock is an open-file-description lock: the kernel frees it when its holder dies, in any PID namespace.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import posix_ipc

from tickwire.errors import RingError, RingLayoutError, RingNotFoundError

SHM_FOLDER = Path("/dev/shm")  # noqa: S108 - where Linux keeps POSIX shared memory, shm_overview(7)
PREFIX_PATTERN = re.compile(r"[a-z0-9_-]{1,32}")

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid


class Segment:
    """One mapped shared-memory segment.

    Close it only when no kernel uses its address any more: a mapping closed under a running kernel is a SIGSEGV.
    """

    def __init__(self, name: str, fd: int, writable: bool) -> None:
        """Map an open descriptor; `create` and `open` are the ways in."""
        self.name = name
        self.writable = writable
        self.fd = fd
        status = os.fstat(fd)
        self.size = status.st_size
        self.inode = status.st_ino
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._map = mmap.mmap(fd, self.size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=protection)
        self._bytes: npt.NDArray[np.uint8] | None = np.frombuffer(self._map, dtype=np.uint8)
        self.address = int(self._bytes.ctypes.data)

    @classmethod
    def create(
        cls,
        name: str,
        size: int,
        *,
        mode: int,
        fill: Callable[[Segment], None],
        replace: bool = False,
    ) -> Segment:
        """Create a segment, fill it, and only then give it its name (I1, I2, I3).

        Args:
            name: `<prefix>.<rest>`, without a slash.
            size: Bytes.
            mode: Permission bits, whatever the umask.
            fill: Writes the initial content.
            replace: Take the name over from an existing segment, whose attachers keep the old one.

        Raises:
            RingError: The name is taken (and `replace` is false), or there is no memory or no permission.
        """
        temporary = f"{name}.{os.getpid()}.tmp"
        (SHM_FOLDER / temporary).unlink(missing_ok=True)
        try:
            fd = posix_ipc.SharedMemory("/" + temporary, posix_ipc.O_CREX, mode=0o600).fd
        except (posix_ipc.Error, OSError) as error:
            raise RingError(f"segment {name!r}: cannot be created in {SHM_FOLDER}: {error}") from error
        try:
            _reserve(name, fd, size)
            os.set_inheritable(fd, False)
            os.fchmod(fd, mode)
            segment = cls(name, fd, writable=True)
            fill(segment)
            _publish_name(temporary, name, replace)
        except BaseException:
            os.close(fd)
            raise
        finally:
            (SHM_FOLDER / temporary).unlink(missing_ok=True)
        return segment

    @classmethod
    def open(cls, name: str, *, writable: bool) -> Segment:
        """Attach to an existing segment.

        Raises:
            RingNotFoundError: There is none of that name.
            RingLayoutError: It is empty.
            RingError: This user may not, or others may write it (I3).
        """
        try:
            fd = posix_ipc.SharedMemory("/" + name, read_only=not writable).fd
        except posix_ipc.ExistentialError as error:
            raise RingNotFoundError(f"segment {name!r}: must exist in {SHM_FOLDER}, does not") from error
        except (posix_ipc.PermissionsError, OSError) as error:
            raise RingError(_permission_text(name, writable)) from error
        try:
            os.set_inheritable(fd, False)
            _check_owner(name, os.fstat(fd), writable)
            return cls(name, fd, writable)
        except BaseException:
            os.close(fd)
            raise

    def array(self, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[np.generic]:
        """Return a view of the segment, shape (count,), valid until `close`."""
        assert self._bytes is not None, "segment is closed"
        item = np.dtype(dtype)
        return self._bytes[offset : offset + item.itemsize * count].view(item)

    def replaced(self) -> bool:
        """Say whether the name now means another segment than this one. False while the name means nothing."""
        try:
            return (SHM_FOLDER / self.name).stat().st_ino != self.inode
        except FileNotFoundError:
            return False

    def try_lock(self, offset: int) -> bool:
        """Take the liveness lock of one byte for as long as this segment stays open; False if another holds it (I5)."""
        request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise RingError(f"segment {self.name!r}: cannot be locked: {error}") from error
        return True

    def unlock(self, offset: int) -> None:
        """Give a liveness lock back."""
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, offset, 1, 0))

    def locked_by_other(self, offset: int, length: int = 1) -> bool:
        """Say whether somebody else holds a liveness lock in a range of bytes."""
        request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, length, 0)
        answer = fcntl.fcntl(self.fd, fcntl.F_OFD_GETLK, request)
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)

    def close(self) -> None:
        """Unmap and close; frees the locks, removes nothing (I4). Views of it must be gone or never used again."""
        if self._bytes is None:
            return
        self._bytes = None
        # Explicitly, since the mapping holds a duplicate of the descriptor and may outlive this call.
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))
        try:
            self._map.close()
        except BufferError:
            pass  # a view is still referenced: the mapping goes with the last of them
        finally:
            os.close(self.fd)


def segment_name(prefix: str, name: str) -> str:
    """Return `<prefix>.<name>`.

    Raises:
        ValueError: The prefix is not `[a-z0-9_-]{1,32}`.
    """
    if not PREFIX_PATTERN.fullmatch(prefix):
        raise ValueError(f"prefix: must match {PREFIX_PATTERN.pattern}, was {prefix!r}")
    return f"{prefix}.{name}"


def unlink(name: str) -> bool:
    """Remove a segment's name; attachers keep the memory. False if there was none.

    Raises:
        RingError: This user may not.
    """
    try:
        posix_ipc.unlink_shared_memory("/" + name)
    except posix_ipc.ExistentialError:
        return False
    except posix_ipc.PermissionsError as error:
        raise RingError(f"segment {name!r}: uid {os.geteuid()} must own it to remove it, does not") from error
    return True


def list_segments(prefix: str) -> list[str]:
    """Return the names of all segments of a prefix, sorted."""
    start = segment_name(prefix, "")
    return sorted(path.name for path in SHM_FOLDER.iterdir() if path.name.startswith(start))


def _reserve(name: str, fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            free = os.statvfs(SHM_FOLDER)
            raise RingError(
                f"segment {name!r}: needs {size} bytes in {SHM_FOLDER}, {free.f_bavail * free.f_frsize} are free; "
                "enlarge it (mount -o remount,size=..., or shm_size in compose)"
            ) from error
        raise RingError(f"segment {name!r}: cannot be reserved: {error}") from error


def _publish_name(temporary: str, name: str, replace: bool) -> None:
    source, target = SHM_FOLDER / temporary, SHM_FOLDER / name
    if replace:
        source.rename(target)
        return
    try:
        target.hardlink_to(source)  # unlike rename it fails when the name is taken
    except FileExistsError as error:
        raise RingError(f"segment {name!r}: must not exist yet, does") from error


def _check_owner(name: str, status: os.stat_result, writable: bool) -> None:
    if status.st_mode & stat.S_IWOTH:
        raise RingError(f"segment {name!r}: must not be writable by others, has mode {stat.filemode(status.st_mode)}")
    if writable and status.st_uid not in (os.geteuid(), 0) and not status.st_mode & stat.S_IWGRP:
        raise RingError(f"segment {name!r}: must belong to uid {os.geteuid()} or root, belongs to {status.st_uid}")
    if status.st_size == 0:
        raise RingLayoutError(f"segment {name!r}: must not be empty; remove it if its creator is dead")


def _permission_text(name: str, writable: bool) -> str:
    try:
        status = (SHM_FOLDER / name).stat()
        found = f"mode {stat.filemode(status.st_mode)}, uid {status.st_uid}, gid {status.st_gid}"
    except OSError:
        found = "unknown mode"
    access = "read and write" if writable else "read"
    return f"segment {name!r}: uid {os.geteuid()} must be allowed to {access} it, found {found}"
