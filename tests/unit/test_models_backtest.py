"""Backtests: events that give the venue's book, figures by hand, fills by hftbacktest where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tickwire.errors import ConfigError
from tickwire.records import SIGNAL, Instrument, SymbolTable
from tickwire.records.signal import Action, SignalKind
from tickwire_ingest.config import CaptureConfig
from tickwire_ingest.offline import read_ticks
from tickwire_models.backtest.events import (
    BUY_EVENT,
    DEPTH_CLEAR_EVENT,
    DEPTH_EVENT,
    EVENT,
    EXCH_EVENT,
    LOCAL_EVENT,
    SELL_EVENT,
    TRADE_EVENT,
    to_events,
)
from tickwire_models.backtest.figures import figures_of
from tickwire_models.backtest.run import Backtest, Market, fill

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("TICKWIRE_BACKTEST_PYTHON", sys.executable)
BTC = Instrument(venue="binance_usdm", name="BTCUSDT", price_increment="0.1", quantity_increment="0.001")
SECOND = 1_000_000_000


def has_hftbacktest() -> bool:
    found = subprocess.run([PYTHON, "-c", "import hftbacktest"], capture_output=True, check=False)
    return found.returncode == 0


needs_hftbacktest = pytest.mark.skipif(
    not has_hftbacktest(), reason="needs hftbacktest: name an interpreter that has it in TICKWIRE_BACKTEST_PYTHON"
)


def test_events_rebuild_the_book_of_the_ticks():
    """Levels applied one by one give a book that is never crossed at the end of an event; stamps run forwards."""
    capture = CaptureConfig(path="usdm_btcusdt_20240808_first60s.gz", format="binance_usdm")
    chunks = list(read_ticks([capture], SymbolTable([BTC]), folder=ROOT / "deploy" / "captures"))
    events = to_events(chunks, BTC, 0)
    assert (np.diff(events["local_ts"]) >= 0).all()
    assert (np.diff(events["exch_ts"]) >= 0).all()
    assert (events["exch_ts"] <= events["local_ts"]).all()
    latency_ns = events["local_ts"] - events["exch_ts"]  # this venue's clock is ahead: it must not come out as none
    assert latency_ns.min() == 0
    assert np.median(latency_ns) > 100_000
    kinds = events["ev"] & 0xFF
    assert (kinds == TRADE_EVENT).sum() > 2000
    books: dict[int, dict[float, float]] = {BUY_EVENT: {}, SELL_EVENT: {}}
    for event, kind in zip(events, kinds, strict=True):
        side = int(event["ev"]) & (BUY_EVENT | SELL_EVENT)
        if kind == DEPTH_CLEAR_EVENT:
            books = {BUY_EVENT: {}, SELL_EVENT: {}}
        elif kind != TRADE_EVENT:
            if event["qty"] == 0:
                books[side].pop(float(event["px"]), None)
            else:
                books[side][float(event["px"])] = float(event["qty"])
    assert 0 < min(books[SELL_EVENT]) - max(books[BUY_EVENT]) < 5


def test_figures_of_a_known_curve():
    """Profit, Sharpe, hit rate and drawdown, computed by hand."""
    equity = np.array([0.0, 2.0, 1.0, 4.0])
    position = np.array([1.0, 1.0, 1.0, 0.0])
    found = figures_of(equity, position, interval_s=1.0, trades=2, traded=100.0, fees=0.5)
    changes = np.array([0.0, 2.0, -1.0, 3.0])
    assert found.pnl == 4.0
    assert found.sharpe == pytest.approx(changes.mean() / changes.std() * np.sqrt(86_400))
    assert found.hit_rate == pytest.approx(2 / 3)
    assert found.drawdown == 1.0
    flat = figures_of(np.zeros(5), np.zeros(5), interval_s=1.0, trades=0, traded=0.0, fees=0.0)
    assert (flat.sharpe, flat.hit_rate, flat.drawdown) == (0.0, 0.0, 0.0)
    assert figures_of(np.zeros(0), np.zeros(0), interval_s=1.0, trades=0, traded=0.0, fees=0.0).pnl == 0.0


def market_with_a_jump() -> np.ndarray:
    """A deep book at 100.0 / 100.1 that moves to 110.0 / 110.1 after ten of twenty seconds."""
    events = []

    def level(at_ns: int, side: int, price: float, quantity: float) -> None:
        events.append((DEPTH_EVENT | side | EXCH_EVENT | LOCAL_EVENT, at_ns, at_ns, price, quantity, 0, 0, 0.0))

    for tenth in range(200):
        at_ns = (1000 * SECOND) + tenth * SECOND // 10
        bid = 100.0 if tenth < 100 else 110.0
        if tenth == 100:
            level(at_ns, SELL_EVENT, 100.1, 0.0)
        level(at_ns, SELL_EVENT, bid + 0.1, 50.0 + tenth % 2)
        level(at_ns, BUY_EVENT, bid, 50.0 + tenth % 2)
    return np.array(events, EVENT)


def signals_of(*steps: tuple[float, Action, float]) -> np.ndarray:
    signals = np.zeros(len(steps), SIGNAL)
    for signal, (at_s, action, price) in zip(signals, steps, strict=True):
        signal["receive_time_ns"] = 1000 * SECOND + int(at_s * SECOND)
        signal["kind"], signal["action"] = SignalKind.SIGNAL, action
        signal["quantity_units"] = 1000 if action != Action.HOLD else 0
        signal["limit_price_units"] = round(price * 10)
    return signals


def filled(*steps: tuple[float, Action, float]) -> Backtest:
    return fill(market_with_a_jump(), signals_of(*steps), 0.1, 0.001, market=Market(), python=PYTHON)


@needs_hftbacktest
def test_fills_buying_before_a_rise_earns_it_and_selling_loses_it():
    """One lot held over a jump of ten: plus ten, minus ten; a limit away from the market is not filled."""
    buy = filled((2.0, Action.BUY, 100.1), (15.0, Action.HOLD, 0.0))
    assert buy.figures.pnl == pytest.approx(9.9, abs=0.11)
    assert (buy.figures.trades, buy.position.max(), buy.position[-1]) == (2, 1.0, 0.0)
    sell = filled((2.0, Action.SELL, 100.0), (15.0, Action.HOLD, 0.0))
    assert sell.figures.pnl == pytest.approx(-10.1, abs=0.11)
    assert sell.figures.drawdown > 9
    away = filled((2.0, Action.BUY, 90.0))  # far below the bid: it waits in the queue for ever
    assert (away.figures.pnl, away.figures.trades) == (0.0, 0)


def test_fills_without_hftbacktest_say_what_to_do(tmp_path):
    """An interpreter that lacks it is named, with the way to get it."""
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'hftbacktest'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(ConfigError, match="must have hftbacktest"):
        fill(market_with_a_jump(), signals_of(), 0.1, 0.001, market=Market(), python=str(bare))
