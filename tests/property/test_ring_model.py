"""The ring against a model: any order of publish, poll, commit, restart and eviction gives what the rules say."""

from __future__ import annotations

import uuid

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ring_processes import fill, spec_of, torn
from tickwire.ring import BackPressure, Consumer, Lapped, Producer
from tickwire.ring.segment import list_segments, unlink

NAMES = ("a", "b", "c")


class RingMachine(RuleBasedStateMachine):
    """One producer and three named consumers, each side restarted at will."""

    mode = ""

    @initialize(capacity=st.sampled_from([2, 4, 16]), first=st.sampled_from([0, 2**32 - 3]))
    def start(self, capacity, first):
        self.prefix = f"test-{uuid.uuid4().hex[:12]}"
        self.spec = spec_of(self.mode, capacity, 64, first)
        self.published = first
        self.producer = Producer.attach(self.prefix, self.spec, stall_timeout_ms=3_600_000)
        self.consumers = {name: Consumer.attach(self.prefix, self.spec, name=name) for name in NAMES}
        self.next = dict.fromkeys(NAMES, first)
        self.committed = dict.fromkeys(NAMES, first)
        self.lost = dict.fromkeys(NAMES, 0)

    @rule(count=st.integers(1, 8))
    def publish(self, count):
        count = min(count, self.spec.max_batch)
        records = np.zeros(count, dtype=self.spec.dtype)
        fill(records, self.published)
        fits = self.mode == "lossy" or self.published + count - min(self.committed.values()) <= self.spec.capacity
        answer = self.producer.publish(records)
        assert isinstance(answer, BackPressure) != fits
        if fits:
            assert answer == count
            self.published += count

    @rule(name=st.sampled_from(NAMES), limit=st.integers(1, 20))
    def poll(self, name, limit):
        self.committed[name] = self.next[name]  # a poll commits the one before
        records = self.consumers[name].poll(limit)
        behind = self.published - self.next[name]
        if behind > self.spec.capacity:
            margin = self.spec.capacity // 4 * 3
            resumed = max(self.next[name] + 1, self.published - margin)
            assert records == Lapped(resumed - self.next[name], resumed)
            self.lost[name] += records.lost
            self.next[name] = resumed
            return
        assert not isinstance(records, Lapped)
        expected = range(self.next[name], self.next[name] + min(limit, behind))
        assert records["sequence"].tolist() == list(expected)
        assert torn(records) == 0
        self.next[name] += len(records)

    @rule(name=st.sampled_from(NAMES))
    def commit(self, name):
        self.consumers[name].commit()
        self.committed[name] = self.next[name]

    @rule(name=st.sampled_from(NAMES))
    def restart_consumer(self, name):
        self.consumers[name]._release()  # as a kill leaves it: nothing is committed
        self.consumers[name] = Consumer.attach(self.prefix, self.spec, name=name)
        self.next[name] = self.committed[name] if self.mode == "lossless" else self.published
        self.lost[name] = 0

    @rule()
    def restart_producer(self):
        self.producer.close()
        self.producer = Producer.attach(self.prefix, self.spec, stall_timeout_ms=3_600_000)

    @invariant()
    def counts_agree(self):
        assert self.producer.next_sequence == self.published
        for name in NAMES:
            assert self.consumers[name].lost == self.lost[name]
            assert self.consumers[name].cursor == self.next[name]

    def teardown(self):
        if hasattr(self, "prefix"):
            self.producer.close()
            for consumer in self.consumers.values():
                consumer.close()
            for name in list_segments(self.prefix):
                unlink(name)


class LosslessMachine(RingMachine):
    """I5: exact back-pressure, nothing lost."""

    mode = "lossless"


class LossyMachine(RingMachine):
    """I4: exact loss, never back-pressure."""

    mode = "lossy"


_SETTINGS = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLossless = LosslessMachine.TestCase
TestLossless.settings = _SETTINGS
TestLossy = LossyMachine.TestCase
TestLossy.settings = _SETTINGS
