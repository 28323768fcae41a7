"""Frames of a capture: receive time, line number, payload. Nothing is interpreted here.

I1  A line that has no stamp in front is handed on as corrupt, with its number; the stream goes on.
I2  A capture that is cut off ends there, and says so.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from tickwire.errors import FeedError
from tickwire_ingest.config import CaptureFormat

NANOSECONDS = 1_000_000_000
_BUFFER_BYTES = 1 << 20


class Frame(NamedTuple):
    """One recorded line."""

    receive_time_ns: int
    """Wall clock of the recorder; for a corrupt line that of the line before."""
    line: int
    """From 1."""
    payload: bytes
    """What the venue sent; of a corrupt line all of it."""
    fault: str | None = None
    """Why the line is no frame."""


def read_frames(path: Path, capture_format: CaptureFormat) -> Iterator[Frame]:
    """Yield the frames of a capture in the order of the file; the recorder's comments and empty lines are skipped.

    Raises:
        FeedError: The file does not exist or cannot be read.
    """
    split = _split_seconds if capture_format == "kraken" else _split_nanoseconds
    last_ns = 0
    number = 0
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.startswith((b"wss://", b"https://")) or line.isspace():
                    continue
                stamp, payload = split(line)
                if stamp is None:
                    yield Frame(last_ns, number, line, "no receive stamp in front")
                    continue
                last_ns = stamp
                yield Frame(stamp, number, payload)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Frame(last_ns, number + 1, b"", f"the capture is cut off or damaged: {error}")
    except OSError as error:
        raise FeedError(f"capture {path}: cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        # The buffer in front finds line ends in C; GzipFile alone does it in Python.
        return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _BUFFER_BYTES)
    return path.open("rb")


def _split_nanoseconds(line: bytes) -> tuple[int | None, bytes]:
    stamp, _, payload = line.partition(b" ")
    return (int(stamp), payload) if stamp.isdigit() else (None, line)


_SECONDS = re.compile(rb"(\d+)(?:\.(\d{1,9}))?: ")


def _split_seconds(line: bytes) -> tuple[int | None, bytes]:
    found = _SECONDS.match(line)
    if found is None:
        return None, line
    seconds, fraction = found.groups()
    return int(seconds) * NANOSECONDS + int((fraction or b"").ljust(9, b"0")), line[found.end() :]
