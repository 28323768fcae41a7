"""`tickwire model backtest`: what a version or precision earns beside another, on the same recording."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tickwire.errors import ConfigError, TickwireError
from tickwire.models import ModelRegistry
from tickwire.models.engine_manifest import PRECISIONS
from tickwire_models.backtest.figures import draw
from tickwire_models.backtest.run import Backtest, Market, run
from tickwire_models.engine_cli import config_option
from tickwire_models.registry_cli import models_option

MAX_SHARPE_DIFFERENCE = 0.05
"""Of the gate for another precision: a share of the reference's Sharpe ratio."""


@click.command()
@click.argument("model")
@click.option("--against", help="Another NAME[@VERSION][:PRECISION] on the same recording.")
@click.option("--symbol", default="binance_usdm:BTCUSDT", show_default=True)
@click.option("--seconds", type=click.FloatRange(min=1), help="Capture time; all of it unless given.")
@click.option("--latency-us", type=click.IntRange(min=0), default=500, show_default=True, help="Each way to the venue.")
@click.option("--fee", type=float, default=0.0, show_default=True, help="Share of the value traded.")
@click.option("--python", default=sys.executable, help="Interpreter that has hftbacktest; this one unless given.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="PNG with equity and position.")
@models_option
@config_option
def backtest(
    model: str,
    against: str | None,
    symbol: str,
    seconds: float | None,
    latency_us: int,
    fee: float,
    python: str,
    json_file: Path | None,
    plot: Path | None,
    models: Path,
    config: Path,
) -> None:
    """Replay the captures with MODEL (name[@version][:precision]) exactly as live, and fill its signals.

    With --against, exits with 1 if the Sharpe ratios differ by 5 % or more: the gate of another precision.
    """
    market = Market(latency_us=latency_us, maker_fee=fee, taker_fee=fee)
    found: dict[str, Backtest] = {}
    try:
        for label in (model, *([against] if against else [])):
            text, _, precision = label.partition(":")
            name, _, version = text.partition("@")
            if precision and precision not in PRECISIONS:
                raise ConfigError(f"{label}: precision must be one of {', '.join(PRECISIONS)}, is {precision!r}")
            files = ModelRegistry(models).resolve(name, version or None)
            wanted = next(entry for entry in PRECISIONS if entry == (precision or "fp32"))
            found[label] = run(config, files, wanted, symbol, seconds=seconds, market=market, python=python)
    except TickwireError as error:
        raise click.ClickException(str(error)) from error
    table = Table("model", "signals", "trades", "PnL", "Sharpe a day", "turnover", "hit rate", "drawdown", title=symbol)
    for label, result in found.items():
        f = result.figures
        cells = (result.signals, f.trades, f"{f.pnl:.2f}", f"{f.sharpe:.3f}", f"{f.turnover:.0f}", f"{f.hit_rate:.3f}")
        table.add_row(label, *map(str, cells), f"{f.drawdown:.2f}")
    Console().print(table)
    if json_file is not None:
        reports = {label: msgspec.to_builtins(result.figures) for label, result in found.items()}
        json_file.write_text(json.dumps(reports, indent=2) + "\n")
    if plot is not None:
        draw(plot, {label: (result.equity, result.position) for label, result in found.items()}, market.interval_s)
    if against is not None:
        difference = sharpe_difference(found[model], found[against])
        click.echo(f"Sharpe ratios differ by {difference:.4f}, limit {MAX_SHARPE_DIFFERENCE}")
        if difference >= MAX_SHARPE_DIFFERENCE:
            raise click.exceptions.Exit(1)


def sharpe_difference(one: Backtest, other: Backtest) -> float:
    """Return the difference of two Sharpe ratios as a share of the larger one; 0 if both are 0."""
    a, b = one.figures.sharpe, other.figures.sharpe
    return abs(a - b) / max(abs(a), abs(b)) if a or b else 0.0
