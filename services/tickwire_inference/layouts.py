"""Layouts of the arrays that the scheduler thread works on and of what it shares with the engine thread.

All of it is process-local memory. Times are CLOCK_MONOTONIC nanoseconds unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_BATCH = 16
"""Most symbols in one batch."""

BUCKETS = (1, 2, 4, 8, 16)
"""Batch sizes that engines are prepared for; a batch runs in the smallest that holds it."""

N_OUTPUTS = 3
"""Probabilities of a prediction: down, flat, up."""

N_BUCKETS = len(BUCKETS)

MAX_IN_FLIGHT = 2
"""One batch runs, one is queued behind it; also the number of command slots."""

RUNS_KEPT = 128
"""Newest runs of a bucket from which its p99 is learnt."""

WAITING = np.dtype(
    [
        ("place", "<i8"),  # index in the list of waiting symbols, -1 if none waits
        ("deadline_ns", "<i8"),  # of the newest row
        ("queued_ns", "<i8"),  # age: when the oldest row that this request stands for came; closed loop: receive time
        ("handicap_ns", "<i8"),  # rank of the symbol's priority class times the ageing time; constant
    ]
)
"""dtype of one symbol's place in the queue."""

STATE = np.dtype(
    [
        ("waiting", "<i8"),  # requests that wait
        ("in_flight", "<i8"),  # batches launched and not finished, 0 to 2
        ("running_since_ns", "<i8"),  # when the older batch in flight could start
        ("running_bucket", "<i8"),  # its bucket, an index of BUCKETS
        ("queued_bucket", "<i8"),  # bucket of the younger one
        ("draining", "<i8"),  # 1 while stopping or while a barrier waits for all answers
        ("closed_loop", "<i8"),  # 1: batches close at a barrier only, nothing expires
    ]
)
"""dtype of the state that the batching decision looks at; an array of one."""

LOOP = np.dtype(
    [
        ("window_rows", "<i8"),  # T of the model
        ("rows_at", "<i8"),  # next polled row to deal with
        ("rows_end", "<i8"),  # end of the polled rows
        ("outbox_first", "<i8"),  # first answer not yet published
        ("outbox_end", "<i8"),
        ("batch_sequence", "<u8"),  # batches launched since the process started
        ("barrier_pending", "<i8"),  # 1 while a barrier waits for all answers
        ("refused", "<i8"),  # 1 while the predictions ring refuses: batches wait
    ]
)
"""dtype of the scheduler loop's own state; an array of one."""

SLOT = np.dtype(
    [
        ("size", "<i8"),
        ("deadline_ns", "<i8"),  # latest deadline in the batch
        ("engine", "<i8"),  # EngineKind of the engine that served it
        ("start_ns", "<i8"),  # engine took the batch
        ("end_ns", "<i8"),  # engine done
        ("engine_failed", "<i8"),  # 1: the engine raised, no row has a result
    ]
)
"""dtype of one command slot. The scheduler writes `size` and `deadline_ns` before `SUBMITTED`, the engine thread the
rest before `COMPLETED`."""

SUBMITTED = 0
"""Index in the mailbox (uint32) of the count of launched batches; single writer: the scheduler thread."""
COMPLETED = 32
"""Index of the count of finished batches; single writer: the engine thread. 128 bytes away from `SUBMITTED`."""
MAILBOX_WORDS = 64

ROW_OK = 0
ROW_OVERRUN = 1
"""A row of the window was overwritten while it was gathered."""
ROW_NOT_FINITE = 2
"""The model's output for this row is not finite."""


def new_queue(handicaps_ns: Sequence[int]) -> npt.NDArray[Any]:
    """Return the empty queue of so many symbols, dtype `WAITING`."""
    queue = np.zeros(len(handicaps_ns), WAITING)
    queue["place"] = -1
    queue["handicap_ns"] = handicaps_ns
    return queue
