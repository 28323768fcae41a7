"""Several captures as one stream, in the order of receive time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from tickwire.errors import FeedError
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.frames import Frame, read_frames


class Source(NamedTuple):
    """One capture of a merge."""

    place: int
    path: Path
    config: CaptureConfig


class Arrival(NamedTuple):
    """A frame and when it is due. Compares by due time, then by the order of the captures and of their lines."""

    due_ns: int
    """Since the start of the replay's time line (`start`), or the receive time itself (`absolute`)."""
    source: int
    line: int
    frame: Frame


def check_sources(sources: Sequence[Source]) -> None:
    """Refuse captures that do not exist before anything is sent.

    Raises:
        FeedError: Names the first that is missing.
    """
    for source in sources:
        if not source.path.is_file():
            raise FeedError(f"capture {source.path}: must exist - at `$.ingest.captures[{source.place}].path`")


def merge(sources: Sequence[Source], align: Literal["start", "absolute"]) -> Iterator[Arrival]:
    """Yield the arrivals of all captures in order.

    Raises:
        FeedError: A capture cannot be read.
    """
    return heapq.merge(*(_arrivals(source, align) for source in sources))


def _arrivals(source: Source, align: Literal["start", "absolute"]) -> Iterator[Arrival]:
    origin = 0
    newest = 0
    for frame in read_frames(source.path, source.config.format):
        if align == "start" and origin == 0:
            origin = frame.receive_time_ns
        # A stamp that steps back is due with the one before it: the order of the file is the order of arrival.
        newest = max(newest, frame.receive_time_ns - origin)
        yield Arrival(newest, source.place, frame.line, frame)
