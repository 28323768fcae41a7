"""`tickwire ring`: the rings of this host, whatever their prefixes; reads shared memory only, but for `rm`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Column, Table

from tickwire.errors import RingError, RingNotFoundError
from tickwire.ring.discovery import find_rings
from tickwire.ring.inspect import RingView, inspect_named
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.options import config_option, prefix_of, prefix_option
from tickwire_ctl.ring_values import consumer_text, looked_at_twice, producer_text
from tickwire_ctl.stale import remove_stale, tickwire_prefixes

Command = Callable[..., Any]
Look = dict[str, RingView | str]
"""Each ring's name with what was seen, or why nothing could be."""

_only_prefix = click.option("--prefix", help="Only this prefix; by default all of this host.")
_as_json = click.option("--json", "as_json", is_flag=True, help="One JSON value.")


def _interval(default: float) -> Callable[[Command], Command]:
    kind = click.FloatRange(min=0.01)
    return click.option("--interval-s", type=kind, default=default, show_default=True, help="Between two looks: rates.")


@click.group("ring")
def ring_group() -> None:
    """Look at the rings of this host; remove those of dead runs."""


@ring_group.command()
@_only_prefix
@_interval(0.5)
@_as_json
@reports_errors
def ls(prefix: str | None, interval_s: float, as_json: bool) -> None:
    """List all rings: mode, rate, fill, producer, consumers with lag and lost."""
    before = _look(prefix)
    time.sleep(interval_s)
    rows = _rows(before, _look(prefix))
    if as_json:
        print(msgspec.json.encode(rows).decode())
    elif not rows:
        print("no rings" + ("" if prefix is None else f" with prefix {prefix!r}"))
    else:
        Console().print(_table(rows))


@ring_group.command()
@click.argument("name")
@config_option
@prefix_option
@_interval(0.5)
@_as_json
@reports_errors
def show(name: str, config: Path, prefix: str | None, interval_s: float, as_json: bool) -> None:
    """Show one ring: NAME as `ring ls` prints it, or without prefix that of the configuration's run."""
    full = name if "." in name else f"{prefix_of(prefix, config)}.{name}"
    before = inspect_named(full)
    time.sleep(interval_s)
    view = inspect_named(full)
    if view is None:
        raise RingNotFoundError(f"ring {full!r}: must exist, does not; `tickwire ring ls` shows those that do")
    values = looked_at_twice(before, view)
    if as_json:
        print(msgspec.json.encode(values).decode())
        return
    consumers = Table("consumer", "lag", "lost", "alive", "evicted", "holds the producer back", "pid")
    for c in values.pop("consumers"):
        holds = not c["observer"] and not c["evicted"]
        states = ("yes" if state else "no" for state in (c["alive"], c["evicted"], holds))
        consumers.add_row(c["name"], str(c["lag"]), str(c["lost"]), *states, str(c["pid"]))
    for key, value in values.items():
        print(f"{key:18} {value}")
    Console().print(consumers)


@ring_group.command()
@_only_prefix
@_interval(1.0)
@click.option("--count", type=click.IntRange(min=1), help="End after so many.")
@reports_errors
def watch(prefix: str | None, interval_s: float, count: int | None) -> None:
    """Show all rings again and again, until Ctrl-C."""
    interrupt = Interrupt()
    console = Console()
    before = _look(prefix)
    shown = 0
    with Live(console=console, auto_refresh=False) as live:
        show_table: Callable[[Table], None] = (
            (lambda table: live.update(table, refresh=True)) if console.is_terminal else console.print
        )
        while shown != count and not interrupt.wait(interval_s):
            after = _look(prefix)
            show_table(_table(_rows(before, after)))
            before = after
            shown += 1


@ring_group.command()
@click.option("--stale", is_flag=True, help="Only segments of dead runs; there is no other kind of removal.")
@_only_prefix
@reports_errors
def rm(stale: bool, prefix: str | None) -> None:
    """Remove the segments of dead runs (--stale), prefix by prefix where nobody is alive."""
    if not stale:
        raise click.UsageError("only stale segments are removed: say --stale; a live run is ended by `tickwire down`")
    removals = [remove_stale(each) for each in ([prefix] if prefix is not None else tickwire_prefixes())]
    for removal in removals:
        if removal.removed:
            print(f"removed {len(removal.removed)} segments of {removal.prefix!r}: {', '.join(removal.removed)}")
        for name, why in removal.left.items():
            print(f"left {name}: {why}")
    if not any(removal.removed for removal in removals):
        print("removed nothing" + ("" if prefix is None else f" of {prefix!r}"))


def _look(prefix: str | None) -> Look:
    seen: Look = {}
    for name in find_rings(prefix):
        try:
            view = inspect_named(name)
        except RingError as error:
            seen[name] = str(error)
        else:
            if view is not None:  # None: removed since it was found
                seen[name] = view
    return seen


def _rows(before: Look, after: Look) -> list[dict[str, Any]]:
    rows = []
    for name, seen in after.items():
        earlier = before.get(name)
        if isinstance(seen, str):
            rows.append({"name": name, "error": seen})
        else:
            rows.append(looked_at_twice(earlier if isinstance(earlier, RingView) else None, seen))
    return rows


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(Column("ring", overflow="fold"), "mode", "rate", "fill", "producer", "consumers")
    for row in rows:
        if "error" in row:
            table.add_row(row["name"], "-", "-", "-", "-", row["error"])
            continue
        rate = "-" if row["rate_per_s"] is None else f"{row['rate_per_s']:,.0f}/s"
        consumers = "\n".join(map(consumer_text, row["consumers"]))
        table.add_row(row["name"], row["mode"], rate, f"{row['fill_ratio']:.0%}", producer_text(row), consumers)
    return table
