"""The compiled queue and batching decision against the plain model, on a fake clock."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reference.batching import Batcher
from tickwire.records import FlushReason
from tickwire_inference.kernels.decision import LAUNCH, NEVER_NS, decide, next_decision_ns
from tickwire_inference.kernels.flight import begin_batch, end_batch
from tickwire_inference.kernels.queue import submit, withdraw, withdraw_batch, withdraw_expired
from tickwire_inference.layouts import BUCKETS, MAX_BATCH, RUNS_KEPT, STATE, new_queue

SYMBOLS = 24
AGEING_NS = 5_000
symbols = st.integers(0, SYMBOLS - 1)


class BatchingMachine(RuleBasedStateMachine):
    """Every request is answered exactly once; both implementations agree on each step."""

    @initialize(classes=st.lists(st.integers(0, 2), min_size=SYMBOLS, max_size=SYMBOLS), closed_loop=st.booleans())
    def start(self, classes, closed_loop):
        handicaps = [rank * AGEING_NS for rank in classes]
        self.model = Batcher(handicaps, closed_loop=closed_loop)
        self.queue = new_queue(handicaps)
        self.order = np.zeros(SYMBOLS, np.int64)
        self.state = np.zeros(1, STATE)
        self.state["closed_loop"] = closed_loop
        self.runs_ns = np.zeros((len(BUCKETS), RUNS_KEPT), np.int64)
        self.runs = np.zeros(len(BUCKETS), np.int64)
        self.p99_ns = np.zeros(len(BUCKETS), np.int64)
        self.now_ns = 1_000_000
        self.requests = self.answers = self.conflated = 0

    @rule(wanted=st.lists(st.tuples(symbols, st.integers(1, 50_000)), min_size=1, max_size=30))
    def requests_arrive(self, wanted):
        for symbol, budget_ns in wanted:
            deadline_ns = self.now_ns + budget_ns
            new = submit(self.queue, self.order, self.state, symbol, self.now_ns, deadline_ns)
            assert new == self.model.submit(symbol, self.now_ns, deadline_ns)
            self.requests += 1
            self.conflated += 1 - new
        self.step()

    @rule(elapsed_ns=st.integers(1, 20_000))
    def time_passes(self, elapsed_ns):
        self.now_ns += elapsed_ns
        self.step()

    @rule()
    def time_passes_to_the_next_decision(self):
        due_ns = next_decision_ns(self.queue, self.order, self.state, self.p99_ns)
        if due_ns == NEVER_NS:
            return
        assert due_ns > self.now_ns, "a decision that was due has not been taken"
        self.now_ns = due_ns - 1
        assert self.step() == 0, "something happened before the announced time"
        self.now_ns = due_ns
        assert self.step() > 0, "nothing happened at the announced time"

    @precondition(lambda self: self.model.flying)
    @rule(elapsed_ns=st.integers(0, 20_000))
    def batch_ends(self, elapsed_ns):
        self.now_ns += elapsed_ns
        self.model.finish(self.now_ns)
        end_batch(self.state, self.runs_ns, self.runs, self.p99_ns, self.now_ns)
        self.step()

    @rule(symbol=symbols)
    def symbol_is_invalidated(self, symbol):
        found = withdraw(self.queue, self.order, self.state, symbol)
        assert found == (self.model.waiting.pop(symbol, None) is not None)
        self.answers += found

    @rule(draining=st.booleans())
    def draining_changes(self, draining):
        self.state["draining"] = draining
        self.model.draining = draining
        self.step()

    def step(self):
        """One turn of the scheduler at `now_ns`: expire, then launch while the decision says so."""
        happened = 0
        expired = np.zeros(SYMBOLS, np.int64)
        n = withdraw_expired(self.queue, self.order, self.state, self.now_ns, expired)
        assert set(expired[:n].tolist()) == self.model.expire(self.now_ns)
        self.answers += n
        happened += n
        while True:
            action, reason, size = decide(self.queue, self.order, self.state, self.p99_ns, self.now_ns)
            assert (action == LAUNCH, FlushReason(reason).name, size) == self.model.decide(self.now_ns)
            if action != LAUNCH:
                return happened
            batch = np.zeros(MAX_BATCH, np.int64)
            n = withdraw_batch(self.queue, self.order, self.state, size, batch)
            chosen = batch[:n].tolist()
            assert chosen == self.model.launch(size, self.now_ns)
            assert n == size <= MAX_BATCH
            assert len(set(chosen)) == n, "a symbol twice in one batch"
            begin_batch(self.state, size, self.now_ns)
            self.answers += n
            happened += n

    @invariant()
    def every_request_is_answered_or_waits(self):
        if not hasattr(self, "model"):
            return
        assert self.requests == self.answers + self.conflated + int(self.state["waiting"][0])
        waiting = self.order[: int(self.state["waiting"][0])].tolist()
        assert sorted(waiting) == sorted(self.model.waiting)
        assert [int(self.queue["place"][symbol]) for symbol in waiting] == list(range(len(waiting)))
        assert int((self.queue["place"] >= 0).sum()) == len(waiting)
        assert [self.model.p99_ns(i) for i in range(len(BUCKETS))] == self.p99_ns.tolist()

    @invariant()
    def nothing_waits_past_its_deadline(self):
        if not hasattr(self, "model") or self.model.closed_loop:
            return
        assert all(request.deadline_ns > self.now_ns for request in self.model.waiting.values())

    def teardown(self):
        """Draining answers all that is left, however it came to be left."""
        if not hasattr(self, "model"):
            return
        self.state["draining"] = True
        self.model.draining = True
        self.step()
        while self.model.flying:
            self.model.finish(self.now_ns)
            end_batch(self.state, self.runs_ns, self.runs, self.p99_ns, self.now_ns)
            self.step()
        assert self.requests == self.answers + self.conflated


TestBatching = BatchingMachine.TestCase
TestBatching.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
