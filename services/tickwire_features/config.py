"""Configuration of features: table `[features]` of the run's TOML."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tickwire.ring import WaitStrategy


class FeaturesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings, with the defaults of a small host."""

    batch_ticks: Annotated[int, Meta(ge=1, le=2048)] = 256
    """Most ticks taken at once; their rows are published together, with one wake-up of inference."""
    wait_strategy: WaitStrategy = WaitStrategy.PARK
    """`park` for shared cores, `spin_park` or `spin` for a core of its own."""
    wait_for_ticks_s: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """How long to wait at the start for ingest to create the ticks ring."""
