"""Configuration of ingest: which captures are replayed, and how fast."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

CaptureFormat = Literal["binance_usdm", "binance_spot", "kraken"]
_PACE = re.compile(r"realtime|max|closed|x(\d+(?:\.\d+)?)")


class CaptureConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recorded file."""

    path: str
    """Relative to the TOML's folder; gzip or plain."""
    format: CaptureFormat
    """Venue and recorder; also the venue in the symbols' labels."""
    depth: Annotated[int, Meta(ge=10, le=10_000)] = 1000
    """Levels a side that were subscribed to (Kraken only)."""


class IngestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[ingest]` table."""

    captures: Annotated[list[CaptureConfig], Meta(min_length=1)]
    pace: str = "realtime"
    """`realtime`, `xN` (N times as fast), `max` (as fast as features takes it) or `closed` (barriers)."""
    align: Literal["start", "absolute"] = "start"
    """Merge captures by the time since each one's start, or by their receive stamps as they are."""
    max_seconds: Annotated[float, Meta(gt=0)] | None = None
    """Stop after so much capture time."""
    repeat: bool = False
    """Start over at the end; each lap begins with a gap for every symbol."""
    linger: bool = False
    """Stay READY after the end instead of draining; snapshots are still sent on request."""
    wait_for: list[Literal["features", "inference", "router"]] = msgspec.field(default_factory=lambda: ["features"])
    """Services that must be READY before the first tick."""
    wait_for_s: Annotated[float, Meta(gt=0)] = 60.0
    book_levels: Annotated[int, Meta(ge=16, le=1_000_000)] = 16_384
    """Levels a side that ingest keeps of each venue's book."""

    def __post_init__(self) -> None:
        """Check the pace."""
        if not _PACE.fullmatch(self.pace) or self.pace in ("x0", "x0.0"):
            raise ValueError(f"pace must be realtime, max, closed or xN such as x4, was {self.pace!r}")

    @property
    def speed(self) -> float | None:
        """Capture seconds a second; None for `max` and `closed`, which do not wait for the clock."""
        if self.pace == "realtime":
            return 1.0
        return float(self.pace[1:]) if self.pace.startswith("x") else None
