"""One backtest: replay, events, fills, figures."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tickwire.errors import ConfigError, FeedError
from tickwire.models import ModelFiles
from tickwire.models.engine_manifest import Precision
from tickwire.records import RecordArray, SignalKind
from tickwire.runtime import config as configuration
from tickwire_ingest.config import IngestConfig
from tickwire_ingest.offline import read_ticks
from tickwire_models.backtest.events import to_events
from tickwire_models.backtest.figures import Figures, Floats, figures_of
from tickwire_models.backtest.signals import replay

_NS = 1_000_000_000
_FILLS = Path(__file__).with_name("fills.py")


@dataclass(frozen=True)
class Market:
    """What is assumed of the way to the venue and of the venue."""

    decision_us: int = 100
    """From receipt of the tick to the order's leaving: what the pipeline takes."""
    latency_us: int = 500
    """To the venue, and back."""
    maker_fee: float = 0.0
    """Share of the value traded."""
    taker_fee: float = 0.0
    interval_s: float = 1.0
    """Of the equity curve."""


@dataclass(frozen=True)
class Backtest:
    """What one came to."""

    figures: Figures
    equity: Floats
    position: Floats
    signals: int


def run(
    config: Path,
    files: ModelFiles,
    precision: Precision,
    symbol: str,
    *,
    seconds: float | None,
    market: Market,
    python: str,
) -> Backtest:
    """Backtest one precision of a model on one symbol.

    Args:
        config: The host's TOML, with the captures.
        files: The model.
        precision: Which of its graphs.
        symbol: `venue:name`.
        seconds: Capture time; all if None.
        market: Latencies and fees.
        python: Interpreter that has hftbacktest.

    Raises:
        ConfigError: The host has no such symbol, or `python` has no hftbacktest.
        FeedError: Replay or fills fail.
    """
    run_config, ingest = configuration.load(config, "ingest", IngestConfig)
    symbol_id = run_config.symbols.id_of(symbol)
    if symbol_id is None:
        raise ConfigError(f"{config}: must have the symbol {symbol!r}, has none of that name")
    instrument = run_config.symbols[symbol_id]
    captures = [capture for capture in ingest.captures if capture.format == instrument.venue]
    ticks = read_ticks(captures, run_config.symbols, folder=run_config.folder, align=ingest.align)
    events = to_events(ticks, instrument, symbol_id)
    if seconds is not None:
        events = events[events["local_ts"] < events["local_ts"][0] + int(seconds * _NS)]
    signals = replay(config, files, precision, seconds)
    ours = signals[(signals["symbol_id"] == symbol_id) & (signals["kind"] != SignalKind.BARRIER)]
    price, quantity = float(instrument.price_increment), float(instrument.quantity_increment)
    return fill(events, ours, price, quantity, market=market, python=python)


def fill(
    events: npt.NDArray[np.void],
    signals: RecordArray,
    price_increment: float,
    quantity_increment: float,
    *,
    market: Market,
    python: str,
) -> Backtest:
    """Let hftbacktest fill what signals ask for.

    Raises:
        ConfigError: `python` has no hftbacktest.
        FeedError: It fails.
    """
    traded = signals["quantity_units"][signals["quantity_units"] > 0]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(
            source,
            events=events,
            at_ns=signals["receive_time_ns"] + market.decision_us * 1000,
            action=signals["action"].astype(np.int64),
            price=signals["limit_price_units"] * price_increment,
            lot=float(traded[0]) * quantity_increment if len(traded) else quantity_increment,
            price_increment=price_increment,
            quantity_increment=quantity_increment,
            interval_ns=int(market.interval_s * _NS),
            latency_ns=market.latency_us * 1000,
            maker=market.maker_fee,
            taker=market.taker_fee,
        )
        command = [python, str(_FILLS), str(source), str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's interpreter
        if done.returncode != 0:
            if "No module named 'hftbacktest'" in done.stderr:
                raise ConfigError(
                    f"{python}: must have hftbacktest, has not; pip install 'tickwire[backtest]' in an environment of "
                    "its own (it caps numpy below 2.3) and name its interpreter with --python"
                )
            raise FeedError(f"fills: hftbacktest must end well, did not: {done.stderr[-1500:]}")
        found = np.load(target)
        figures = figures_of(
            found["equity"],
            found["position"],
            interval_s=market.interval_s,
            trades=int(found["trades"]),
            traded=float(found["traded"]),
            fees=float(found["fees"]),
        )
        return Backtest(figures, found["equity"], found["position"], len(signals))
