"""The four rings of a Tickwire host: which records travel between which processes, and what a slow reader means."""

from __future__ import annotations

from tickwire.records import PREDICTION, ROW, SIGNAL, TICK
from tickwire.records.features import feature_hash
from tickwire.ring.spec import RingMode, RingSpec

TICKS = RingSpec(name="ticks", mode=RingMode.LOSSLESS, capacity=65_536, dtype=TICK)
"""Ingest to features. Live ingest drops whole venue events on back-pressure; replay waits."""

ROWS = RingSpec(
    name="rows", mode=RingMode.LOSSY, capacity=8_192, dtype=ROW, schema_extra=(f"features {feature_hash():#x}",)
)
"""Features to inference, which repairs a lap from the windows store."""

PREDICTIONS = RingSpec(name="predictions", mode=RingMode.LOSSLESS, capacity=8_192, dtype=PREDICTION)
"""Inference to the router; inference's batches wait on back-pressure."""

SIGNALS = RingSpec(name="signals", mode=RingMode.LOSSY, capacity=65_536, dtype=SIGNAL)
"""The router to strategies; a slow strategy laps only itself."""

RINGS = (TICKS, ROWS, PREDICTIONS, SIGNALS)
