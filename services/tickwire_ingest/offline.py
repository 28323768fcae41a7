"""Captures as ticks without rings, for training: the same frames, feeds and books as live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tickwire.records import RecordArray, SymbolTable
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.desk import Desk
from tickwire_ingest.feed import Complaint
from tickwire_ingest.feeds import make_feed
from tickwire_ingest.merge import Source, check_sources, merge


def read_ticks(
    captures: Sequence[CaptureConfig],
    symbols: SymbolTable,
    *,
    folder: Path = Path(),
    align: Literal["start", "absolute"] = "absolute",
    complain: Complaint = lambda _place, _reason: None,
) -> Iterator[RecordArray]:
    """Yield the ticks of each venue event, in the order of receive time.

    Args:
        captures: The files; relative paths are relative to `folder`.
        symbols: Symbols of interest; others are passed over.
        folder: See `captures`.
        align: How several captures are merged.
        complain: Told (place, reason) of lines that cannot be read.

    Yields:
        Arrays of dtype TICK, one whole event each, with the capture's receive times; copies.

    Raises:
        FeedError: A capture is missing or cannot be read.
    """
    events: list[RecordArray] = []
    desk = Desk(symbols, lambda ticks, n: events.append(ticks[:n].copy()))
    sources = [Source(i, folder / config.path, config) for i, config in enumerate(captures)]
    check_sources(sources)
    feeds = [make_feed(source.config, desk, source.path, complain) for source in sources]
    for arrival in merge(sources, align):
        feeds[arrival.source].take(arrival.frame)
        yield from events
        events.clear()
