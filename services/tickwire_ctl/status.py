"""`tickwire status`: what runs, how it does, and an exit code for scripts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tickwire_ctl.errors import reports_errors
from tickwire_ctl.observe import observe
from tickwire_ctl.options import config_option, prefix_of, prefix_option
from tickwire_ctl.summary_screen import wide_console

EXIT_HEALTHY = 0
EXIT_DEGRADED = 3
EXIT_DOWN = 4
_EXITS = {"healthy": EXIT_HEALTHY, "degraded": EXIT_DEGRADED, "down": EXIT_DOWN}


@click.command()
@config_option
@prefix_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@reports_errors
def status(config: Path, prefix: str | None, as_json: bool) -> None:
    """Show services, rings and symbols. Exit code 0: healthy, 3: degraded, 4: not running."""
    seen = observe(prefix_of(prefix, config))
    if as_json:
        print(msgspec.json.encode(seen).decode())
    else:
        _show(wide_console(), seen)
    sys.exit(_EXITS[seen["health"]])


def _show(console: Console, seen: dict[str, Any]) -> None:
    console.print(f"prefix {seen['prefix']!r}: {seen['health']}" + (f" ({seen['why']})" if seen["why"] else ""))
    if seen["kill"]:
        console.print(f"killed, no BUY and no SELL: {seen['kill']}", style="bold yellow")
    services = Table("service", "state", "pid", "heartbeat age", title="services", title_justify="left")
    for name, service in seen["services"].items():
        age = service["heartbeat_age_s"]
        services.add_row(name, service["state"], str(service["pid"] or "-"), "-" if age is None else f"{age:.1f} s")
    console.print(services)
    if not seen["rings"]:
        return
    rings = Table(
        "ring", "mode", "published", "fill", "producer", "consumers (lag, lost)", title="rings", title_justify="left"
    )
    for name, ring in seen["rings"].items():
        consumers = ", ".join(
            f"{c['name']} ({c['lag']}, {c['lost']}){'' if c['alive'] else ' dead'}" for c in ring["consumers"]
        )
        producer = "alive" if ring["producer_alive"] else "none"
        rings.add_row(name, ring["mode"], str(ring["published"]), f"{ring['fill_ratio']:.0%}", producer, consumers)
    console.print(rings)
    symbols = Table("symbol", "book", "window", "rows", "buy", "sell", "hold", title="symbols", title_justify="left")
    for name, symbol in seen["symbols"].items():
        symbols.add_row(
            name,
            "valid" if symbol["book_valid"] else "invalid",
            str(symbol["window_rows"]),
            *(str(symbol[key]) for key in ("rows", "buy", "sell", "hold")),
        )
    console.print(symbols)
