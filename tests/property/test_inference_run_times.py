"""What run times teach: the p99 of a bucket's newest runs, and how it moves the DEADLINE close."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.batching import Batcher
from tickwire.records import FlushReason
from tickwire_inference.kernels.decision import LAUNCH, WAIT, decide, next_decision_ns
from tickwire_inference.kernels.flight import begin_batch, learn
from tickwire_inference.kernels.queue import submit, withdraw_batch
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, N_BUCKETS, RUNS_KEPT, STATE, new_queue


@settings(deadline=None)
@given(times_ns=st.lists(st.integers(1, 10**9), min_size=1, max_size=300), bucket=st.integers(0, N_BUCKETS - 1))
def test_run_times_any_history_p99_is_the_nearest_rank_of_the_newest(times_ns, bucket):
    """The learnt p99 is the nearest rank over the last 128 runs, of this bucket and no other."""
    runs_ns = np.zeros((N_BUCKETS, RUNS_KEPT), np.int64)
    runs, p99_ns = np.zeros(N_BUCKETS, np.int64), np.zeros(N_BUCKETS, np.int64)
    model = Batcher([0])
    for time_ns in times_ns:
        learn(runs_ns, runs, p99_ns, bucket, time_ns)
        model.runs[bucket].append(time_ns)
        assert p99_ns[bucket] == model.p99_ns(bucket)
    assert np.count_nonzero(p99_ns) == 1


def test_deadline_close_comes_when_the_remainder_and_its_own_time_just_fit():
    """Decision I2: 300 us of the running batch left and 200 us of its own: it goes 500 us before its end."""
    queue, order, state = new_queue([0] * 4), np.zeros(4, np.int64), np.zeros(1, STATE)
    p99_ns = np.full(N_BUCKETS, 200_000, np.int64)
    p99_ns[BUCKETS.index(4)] = 1_000_000
    begin_batch(state, 4, 0)
    submit(queue, order, state, 0, 600_000, 1_200_001)
    decision = (WAIT, FlushReason.NONE, 0)
    assert decide(queue, order, state, p99_ns, 700_000) == decision
    # Before the running batch's p99 the distance and the remainder shrink alike; behind it the distance alone does.
    assert decide(queue, order, state, p99_ns, 1_000_000) == decision
    assert next_decision_ns(queue, order, state, p99_ns) == 1_000_001
    assert decide(queue, order, state, p99_ns, 1_000_001) == (LAUNCH, FlushReason.DEADLINE, 1)
    submit(queue, order, state, 0, 600_000, 1_200_000)
    assert decide(queue, order, state, p99_ns, 700_000) == (LAUNCH, FlushReason.DEADLINE, 1)


def test_lowest_class_is_overtaken_for_the_ageing_time_and_no_longer():
    """Queue I3: under a flood of better requests the lowest waits until those are queued an ageing time later."""
    n_symbols, ageing_ns = 100, 1_000
    handicaps = [0] * n_symbols
    handicaps[99] = 2 * ageing_ns
    queue, order, state = new_queue(handicaps), np.zeros(n_symbols, np.int64), np.zeros(1, STATE)
    batch = np.zeros(MAX_BATCH, np.int64)
    submit(queue, order, state, 99, 0, 10**9)
    rounds = 0
    while True:
        now_ns = rounds * 100
        for i in range(MAX_BATCH):  # every batch could be filled with better ones
            submit(queue, order, state, (rounds * MAX_BATCH + i) % 99, now_ns, 10**9)
        withdraw_batch(queue, order, state, MAX_BATCH, batch)
        if 99 in batch:
            break
        assert now_ns <= 2 * ageing_ns, "starved"
        rounds += 1
    assert now_ns > 2 * ageing_ns - 100, "its class meant nothing"
