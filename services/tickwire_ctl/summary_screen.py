"""The summary of a run, for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tickwire_ctl.summary import Summary

_FILE_WIDTH = 120
_QUANTILES = ("p50", "p99", "p99.9", "max")


def wide_console() -> Console:
    """Return a console for tables: the terminal's width, and a fixed one where output goes to a file or pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)


def show_summary(console: Console, summary: Summary) -> None:
    """Print the summary."""
    ticks = ", ".join(f"{venue} {count:,}" for venue, count in summary.ticks.items())
    sizes = ", ".join(f"{size}: {count:,}" for size, count in summary.batch_sizes.items())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.flush_reasons.items())
    signals = ", ".join(f"{action} {count:,}" for action, count in summary.signals.items())
    lost = ", ".join(f"{ring} {count}" for ring, count in summary.lost.items())
    facts = Table.grid(padding=(0, 2))
    for name, value in (
        ("time", f"{summary.seconds:.1f} s"),
        ("ticks", ticks),
        ("rows", f"{summary.rows:,}"),
        ("batches", f"{summary.batches:,}  (size: {sizes or '-'};  closed by: {reasons or '-'})"),
        ("requests", f"conflated {summary.conflated:,}, expired {summary.expired:,}, failed {summary.failed:,}"),
        ("signals", f"{signals}  (seen by this reader: {summary.signals_seen:,})"),
        ("lost records", lost),
        ("gaps", f"{summary.gaps}, unreadable lines {summary.unreadable_lines}"),
    ):
        facts.add_row(name, value)
    console.print(facts)
    _show_latency(console, summary)
    _show_symbols(console, summary)


def _show_latency(console: Console, summary: Summary) -> None:
    table = Table(title="latency, microseconds", title_justify="left")
    table.add_column("stage", no_wrap=True)
    for name in ("signals", *_QUANTILES):
        table.add_column(name, justify="right")
    for stage, values in summary.stages_us.items():
        table.add_row(stage.replace("_", " "), f"{values['count']:,.0f}", *(f"{values[q]:,.1f}" for q in _QUANTILES))
    table.add_section()
    for label, values in (
        ("tick to signal", summary.tick_to_signal_us),
        ("... less engine and its queue", summary.tick_to_signal_less_engine_us),
    ):
        table.add_row(label, f"{values['count']:,.0f}", *(f"{values[q]:,.1f}" for q in _QUANTILES))
    console.print(table)


def _show_symbols(console: Console, summary: Summary) -> None:
    table = Table(title="symbols", title_justify="left")
    table.add_column("symbol", no_wrap=True)
    for name in ("ticks", "rows", "window", "buy", "sell", "hold"):
        table.add_column(name, justify="right")
    table.add_column("why no signal", no_wrap=True)
    for label, values in summary.symbols.items():
        counts = [f"{values['signals'][name]:,}" for name in ("buy", "sell", "hold")]
        numbers = [f"{values[name]:,}" for name in ("ticks", "rows", "window_rows")]
        table.add_row(label, *numbers, *counts, values["why_no_signal"] or "")
    console.print(table)
