"""`tickwire tail`: signals as they are published."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from tickwire.client import Lapped, Signal, SignalReader, Start
from tickwire.records import Action, SignalKind
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.options import config_option, pass_interrupt, prefix_of, prefix_option
from tickwire_ctl.signal_line import signal_line

_SLICE_S = 0.2


@click.command()
@config_option
@prefix_option
@click.option("--symbol", "symbols", multiple=True, help="Only this symbol (venue:name); may be repeated.")
@click.option(
    "--action", "actions", multiple=True, type=click.Choice([action.name for action in Action]), help="Only these."
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--oldest", is_flag=True, help="Begin with the signals that are still on the ring.")
@click.option(
    "--timeout-s",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long the ring may take to appear.",
)
@pass_interrupt
@reports_errors
def tail(
    interrupt: Interrupt,
    config: Path,
    prefix: str | None,
    symbols: tuple[str, ...],
    actions: tuple[str, ...],
    count: int | None,
    as_json: bool,
    oldest: bool,
    timeout_s: float,
) -> None:
    """Print signals as they are published, until Ctrl-C or until the run ends."""
    start = Start.OLDEST if oldest else Start.HEAD
    try:
        with interrupt.immediate():
            reader = SignalReader(prefix_of(prefix, config), start=start, timeout_s=timeout_s)
    except KeyboardInterrupt:
        return
    with reader:
        known = {instrument.label for instrument in reader.symbols}
        unknown = sorted(set(symbols) - known)
        if unknown:
            raise ValueError(f"symbol {unknown[0]!r}: must be one of the run's, which are {', '.join(sorted(known))}")
        printed = 0
        while not interrupt.requested:
            stopped = reader.stopped  # looked at first: what was published before the stop is still printed
            if not reader.wait(_SLICE_S):
                if stopped:
                    return
                continue
            batch = reader.poll()
            if isinstance(batch, Lapped):
                print(f"lost {batch.lost} signals", file=sys.stderr)
                continue
            for signal in batch:
                if _wanted(signal, symbols, actions):
                    print(_json_of(signal) if as_json else signal_line(signal), flush=True)
                    printed += 1
                    if printed == count:
                        return


def _wanted(signal: Signal, symbols: tuple[str, ...], actions: tuple[str, ...]) -> bool:
    return (not symbols or signal.symbol in symbols) and (not actions or signal.action.name in actions)


def _json_of(signal: Signal) -> str:
    values = msgspec.structs.asdict(signal)
    values["kind"] = SignalKind(signal.kind).name
    for name in ("action", "reason", "engine"):
        values[name] = values[name].name
    return msgspec.json.encode(values, enc_hook=str).decode()
