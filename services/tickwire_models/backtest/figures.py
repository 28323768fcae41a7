"""What a backtest comes to: profit, Sharpe ratio, turnover, hit rate, drawdown; and a picture of it."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

_DAY_S = 86_400.0
Floats = npt.NDArray[np.float64]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Of one symbol and model. Money in the quote currency."""

    pnl: float
    """Profit and loss at the end, after fees, open positions at the mid."""
    sharpe: float
    """Of the changes of equity, scaled to a day: mean / deviation * sqrt(86,400 s / interval); 0 if flat."""
    turnover: float
    """Value traded."""
    fees: float
    trades: int
    hit_rate: float
    """Share of the intervals with a position in which equity rose, of those in which it moved; 0 if none."""
    drawdown: float
    """Largest fall of equity from an earlier high."""


def figures_of(
    equity: Floats, position: Floats, *, interval_s: float, trades: int, traded: float, fees: float
) -> Figures:
    """Compute the figures.

    Args:
        equity: At the end of each interval, shape (n,).
        position: The same.
        interval_s: Length of an interval.
        trades: Fills.
        traded: Value of all fills.
        fees: Paid.
    """
    if not len(equity):
        return Figures(pnl=0.0, sharpe=0.0, turnover=traded, fees=fees, trades=trades, hit_rate=0.0, drawdown=0.0)
    changes = np.diff(equity, prepend=0.0)
    deviation = float(changes.std())
    sharpe = float(changes.mean()) / deviation * math.sqrt(_DAY_S / interval_s) if deviation > 0 else 0.0
    held = np.concatenate([[0.0], position[:-1]]) != 0
    moved = held & (changes != 0)
    highs = np.maximum.accumulate(np.maximum(equity, 0.0))
    return Figures(
        pnl=float(equity[-1]),
        sharpe=sharpe,
        turnover=traded,
        fees=fees,
        trades=trades,
        hit_rate=float((changes[moved] > 0).mean()) if moved.any() else 0.0,
        drawdown=float((highs - equity).max()),
    )


def draw(path: Path, curves: dict[str, tuple[Floats, Floats]], interval_s: float) -> None:
    """Draw equity and position of each curve over time into a PNG file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5), height_ratios=(3, 1))
    for label, (equity, position) in curves.items():
        seconds = np.arange(1, len(equity) + 1) * interval_s
        above.plot(seconds, equity, label=label)
        below.step(seconds, position, where="post")
    above.set_ylabel("equity after fees")
    above.legend()
    below.set_ylabel("position")
    below.set_xlabel("seconds of the capture")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
