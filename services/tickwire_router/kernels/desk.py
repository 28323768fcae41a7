"""The router's desk: every array that its loop works on, as one tuple that kernels take whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import typeof

from tickwire.records import PREDICTION, SIGNAL, as_words
from tickwire.runtime import StatsArrays, private_stats
from tickwire_router.config import Rule
from tickwire_router.stats import ROUTER_STATS

POLL_PREDICTIONS = 256
"""Predictions taken from the ring at once; their signals are published as one batch."""

NEVER_NS = -(2**62)
"""Time of a signal that never was: longer than a second before any clock's time."""

PROGRESS = np.dtype(
    [
        ("next_prediction", "<u8"),  # predictions below this sequence have been dealt with
        ("prediction_mono_ns", "<i8"),  # publication of the newest of them
        ("outbox_end", "<i8"),  # signals waiting to be published
        ("kill_turn", "<u8"),  # `kill_turn` that the loop obeys
    ],
    align=True,
)
"""What the loop remembers besides arrays by symbol."""


class Desk(NamedTuple):
    """Arrays by purpose. Written by the hot thread alone, except where the comment says otherwise."""

    # Rules by symbol; constant.
    enter: npt.NDArray[np.float32]
    leave: npt.NDArray[np.float32]
    quantity_units: npt.NDArray[np.int64]
    limit_offset: npt.NDArray[np.int64]
    max_age_ns: npt.NDArray[np.int64]  # one value; negative = never stale
    event_clock: npt.NDArray[np.uint8]  # one value; 1 = the rate limit counts receive_time_ns (closed loop)
    # State by symbol.
    last_action: npt.NDArray[np.uint8]  # what the symbol's newest signal says
    acted_ns: npt.NDArray[np.int64]  # (n_symbols, max_signals_per_s): times of the newest BUY and SELL signals
    acted_at: npt.NDArray[np.int64]  # place of the oldest of them
    # Kill switch; written by the event loop.
    killed: npt.NDArray[np.uint8]  # 1 by symbol; the last one is for all
    kill_generation: npt.NDArray[np.int64]
    kill_turn: npt.NDArray[np.uint64]  # grows with each change of the two above
    # Polled predictions and signals on their way out, each with its words.
    predictions: npt.NDArray[Any]
    prediction_words: npt.NDArray[np.uint64]
    outbox: npt.NDArray[Any]
    outbox_words: npt.NDArray[np.uint64]
    timed: npt.NDArray[np.uint8]  # 1 = this signal of the outbox has the whole trace
    progress: npt.NDArray[Any]
    # Statistics (tickwire.runtime).
    counters: npt.NDArray[np.uint64]
    gauges: npt.NDArray[np.uint64]
    histograms: npt.NDArray[np.uint64]
    per_symbol: npt.NDArray[np.uint64]  # flat


def new_desk(
    rules: Sequence[Rule], max_age_ns: int, max_signals_per_s: int, closed_loop: bool, stats: StatsArrays
) -> Desk:
    """Return a desk on which no symbol has a signal yet and nothing is killed.

    Args:
        rules: One rule a symbol.
        max_age_ns: Staleness cut-off; not used in closed loop.
        max_signals_per_s: BUY and SELL signals of a symbol within any second.
        closed_loop: Whether event time takes the place of clocks.
        stats: Counters, gauges, histograms and per-symbol values.
    """
    n_symbols = len(rules)
    predictions = np.zeros(POLL_PREDICTIONS, PREDICTION)
    outbox = np.zeros(POLL_PREDICTIONS + n_symbols, SIGNAL)
    return Desk(
        enter=np.array([rule.enter_probability for rule in rules], np.float32),
        leave=np.array([rule.exit_probability for rule in rules], np.float32),
        quantity_units=np.array([rule.quantity_units for rule in rules], np.int64),
        limit_offset=np.array([rule.limit_offset_increments for rule in rules], np.int64),
        max_age_ns=np.array([-1 if closed_loop else max_age_ns], np.int64),
        event_clock=np.array([closed_loop], np.uint8),
        last_action=np.zeros(n_symbols, np.uint8),
        acted_ns=np.full((n_symbols, max_signals_per_s), NEVER_NS, np.int64),
        acted_at=np.zeros(n_symbols, np.int64),
        killed=np.zeros(n_symbols + 1, np.uint8),
        kill_generation=np.zeros(1, np.int64),
        kill_turn=np.zeros(1, np.uint64),
        predictions=predictions,
        prediction_words=as_words(predictions),
        outbox=outbox,
        outbox_words=as_words(outbox),
        timed=np.zeros(len(outbox), np.uint8),
        progress=np.zeros(1, PROGRESS),
        counters=stats.counters,
        gauges=stats.gauges,
        histograms=stats.histograms,
        per_symbol=stats.per_symbol.reshape(-1),
    )


DESK_TYPE = typeof(new_desk([Rule(1.0, 1.0, 1, 0)], 1, 1, False, private_stats(ROUTER_STATS, 1)))
"""Numba's type of a desk."""
