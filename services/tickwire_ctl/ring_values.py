"""A look at a ring as plain values, for JSON and for tables."""

from __future__ import annotations

from typing import Any

from tickwire.ring.inspect import RingView

SILENT_S = 2.0
"""Age of a live producer's heartbeat from which it counts as silent: it beats about ten times a second."""


def ring_values(view: RingView) -> dict[str, Any]:
    """Return mode, counts, producer and consumers of a ring."""
    return {
        "mode": view.mode.name.lower(),
        "capacity": view.capacity,
        "slot_bytes": view.slot_bytes,
        "published": view.published,
        "fill_ratio": round(view.fill_ratio, 4),
        "producer_alive": view.producer_alive,
        "producer_pid": view.producer_pid,
        "producer_silent_s": round((view.looked_ns - view.heartbeat_ns) / 1e9, 3),
        "epoch": view.epoch,
        "consumers": [
            {
                "name": c.name,
                "lag": c.lag,
                "lost": c.lost,
                "alive": c.alive,
                "evicted": c.evicted,
                "observer": c.observer,
                "pid": c.pid,
            }
            for c in view.consumers
        ],
    }


def looked_at_twice(before: RingView | None, after: RingView) -> dict[str, Any]:
    """Return the values of a ring with its rate between two looks, None where there is none."""
    rate = after.rate_since(before) if before is not None else None
    name = f"{after.prefix}.{after.name}"
    return {"name": name, "rate_per_s": None if rate is None else round(rate, 1), **ring_values(after)}


def producer_text(values: dict[str, Any]) -> str:
    """Say in a word or two how the producer of a ring that was looked at twice is."""
    if not values["producer_alive"]:
        return "none"
    if values["producer_silent_s"] >= SILENT_S and not values["rate_per_s"]:
        return f"silent {values['producer_silent_s']:.0f} s"
    return "alive"


def consumer_text(consumer: dict[str, Any]) -> str:
    """Say how far a consumer is behind, what it has lost and whether it lives."""
    state = ", evicted" if consumer["evicted"] else ""
    state += "" if consumer["alive"] else ", dead"
    return f"{consumer['name']} (lag {consumer['lag']}, lost {consumer['lost']}{state})"
