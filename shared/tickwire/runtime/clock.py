"""The two clocks. Latency and staleness use the monotonic one; the wall clock is only written down."""

from __future__ import annotations

import time

monotonic_ns = time.monotonic_ns
"""CLOCK_MONOTONIC in nanoseconds, the same clock as `tickwire.ring.words.monotonic_ns`."""

realtime_ns = time.time_ns
"""CLOCK_REALTIME in nanoseconds since 1970."""
