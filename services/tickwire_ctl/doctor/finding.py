"""What an examination of the host found, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How one thing is."""

    GOOD = "good"
    ADVICE = "advice"
    """Works; costs latency or room for growth."""
    BAD = "bad"
    """Something that the configuration asks for cannot work."""
    UNKNOWN = "unknown"
    """It cannot be read here, in a container or a virtual machine."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    subject: str
    verdict: Verdict
    found: str
    remedy: str
    """What to do; empty when there is nothing to do."""
    why: str
    """What it costs."""
