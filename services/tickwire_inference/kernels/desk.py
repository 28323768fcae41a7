"""The scheduler's desk: every array that its loop works on, as one tuple that kernels take whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import typeof

from tickwire.kernel import kernel
from tickwire.kernel.decorator import Kernel
from tickwire.records import N_FEATURES, PREDICTION, ROW, WINDOW_ROWS, as_words
from tickwire.runtime import StatsArrays, private_stats
from tickwire.windows.kernels import MAX_READ_ROWS, W_WORDS
from tickwire_inference.layouts import (
    BUCKETS,
    LOOP,
    MAILBOX_WORDS,
    MAX_BATCH,
    MAX_IN_FLIGHT,
    N_OUTPUTS,
    RUNS_KEPT,
    SLOT,
    STATE,
    new_queue,
)
from tickwire_inference.stats import INFERENCE_STATS

POLL_ROWS = 256
"""Rows taken from the ring at once."""

MODEL_WORDS = PREDICTION["model"].itemsize // 8
"""Words of a model label in a record."""

OUTBOX_SPARE = 2 * POLL_ROWS + MAX_IN_FLIGHT * MAX_BATCH + 1
"""Answers that one turn can make besides one for each symbol: at most two a polled row, the results, a barrier."""


class Desk(NamedTuple):
    """Arrays by purpose. Written by the scheduler thread alone, except where the comment says otherwise."""

    # What waits, and the batching decision (kernels.queue, kernels.decision, kernels.flight).
    queue: npt.NDArray[Any]
    order: npt.NDArray[np.int64]
    state: npt.NDArray[Any]
    runs_ns: npt.NDArray[np.int64]
    runs: npt.NDArray[np.int64]
    p99_ns: npt.NDArray[np.int64]
    budget_ns: npt.NDArray[np.int64]  # of each symbol's priority class; constant
    chosen: npt.NDArray[np.int64]  # symbols of the batch being closed, or of what expired
    loop: npt.NDArray[Any]
    # Host windows (kernels.windows); read by the engine thread.
    bits: npt.NDArray[np.uint32]
    newest: npt.NDArray[np.uint64]
    held_from: npt.NDArray[np.uint64]
    valid_from: npt.NDArray[np.uint64]  # first row of each symbol's book that is not void, 0 = not known
    # The windows store, and a window copied from it (kernels.repair).
    store: npt.NDArray[np.uint64]
    scratch: npt.NDArray[np.uint64]
    span: npt.NDArray[np.uint64]
    # Polled rows; answers in the making by symbol, by slot, and on their way out. Each with its words.
    rows: npt.NDArray[Any]
    row_words: npt.NDArray[np.uint64]
    drafts: npt.NDArray[Any]
    draft_words: npt.NDArray[np.uint64]
    batches: npt.NDArray[Any]
    batch_words: npt.NDArray[np.uint64]
    outbox: npt.NDArray[Any]
    outbox_words: npt.NDArray[np.uint64]
    # Command slots (kernels.slots); results are written by the engine thread.
    slots: npt.NDArray[Any]
    model_words: npt.NDArray[np.uint64]  # label of the model that served each slot's batch, 40 bytes each
    status: npt.NDArray[np.uint8]
    probabilities: npt.NDArray[np.float32]
    mailbox: npt.NDArray[np.uint32]
    requested: npt.NDArray[np.uint64]  # `REQUESTED_DRAIN`; written by the event loop
    drained: npt.NDArray[np.uint64]  # 1 once everything is answered after a drain request
    # Statistics (tickwire.runtime).
    counters: npt.NDArray[np.uint64]
    gauges: npt.NDArray[np.uint64]
    histograms: npt.NDArray[np.uint64]
    per_symbol: npt.NDArray[np.uint64]  # flat


REQUESTED_DRAIN = 0
"""Index in `requested`: not 0 = answer what waits and take no more rows."""


def new_desk(
    budget_ns: Sequence[int], handicaps_ns: Sequence[int], window_rows: int, closed_loop: bool, stats: StatsArrays
) -> Desk:
    """Return an empty desk for as many symbols as there are budgets.

    Args:
        budget_ns: Budget of each symbol's priority class.
        handicaps_ns: Rank of each symbol's priority class times the ageing time.
        window_rows: T of the model.
        closed_loop: Whether batches close at barriers only.
        stats: Counters, gauges, histograms and per-symbol values.
    """
    n_symbols = len(budget_ns)
    state = np.zeros(1, STATE)
    state["closed_loop"] = closed_loop
    loop = np.zeros(1, LOOP)
    loop["window_rows"] = window_rows
    rows = np.zeros(POLL_ROWS, ROW)
    drafts = np.zeros(n_symbols + 1, PREDICTION)  # the last one is for answers without a request
    batches = np.zeros(MAX_IN_FLIGHT * MAX_BATCH, PREDICTION)
    drafts["symbol_id"][:n_symbols] = np.arange(n_symbols)
    outbox = np.zeros(2 * (n_symbols + OUTBOX_SPARE), PREDICTION)
    return Desk(
        queue=new_queue(handicaps_ns),
        order=np.zeros(n_symbols, np.int64),
        state=state,
        runs_ns=np.zeros((len(BUCKETS), RUNS_KEPT), np.int64),
        runs=np.zeros(len(BUCKETS), np.int64),
        p99_ns=np.zeros(len(BUCKETS), np.int64),
        budget_ns=np.array(budget_ns, np.int64),
        chosen=np.zeros(max(n_symbols, MAX_BATCH), np.int64),
        loop=loop,
        bits=np.zeros((n_symbols, WINDOW_ROWS, N_FEATURES), np.uint32),
        newest=np.zeros(n_symbols, np.uint64),
        held_from=np.zeros(n_symbols, np.uint64),
        valid_from=np.zeros(n_symbols, np.uint64),
        store=np.zeros(W_WORDS, np.uint64),
        scratch=np.zeros((MAX_READ_ROWS, N_FEATURES // 2), np.uint64),
        span=np.zeros(2, np.uint64),
        rows=rows,
        row_words=as_words(rows),
        drafts=drafts,
        draft_words=as_words(drafts),
        batches=batches,
        batch_words=as_words(batches),
        outbox=outbox,
        outbox_words=as_words(outbox),
        slots=np.zeros(MAX_IN_FLIGHT, SLOT),
        model_words=np.zeros((MAX_IN_FLIGHT, MODEL_WORDS), np.uint64),
        status=np.zeros((MAX_IN_FLIGHT, MAX_BATCH), np.uint8),
        probabilities=np.zeros((MAX_IN_FLIGHT, MAX_BATCH, N_OUTPUTS), np.float32),
        mailbox=np.zeros(MAILBOX_WORDS, np.uint32),
        requested=np.zeros(1, np.uint64),
        drained=np.zeros(1, np.uint64),
        counters=stats.counters,
        gauges=stats.gauges,
        histograms=stats.histograms,
        per_symbol=stats.per_symbol.reshape(-1),
    )


DESK_TYPE = typeof(new_desk([0], [0], 1, False, private_stats(INFERENCE_STATS, 1)))
"""Numba's type of a desk."""


def internal(signature: Any) -> Callable[[Kernel], Kernel]:
    """Compile a kernel that only other kernels call.

    It has no entry for Python: unpacking a desk there would take longer to compile than the kernel itself (all of
    inference 43 s with, 23 s without).
    """
    return kernel(signature, no_cpython_wrapper=True, no_cfunc_wrapper=True)
