"""What a ring is made for: name, mode, capacity and record layout. Producer and consumers must agree on all of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tickwire.records import SLOT_HEADER_BYTES, schema_hash
from tickwire.ring.layout import HEADER_BYTES, MAX_CONSUMERS, MAX_SLOT_BYTES, MIN_SLOT_BYTES


class RingMode(IntEnum):
    """What happens when a consumer is slow."""

    LOSSLESS = 1
    """The producer is told of back-pressure; nothing is overwritten before its consumers have committed it."""
    LOSSY = 2
    """The producer never waits; a slow consumer laps only itself and knows exactly how much it lost."""


@dataclass(frozen=True, kw_only=True)
class RingSpec:
    """A ring as both ends expect it.

    Raises:
        ValueError: Capacity or slot size break the layout's rules.
    """

    name: str
    mode: RingMode
    capacity: int
    dtype: np.dtype[np.void]
    schema_extra: tuple[str, ...] = ()
    """Further text that both ends must share (the feature table's hash, for rows)."""
    max_consumers: int = MAX_CONSUMERS
    first_sequence: int = 0

    def __post_init__(self) -> None:
        """Check the rules that the kernels rely on."""
        if self.capacity < 2 or self.capacity & (self.capacity - 1):
            raise ValueError(f"ring {self.name!r}: capacity must be a power of two of at least 2, was {self.capacity}")
        if self.slot_bytes % 64 or not MIN_SLOT_BYTES <= self.slot_bytes <= MAX_SLOT_BYTES:
            raise ValueError(
                f"ring {self.name!r}: slot must be a multiple of 64 of {MIN_SLOT_BYTES} to {MAX_SLOT_BYTES} bytes, "
                f"was {self.slot_bytes}"
            )
        if not 0 < self.max_consumers <= MAX_CONSUMERS:
            raise ValueError(
                f"ring {self.name!r}: max_consumers must be 1 to {MAX_CONSUMERS}, was {self.max_consumers}"
            )
        if not 0 <= self.first_sequence < 2**63:
            raise ValueError(f"ring {self.name!r}: first_sequence must be below 2^63, was {self.first_sequence}")

    @property
    def slot_bytes(self) -> int:
        """Bytes a slot, the ring's header included."""
        return self.dtype.itemsize

    @property
    def payload_bytes(self) -> int:
        """Bytes of a slot that belong to the producer."""
        return self.slot_bytes - SLOT_HEADER_BYTES

    @property
    def schema_hash(self) -> int:
        """Hash of the record layout and of `schema_extra`."""
        return schema_hash(self.dtype, *self.schema_extra)

    @property
    def data_bytes(self) -> int:
        """Bytes of the data segment."""
        return HEADER_BYTES + self.capacity * self.slot_bytes

    @property
    def max_batch(self) -> int:
        """Most records a batch: half the capacity, so that a restarted producer never rewinds (I3)."""
        return self.capacity // 2
