"""A look as rows of text, one function a table."""

from __future__ import annotations

from tickwire.records import FlushReason
from tickwire.runtime import Histogram
from tickwire_ctl.observe import FRESH_S
from tickwire_ctl.ring_values import consumer_text, ring_values
from tickwire_ctl.summary import STAGES
from tickwire_ctl.top.look import Looker

Row = tuple[str, ...]

SERVICES = ("service", "state", "pid", "heartbeat", "in/s", "stalls")
RINGS = ("ring", "mode", "rate/s", "fill", "producer", "consumers")
STAGE = ("stage", "p50 us", "p99 us", "max us", "count")
INFERENCE = ("inference", "")
SYMBOLS = ("symbol", "book", "window", "ticks/s", "rows/s", "buy", "sell", "hold", "killed")

_INPUTS = {"ingest": "frames", "features": "ticks", "inference": "rows", "router": "predictions"}
_STALLS = {"features": "stalls", "inference": "scheduler_stalls", "router": "stalls"}
_LOSSES = (
    "conflated",
    "expired",
    "late",
    "withdrawn",
    "failed_input",
    "failed_output",
    "failed_overrun",
    "failed_engine",
)


def service_rows(look: Looker) -> list[Row]:
    """State, heartbeat and load of each service."""
    rows: list[Row] = []
    for name, service in look.services.items():
        reader = service.reader
        if reader is None:
            rows.append((name, "ABSENT", "-", "-", "-", "-"))
            continue
        age_s = (look.now_ns - reader.heartbeat_ns) / 1e9
        silent = age_s > FRESH_S and reader.state.name not in ("STOPPED", "FAILED")
        stalls = f"{service.total(_STALLS[name]):,}" if name in _STALLS else "-"
        state = f"{reader.state.name} silent" if silent else reader.state.name
        rows.append((name, state, str(reader.pid), f"{age_s:.1f} s", f"{service.rate(_INPUTS[name]):,.0f}", stalls))
    return rows


def ring_rows(look: Looker) -> list[Row]:
    """Rate, fill, lag and loss of each ring."""
    rows: list[Row] = []
    for view, rate in look.rings():
        values = ring_values(view)
        consumers = ", ".join(consumer_text(c) for c in values["consumers"] if c["alive"] or not c["observer"])
        rows.append(
            (
                view.name,
                values["mode"],
                "-" if rate is None else f"{rate:,.0f}",
                f"{view.fill_ratio:.1%}",
                "alive" if view.producer_alive else "none",
                consumers or "-",
            )
        )
    return rows


def stage_rows(look: Looker) -> list[Row]:
    """Where the time goes, from receive to signal."""
    router, features = look.services["router"], look.services["features"]
    names = (*STAGES, "tick_to_signal", "tick_to_signal_less_engine")
    rows = [_stage(name, router.durations(name)) for name in names]
    return [*rows, _stage("receive_to_row", features.durations("receive_to_row"))]


def inference_rows(look: Looker) -> list[Row]:
    """Batches, what was given up, and how the model does."""
    inference = look.services["inference"]
    reader = inference.reader
    if reader is None:
        return [("engine", "ABSENT")]
    batches, predictions = inference.grown("batches"), inference.grown("predictions")
    reasons = {
        reason.name: inference.grown(f"flush_{reason.name.lower()}")
        for reason in FlushReason
        if reason is not FlushReason.NONE
    }
    engine = inference.durations("engine")
    rows = [
        ("engine", "serves" if reader.gauge("engine_alive") else "FAILED its last batch"),
        ("window", f"{reader.gauge('window_rows')} rows"),
        ("engine p50, p99", "-" if not engine or not engine.count else _quantiles(engine)),
        ("batches/s", f"{inference.rate('batches'):,.1f}"),
        ("predictions/s", f"{inference.rate('predictions'):,.1f}"),
        ("mean batch", f"{predictions / batches:.1f}" if batches else "-"),
        ("closed by", ", ".join(f"{name} {n / batches:.0%}" for name, n in reasons.items() if n and batches) or "-"),
    ]
    return [*rows, *((name, f"{inference.total(name):,}") for name in _LOSSES)]


def symbol_rows(look: Looker) -> list[Row]:
    """Book, window, rates and signals of each symbol."""
    features, router = look.services["features"], look.services["router"]
    return [
        (
            label,
            "valid" if features.symbol("book_valid", place) else "invalid",
            str(features.symbol("window_rows", place)),
            f"{features.symbol_rate('ticks', place):,.0f}",
            f"{features.symbol_rate('rows', place):,.0f}",
            *(f"{router.symbol(action, place):,}" for action in ("buy", "sell", "hold")),
            "killed" if router.symbol("killed", place) else "",
        )
        for place, label in enumerate(look.symbols)
    ]


def _stage(name: str, durations: Histogram | None) -> Row:
    if durations is None or not durations.count:
        return (name, "-", "-", "-", "0")
    us = (durations.p50_ns / 1e3, durations.p99_ns / 1e3, durations.max_ns / 1e3)
    return (name, *(f"{value:,.1f}" for value in us), f"{durations.count:,}")


def _quantiles(durations: Histogram) -> str:
    return f"{durations.p50_ns / 1e3:,.0f} us, {durations.p99_ns / 1e3:,.0f} us"
