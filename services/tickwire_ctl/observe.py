"""What can be seen of a run from outside: services, rings, symbols. Reads shared memory only."""

from __future__ import annotations

from typing import Any

from tickwire.errors import RingError, RingNotFoundError
from tickwire.ring.inspect import RingView, inspect_ring
from tickwire.ring.symbol_segment import read_symbols
from tickwire.runtime import ServiceState, StatsReader
from tickwire.runtime.clock import monotonic_ns
from tickwire.topology import RINGS
from tickwire_ctl.host import ORDER
from tickwire_ctl.ring_values import ring_values

FRESH_S = 2.0


def observe(prefix: str) -> dict[str, Any]:
    """Return health, what is killed, services, rings and symbols of a prefix.

    Health is `healthy` when all services are READY with fresh heartbeats, `down` when none is alive, else `degraded`.
    """
    readers = {service: _reader(prefix, service) for service in ORDER}
    try:
        services = {name: _service(reader) for name, reader in readers.items()}
        alive = {name: s["state"] for name, s in services.items() if _is_alive(s)}
        bad = [name for name in services if alive.get(name) != "READY"]
        health = "healthy" if not bad else "degraded" if alive else "down"
        return {
            "prefix": prefix,
            "health": health,
            "why": "" if not bad else f"not READY: {', '.join(bad)}",
            "kill": _kill(readers["router"]),
            "services": services,
            "rings": {spec.name: _ring(view) for spec in RINGS if (view := inspect_ring(prefix, spec)) is not None},
            "symbols": _symbols(prefix, readers),
        }
    finally:
        for reader in readers.values():
            if reader is not None:
                reader.close()


def _reader(prefix: str, service: str) -> StatsReader | None:
    try:
        return StatsReader.attach(prefix, service)
    except RingNotFoundError:
        return None


def _service(reader: StatsReader | None) -> dict[str, Any]:
    if reader is None:
        return {"state": "ABSENT", "pid": None, "heartbeat_age_s": None}
    return {
        "state": ServiceState(reader.state).name,
        "pid": reader.pid,
        "heartbeat_age_s": round((monotonic_ns() - reader.heartbeat_ns) / 1e9, 3),
    }


def _is_alive(service: dict[str, Any]) -> bool:
    return service["state"] not in ("ABSENT", "STOPPED", "FAILED") and bool(service["heartbeat_age_s"] < FRESH_S)


def _ring(view: RingView) -> dict[str, Any]:
    values = ring_values(view)
    # A reader that has left holds nobody back.
    values["consumers"] = [c for c in values["consumers"] if c["alive"] or not c["observer"]]
    return values


def _kill(router: StatsReader | None) -> str:
    # What the router obeys, which is what counts.
    if router is None:
        return ""
    if router.gauge("kill_generation") < 0:
        return "everything: the kill file cannot be read"
    if router.gauge("killed_everything"):
        return "everything"
    return ", ".join(label for label, killed in zip(router.symbols, router.per_symbol("killed"), strict=True) if killed)


def _symbols(prefix: str, readers: dict[str, StatsReader | None]) -> dict[str, dict[str, int]]:
    try:
        table = read_symbols(prefix)
    except RingError:
        return {}
    columns: dict[str, list[int]] = {}
    for service, names in (
        ("features", ("book_valid", "window_rows", "rows")),
        ("router", ("buy", "sell", "hold", "killed")),
    ):
        reader = readers[service]
        for name in names:
            columns[name] = [int(v) for v in reader.per_symbol(name)] if reader is not None else [0] * len(table)
    return {
        instrument.label: {name: values[symbol_id] for name, values in columns.items()}
        for symbol_id, instrument in enumerate(table)
    }
